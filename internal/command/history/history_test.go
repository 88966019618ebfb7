package history_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/command/history"
	"heartbeat/internal/testing/script"
)

// clock goes on by a second whenever it is asked.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time {
	c.now = c.now.Add(time.Second)
	return c.now
}

func newBox(t testing.TB) *inbox.Inbox {
	t.Helper()
	c := &clock{time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{Now: c.Now})
	require.NoError(t, err)
	return box
}

func in(t testing.TB, box *inbox.Inbox, f func(tx *inbox.Tx) error) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	require.NoError(t, f(tx))
	require.NoError(t, tx.Commit())
}

func echo(t testing.TB, path, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(content)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// settle ends what is in flight, if anything is, and delivers the next entry.
func settle(t testing.TB, box *inbox.Inbox, how func(tx *inbox.Tx) error) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) error {
		if tx.InFlight() != nil {
			if err := how(tx); err != nil {
				return err
			}
		}
		e, err := tx.Next(inbox.Mark{})
		if err != nil {
			require.ErrorIs(t, err, inbox.ErrEmpty)
			return nil
		}
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		return err
	})
}

func answer(tx *inbox.Tx) error { return tx.Acknowledge("reply") }

// happen lets something random happen to an inbox.
func happen(t testing.TB, box *inbox.Inbox, r *rand.Rand, i int) {
	t.Helper()
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		_, err := box.Append(t.Context(), inbox.Message{ID: fmt.Sprintf("job-%d", i), Text: "text"}, 0)
		require.NoError(t, err)
	case 4:
		echo(t, box.Path(), fmt.Sprintf("raw %d\n", i%3))
	case 5:
		settle(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
	case 6:
		settle(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("", r.IntN(2) == 0) })
	case 7:
		settle(t, box, (*inbox.Tx).Drop)
	case 8:
		in(t, box, func(tx *inbox.Tx) error { return tx.In("s").Fail("error", "message") })
	case 9:
		in(t, box, func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("why", nil); return err })
	default:
		settle(t, box, answer)
	}
}

func shown(all []history.Event) (lines []string) {
	for _, e := range all {
		lines = append(lines, e.String())
	}
	return lines
}

func readLog(t testing.TB, box *inbox.Inbox, n int) []history.Event {
	t.Helper()
	log, all, err := history.Read(box, n)
	require.NoError(t, err)
	assert.Empty(t, log.Notes())
	require.NoError(t, log.Close())
	return all
}

// TestLogOfTheLast holds that the last N events are found in the last N records
// of each file.
func TestLogOfTheLast(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 0))
		box := newBox(t)
		for i := range 80 {
			happen(t, box, r, i)
		}
		all := readLog(t, box, 0)
		assert.True(t, slices.IsSortedFunc(all, func(a, b history.Event) int { return a.At.Compare(*b.At) }))
		for _, n := range []int{1, 2, 3, 7, 20, 1000} {
			// A raw line tells of nothing, and may stand where one is that does.
			want := slices.DeleteFunc(slices.Clone(all), func(e history.Event) bool { return e.Event == history.Queued })
			got := slices.DeleteFunc(readLog(t, box, n), func(e history.Event) bool { return e.Event == history.Queued })
			assert.Equal(t, shown(want[len(want)-len(got):]), shown(got), "seed %d, n %d", seed, n)
		}
	}
}

// TestLogFollowsEachEventOnce holds that following tells all that reading does
// afterwards, in that order, and nothing twice.
func TestLogFollowsEachEventOnce(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		box := newBox(t)
		for i := range 10 {
			happen(t, box, r, i)
		}
		log, told, err := history.Read(box, 0)
		require.NoError(t, err)
		raw := 0
		for i := 10; i < 90; i++ {
			happen(t, box, r, i)
			if r.IntN(3) > 0 {
				continue // several at once
			}
			news, err := log.Next()
			require.NoError(t, err)
			for _, e := range news {
				if e.At == nil {
					require.Equal(t, history.Queued, e.Event)
					raw++
				} else {
					told = append(told, e)
				}
			}
		}
		news, err := log.Next()
		require.NoError(t, err)
		told = append(told, slices.DeleteFunc(news, func(e history.Event) bool { return e.At == nil })...)
		assert.Equal(t, shown(sorted(readLog(t, box, 0))), shown(sorted(told)), "seed %d", seed)
		assert.Positive(t, raw)
		require.NoError(t, log.Close())
	}
}

// sorted leaves out what only the queue knows: what a text says, and when an entry
// was queued that was dropped.
func sorted(all []history.Event) []history.Event {
	dropped := map[string]bool{}
	for _, e := range all {
		dropped[e.EntryID] = dropped[e.EntryID] || e.Event == "dropped"
	}
	all = slices.DeleteFunc(slices.Clone(all), func(e history.Event) bool { return e.Event == history.Queued && dropped[e.EntryID] })
	for i, e := range all {
		all[i] = history.Event{At: e.At, Event: e.Event, ID: e.ID, EntryID: e.EntryID, Attempt: e.Attempt, Reason: e.Reason}
	}
	slices.SortStableFunc(all, func(a, b history.Event) int { return a.At.Compare(*b.At) })
	return all
}

func TestFollowARequeuedEntry(t *testing.T) {
	box := newBox(t)
	_, err := box.Append(t.Context(), inbox.Message{ID: "job", Text: "text"}, 0)
	require.NoError(t, err)
	settle(t, box, answer)
	settle(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
	log, _, err := history.Read(box, 5)
	require.NoError(t, err)
	requeue(t, box)
	news, err := log.Next()
	require.NoError(t, err)
	require.Len(t, news, 1)
	assert.Equal(t, "requeued", news[0].Event)
	settle(t, box, answer)
	settle(t, box, answer)
	news, err = log.Next()
	require.NoError(t, err)
	assert.Equal(t, []string{"delivered", "answered"}, kinds(news))
	require.NoError(t, log.Close())

	found, err := history.Find(box, "job")
	require.NoError(t, err)
	assert.Equal(t, []string{"queued", "delivered", "dead-lettered", "requeued", "delivered", "answered"}, kinds(found.Events))
	assert.Equal(t, "reply", found.Answered.Answer())
	assert.Nil(t, found.Letter)
	assert.Equal(t, kinds(found.Events)[4:], kinds(found.Last(2)))
}

func kinds(all []history.Event) (names []string) {
	for _, e := range all {
		names = append(names, e.Event)
	}
	return names
}

// requeue writes what dead-letter requeue commits.
func requeue(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	letters, _, err := script.Letters(box)
	require.NoError(t, err)
	l := letters[len(letters)-1]
	raw, err := l.RawLine.Bytes()
	require.NoError(t, err)
	mark, err := json.Marshal(map[string]any{"letter": l.Letter, "entry_id": l.EntryID, "id": l.ID, "requeued_at": l.DeadLetteredAt.Add(1)})
	require.NoError(t, err)
	event, err := json.Marshal(inbox.Event{At: l.DeadLetteredAt.Add(1), Event: inbox.EventRequeued, EntryID: l.EntryID, ID: l.ID, Reason: "dead letter " + l.Letter})
	require.NoError(t, err)
	echo(t, box.DeadLetterPath(), string(mark)+"\n")
	echo(t, box.EventsPath(), string(event)+"\n")
	echo(t, box.Path(), string(raw)+"\n")
}

// TestFindHasTheWholeLife holds that an entry's own log is what the whole log
// says of it.
func TestFindHasTheWholeLife(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	box := newBox(t)
	for i := range 120 {
		happen(t, box, r, i)
	}
	lives := map[string][]string{}
	for _, e := range readLog(t, box, 0) {
		if e.ID != "" {
			lives[e.ID] = append(lives[e.ID], e.String())
		}
	}
	require.NotEmpty(t, lives)
	for id, want := range lives {
		found, err := history.Find(box, id)
		require.NoError(t, err)
		assert.Equal(t, want, shown(found.Events), id)
		byEntry, err := history.Find(box, found.EntryID)
		require.NoError(t, err)
		assert.Equal(t, want, shown(byEntry.Events), id)
		byPrefix, err := history.Find(box, found.EntryID[:17])
		require.NoError(t, err)
		assert.Equal(t, want, shown(byPrefix.Events), id)
		for _, e := range found.Events {
			assert.True(t, found.Is(e))
			assert.True(t, byEntry.Is(e))
		}
	}
}

func TestFindTellsWhatItCannotTellApart(t *testing.T) {
	box := newBox(t)
	echo(t, box.Path(), `{"id":"job-1","prompt":"x"}`+"\n"+`{"id":"job-2","prompt":"x"}`+"\n"+`{"id":"7692c3ad","prompt":"x"}`+"\none\n")
	for word, want := range map[string]error{
		"job-": history.ErrAmbiguous, "job-3": history.ErrUnknown, "job": history.ErrUnknown, "": history.ErrUnknown,
		"7692c3": history.ErrAmbiguous, // of an id, and of the hash of `one`
		"job-1":  nil, "7692c3ad": nil, "7692c3ad3": nil,
	} {
		_, err := history.Find(box, word)
		assert.ErrorIs(t, err, want, word)
	}
	found, err := history.Find(box, "7692c3ad")
	require.NoError(t, err)
	assert.Equal(t, "7692c3ad", found.ID, "an id goes before an entry id")
	assert.Equal(t, inbox.FoundQueued, found.Where)
}

func TestEventForPeople(t *testing.T) {
	at := time.Date(2026, 11, 21, 13, 20, 1, 0, time.Local)
	took, reply := int64(12_300), "first line of reply\nand more\n"
	for want, e := range map[string]history.Event{
		"2026-11-21 13:20:01  answered  job-7  attempt 1, 12s, session abcd12345678: first line of reply ...": {
			At: &at, Event: history.Answered, ID: "job-7", EntryID: "e", Attempt: 1, SessionID: "abcd12345678", LatencyMS: &took, Reply: &reply,
		},
		"-  queued  0123456789ab":                                     {Event: history.Queued, EntryID: "0123456789abcdef"},
		"2026-11-21 13:20:01  resumed":                                {At: &at, Event: "resumed"},
		"2026-11-21 13:20:01  replaced  it is another file":           {At: &at, Event: "replaced", Reason: "it is another file"},
		"2026-11-21 13:20:01  session ended  session s":               {At: &at, Event: "session ended", SessionID: "s"},
		"2026-11-21 13:20:01  paused  until 2026-11-21 13:20:01: why": {At: &at, Event: "paused", Reason: "why", Until: &at},
		"2026-11-21 13:20:01  dead-lettered  j  attempt 2: failed (e: m)": {
			At: &at, Event: history.DeadLettered, ID: "j", Attempt: 2, Reason: "failed", Failure: &inbox.Failure{Error: "e", Message: "m"},
		},
		"2026-11-21 13:20:01  dead-lettered  j  over_budget: m": {
			At: &at, Event: history.DeadLettered, ID: "j", Reason: "over_budget", Failure: &inbox.Failure{Error: "over_budget", Message: "m"},
		},
		"2026-11-21 13:20:01  expired  j":  {At: &at, Event: history.Expired, ID: "j", Reason: "expired"},
		"2026-11-21 13:20:01  canceled  j": {At: &at, Event: history.Canceled, ID: "j", Reason: "canceled"},
	} {
		assert.Equal(t, want, e.String())
	}
}

// At a terminal there is less room.
func TestEventAtATerminal(t *testing.T) {
	at, reply := time.Date(2026, 3, 4, 13, 20, 1, 0, time.Local), "reply"
	e := history.Event{At: &at, Event: history.Answered, ID: "job-7", Attempt: 1, SessionID: "s", Reply: &reply}
	assert.Equal(t, []string{"Mar  4 13:20:01", "answered", "job-7", "reply"}, e.NarrowCells(at))
	e.Attempt = 2
	assert.Equal(t, []string{"2026-03-04 13:20:01", "answered", "job-7", "attempt 2: reply"}, e.NarrowCells(at.AddDate(1, 0, 0)))
	e.At = nil
	assert.Equal(t, "-", e.NarrowCells(at)[0])
}

// FuzzLog holds that no line that somebody wrote into a file breaks the log, and
// that a foreign one is told of.
func FuzzLog(f *testing.F) {
	f.Add([]byte(`{"entry_id":"aa","id":"one","delivered_at":"2026-03-04T12:00:00Z","acknowledged_at":"2026-03-04T12:00:20Z","attempt":1,"reply":"1"}`))
	f.Add([]byte(`{"entry_id":"aa","id":"d","metadata":{"sent_at":"2026-03-04T11:00:00Z","not_before":1},"raw_line":"x","attempts":1,"reason":"failed","failure":{"error":"e"},"delivered_at":"2026-03-04T12:00:00Z","dead_lettered_at":"2026-03-04T12:30:00Z"}`))
	f.Add([]byte(`{"letter":"0123456789ab","entry_id":"aa","id":"d","requeued_at":"2026-03-04T13:00:00Z"}`))
	f.Add([]byte(`{"at":"2026-03-04T13:00:00Z","event":"redelivered","entry_id":"aa","attempt":1,"session_id":"s","delivered_at":"2026-03-04T12:00:00Z"}`))
	f.Add([]byte("\x00"))
	f.Add([]byte("{\"at\":null,\"event\":\"x\",\"until\":\"2026-03-04T12:00:00Z\"}\nnoise\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		box := newBox(t)
		for _, path := range []string{box.ResultsPath(), box.DeadLetterPath(), box.EventsPath(), box.Path()} {
			require.NoError(t, os.WriteFile(path, append(line, '\n'), 0o600))
		}
		log, all, err := history.Read(box, 0)
		require.NoError(t, err)
		for _, e := range all {
			assert.NotContains(t, e.String(), "\n")
			_, err := json.Marshal(e)
			require.NoError(t, err)
			if e.ID != "" {
				found, err := history.Find(box, e.ID)
				require.NoError(t, err)
				assert.NotEmpty(t, found.Events)
			}
		}
		text := strings.TrimLeft(string(line), "\x00") // zeros that a power loss left are no text
		if !json.Valid([]byte(text)) && len(strings.TrimSpace(text)) > 0 && !strings.Contains(text, "\n") {
			assert.Len(t, log.Notes(), 3)
		}
		require.NoError(t, log.Close())
	})
}
