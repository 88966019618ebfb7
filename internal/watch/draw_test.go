package watch

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/see"
	"heartbeat/orchestrate"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

// acts matches whatever a terminal would act on.
var acts = regexp.MustCompile(`[\x00-\x1f\x7f\x{0080}-\x{009f}\x{200b}\x{200d}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// full is a board with that many inboxes and everything on it, and that text wherever
// others write.
func full(text string, inboxes int) *Board {
	b := &Board{Width: 80, Height: 24}
	var all []Inbox
	for i := range inboxes {
		before := noon.Add(-time.Duration(i) * time.Minute)
		now := Inbox{Facts: see.Facts{
			Now: noon, Inbox: fmt.Sprintf("/srv/%s%02d/inbox.jsonl", strings.ReplaceAll(text, "/", ""), i), Reach: see.Reach{Space: -1},
			Queue: see.Queue{
				Exists: true, Backlog: inbox.Backlog{Entries: int64(i)},
				InFlight: &inbox.Delivery{EntryID: "0123456789abcdef", RawLine: inbox.RawLine{Text: text}, DeliveredAt: before, Attempt: 1},
				Paused:   &inbox.Pause{At: before, Reason: text},
				Head:     &inbox.Head{Since: before},
			},
			Runs:    []see.Run{{Run: text, Dir: text, Wait: orchestrate.Wait{State: orchestrate.Asking, Effect: text, Text: text, Since: before}}},
			Letters: letters(i),
		}, Seen: 1}
		now.Warnings = []string{text}
		now.State, now.Why = now.Explain()
		all = append(all, now)
	}
	b.Show(Picture{At: noon, Inboxes: all, Notes: []string{text}})
	return b
}

// states are boards with everything open that there is to open.
func states(text string, inboxes int) map[string]*Board {
	item := Item{Kind: DeadLetter, ID: text, EntryID: "0123", Letter: "ab", At: noon, Note: text, Text: text, Reply: text, RunDir: text}
	page := full(text, inboxes)
	page.Key("enter")
	page.loaded(page.Page.Path, []Item{item, {Kind: Waiting}, {Kind: Scheduled, At: noon.Add(time.Hour)}}, []string{text}, nil)
	life := full(text, inboxes)
	life.Key("enter")
	life.loaded(life.Page.Path, []Item{item}, nil, nil)
	life.Key("enter")
	life.Life.Events, life.Life.Loaded = text+"\t"+text+"\n"+text, true
	asking := full(text, inboxes)
	asking.Key("a")
	said := full(text, inboxes)
	said.done(text, nil)
	doing := full(text, inboxes)
	doing.Key("p")
	doing.Key("y")
	help := full(text, inboxes)
	help.Key("?")
	empty := &Board{}
	empty.Show(Picture{At: noon, Notes: []string{text}})
	return map[string]*Board{
		"overview": full(text, inboxes), "page": page, "life": life, "asking": asking, "said": said, "doing": doing, "help": help, "empty": empty, "at first": {},
	}
}

// painted is a palette that paints, whatever the environment says.
func painted() layout.Palette { return layout.PaletteFor(io.Discard, layout.Always) }

// unpainted takes the paint off again.
func unpainted(line string) string {
	for _, style := range []string{"\x1b[m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"} {
		line = strings.ReplaceAll(line, style, "")
	}
	return line
}

// fits checks that a board fills its terminal and no more, and says nothing to it.
func fits(t *testing.T, name string, b *Board) {
	t.Helper()
	for _, paint := range []layout.Palette{{}, painted()} {
		lines := Draw(b, paint)
		assert.Len(t, lines, b.Height, "%s at %dx%d", name, b.Width, b.Height)
		for _, line := range lines {
			line = unpainted(line)
			assert.NotRegexp(t, acts, line, name)
			assert.LessOrEqual(t, layout.Width(line), b.Width, "%s at %dx%d: %q", name, b.Width, b.Height, line)
		}
	}
}

var hostile = []string{
	"plain", "", "\x1b[2J\x1b[31mred\x07\x1b]0;title\x07", "日本語の文章と名前の長い列がここにあります、まだまだ続きます", "e" + strings.Repeat("\u0301", 40),
	"\u202eabc\u2066def", "zero\u200bwidth\u2060\ufeff", "שלום עולם", "tab\tand\nlines\r\u2028more", strings.Repeat("long ", 600), "👩‍👩‍👧‍👦 🇩🇪",
	"\xff\xfe\x80", strings.Repeat("x", 5000), "a\r\nb\rc", "\u009b31m", "\x00",
}

func TestEverythingFits(t *testing.T) {
	for _, text := range hostile {
		for _, size := range [][2]int{{80, 24}, {20, 5}, {200, 60}, {40, 10}, {1, 1}, {3, 2}, {80, 1}, {2, 24}} {
			for name, b := range states(text, 6) {
				b.Width, b.Height = size[0], size[1]
				fits(t, name, b)
			}
		}
	}
	assert.Empty(t, Draw(&Board{}, layout.Palette{}), "before its size is known")
}

func FuzzDraw(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, 80, 24)
	}
	f.Fuzz(func(t *testing.T, text string, width, height int) {
		text = text[:min(len(text), 4096)]
		all := states(text, 2)
		name := slices.Sorted(maps.Keys(all))[abs(height)%len(all)] // one of them, or each input takes long
		b := all[name]
		b.Width, b.Height = 1+abs(width)%150, 1+abs(height/len(all))%60
		fits(t, name, b)
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

func letters(n int) outcomes.LetterCount {
	return outcomes.LetterCount{Open: map[inbox.Reason]int{inbox.ReasonOrphaned: n}}
}

// TestOverview is what a person sees of two inboxes at the usual size.
func TestOverview(t *testing.T) {
	b := &Board{Width: 80, Height: 24}
	since := noon.Add(-2 * time.Minute)
	mail := Inbox{Facts: see.Facts{
		Inbox: "/srv/mail/queue/inbox.jsonl", Reach: see.Reach{Space: -1}, Letters: letters(1),
		Queue: see.Queue{
			Exists: true, Backlog: inbox.Backlog{Entries: 3},
			InFlight: &inbox.Delivery{EntryID: "0123456789abcdef", SessionID: "s1", RawLine: inbox.RawLine{Text: `{"prompt":"p","id":"job-17"}`}, DeliveredAt: since, Attempt: 1},
			Head:     &inbox.Head{Since: since},
		},
	}, State: see.Answering}
	ci := Inbox{Facts: see.Facts{
		Inbox: "/srv/ci/inbox.jsonl", Reach: see.Reach{Space: -1}, Queue: see.Queue{Exists: true, Paused: &inbox.Pause{At: since, Reason: "lunch"}},
	}, State: see.Paused}
	mail.Today.Nanos, mail.Today.Dollars, mail.Today.Requests = 420_000_000, true, 3
	b.Show(Picture{At: noon, Inboxes: []Inbox{ci, mail}})
	b.Key("down")
	lines := Draw(b, layout.Palette{})
	assert.Equal(t, strings.TrimPrefix(`
heartbeat: 2 inboxes, 3 wait, 1 in flight, 1 dead, 0.42 USD today          12:00
  INBOX       WAIT  OLDEST  IN FLIGHT  SINCE  DEAD  TODAY  STATE
  ci             0                               0         paused
> mail/queue     3      2m  job-17        2m     1   0.42  answering
`, "\n"), trimmed(lines[:4]))
	assert.Equal(t, strings.TrimPrefix(`
/srv/mail/queue/inbox.jsonl
waiting for an answer to the entry job-17 since 2026-03-04 11:58:00 (2m ago),
attempt 1: whether session s1 runs is not known

↑↓ choose  enter open  p pause  r resume  a approve  x reject  ? keys  q quit
`, "\n"), trimmed(lines[19:]))
	assert.Contains(t, strings.Join(Draw(b, painted()), "\n"), "\x1b[32manswering\x1b[m")
}

func trimmed(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// The chosen line is on the screen, wherever it is in the list.
func TestTheChosenLineIsShown(t *testing.T) {
	b := full("box", 30)
	for range 30 {
		shown := strings.Join(Draw(b, layout.Palette{}), "\n")
		assert.Contains(t, shown, "\n> box"+fmt.Sprintf("%02d", b.Index()))
		b.Key("down")
	}
}

// Scrolling ends at the end of the text.
func TestALifeScrolls(t *testing.T) {
	b := states(strings.Repeat("word ", 1000)+"END", 1)["life"]
	assert.NotContains(t, strings.Join(Draw(b, layout.Palette{}), "\n"), "END")
	b.Key("end")
	assert.Contains(t, strings.Join(Draw(b, layout.Palette{}), "\n"), "END")
	b.Key("up")
	Draw(b, layout.Palette{})
	b.Key("home")
	assert.Contains(t, strings.Join(Draw(b, layout.Palette{}), "\n"), "EVENTS")
}

func BenchmarkDraw(b *testing.B) {
	for name, of := range states("an entry with a text of some length", 50) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = Draw(of, layout.Palette{})
			}
		})
	}
}
