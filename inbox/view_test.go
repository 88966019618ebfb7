package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/testing/long"
)

// viewOf returns a view that ends with the test.
func viewOf(t testing.TB, box *inbox.Inbox) *inbox.View {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v
}

func backlog(t testing.TB, box *inbox.Inbox) inbox.Backlog {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	b, err := v.Backlog(context.Background())
	require.NoError(t, err)
	return b
}

func totals(t testing.TB, box *inbox.Inbox) inbox.Totals {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	n, err := v.Totals()
	require.NoError(t, err)
	return n
}

// fileStamp changes with any change of a file.
type fileStamp struct {
	content      string
	inode        uint64
	write, other time.Duration
	mode         os.FileMode
}

func stamps(t testing.TB, box *inbox.Inbox) map[string]fileStamp {
	t.Helper()
	all := map[string]fileStamp{}
	for name := range snapshot(t, box) {
		path := beside(box, name)
		f, err := os.Open(path)
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Fstat(int(f.Fd()), &st)) // before it is read
		require.NoError(t, f.Close())
		s := fileStamp{content: read(t, path), inode: st.Ino, mode: os.FileMode(st.Mode)}
		s.write, s.other = time.Duration(st.Mtim.Nano()), time.Duration(st.Ctim.Nano())
		all[name] = s
	}
	return all
}

// seen is what a consumer sees of a queue.
type seen struct {
	Cursor    int64
	InFlight  *inbox.Delivery
	Responded bool
	Paused    *inbox.Pause
	Backoff   *inbox.Backoff // without its end, which depends on now
	Waiter    *inbox.Waiter
	Sessions  []inbox.Session
	Session   string
	Warnings  []string
	Next      []inbox.Entry // without those that become dead letters
}

func seenByView(t testing.TB, v *inbox.View) (s seen) {
	t.Helper()
	s = seen{Cursor: v.Cursor(), InFlight: v.InFlight(), Responded: v.Responded(), Session: v.LastSession(), Warnings: v.Warnings()}
	var err error
	s.Paused, err = v.Holds().Paused()
	require.NoError(t, err)
	s.Backoff = lasting(t, v.Holds().Backoff)
	s.Waiter, err = v.Waiter()
	require.NoError(t, err)
	s.Sessions, err = v.Sessions()
	require.NoError(t, err)
	all, err := v.Next(1 << 20)
	require.NoError(t, err)
	b, err := v.Backlog(context.Background())
	require.NoError(t, err)
	assert.EqualValues(t, len(all), b.Entries, "%+v", all)
	assert.Equal(t, len(all) > 0 && all[len(all)-1].Torn, b.Torn)
	for _, w := range all {
		if w.Doomed == "" {
			s.Next = append(s.Next, w.Entry)
		}
	}
	return s
}

// lasting returns the current back-off without its end.
func lasting(t testing.TB, find func() (*inbox.Backoff, error)) *inbox.Backoff {
	t.Helper()
	b, err := find()
	require.NoError(t, err)
	if b != nil {
		b.Until = time.Time{}
	}
	return b
}

// seenByTx returns what a transaction sees. A torn line counts as an entry.
func seenByTx(t testing.TB, box *inbox.Inbox) (s seen) {
	t.Helper()
	mark := still(t, box)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	s = seen{Cursor: tx.Cursor(), InFlight: tx.InFlight(), Responded: tx.Responded(), Warnings: tx.Warnings()}
	s.Paused, err = tx.Holds().Paused()
	require.NoError(t, err)
	s.Backoff = lasting(t, tx.Holds().Backoff)
	s.Waiter, err = tx.Waiter()
	require.NoError(t, err)
	s.Sessions, err = tx.Sessions()
	require.NoError(t, err)
	for _, session := range s.Sessions {
		if tx.In(session.ID).Acknowledged() > 0 {
			s.Session = session.ID
		}
	}
	if tx.InFlight() != nil {
		require.NoError(t, tx.Acknowledge(""))
	}
	for {
		e, err := tx.Next(mark)
		if errors.Is(err, inbox.ErrEmpty) {
			return s
		}
		require.NoError(t, err)
		s.Next = append(s.Next, e)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
		require.NoError(t, tx.Acknowledge(""))
	}
}

// plainEntries leaves out the members that only the package can see.
func plainEntries(all []inbox.Entry) (texts []string) {
	for _, e := range all {
		texts = append(texts, fmt.Sprintf("%s [%d,%d) %q attempt %d %s", e.EntryID, e.Start, e.End, e.Text, e.Attempt, e.Raw().Text))
	}
	return texts
}

// Whatever we or others do to an inbox, a view shows what the next transaction finds, and changes nothing.
func TestViewShowsWhatATransactionFinds(t *testing.T) {
	steps := long.Rounds(60, 400)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Cleanup(func() { reboot(t, "") })
			r := rand.New(rand.NewPCG(seed, 1))
			box := newBox(t, oldContent)
			var done []string
			for range steps {
				i := r.IntN(len(happenings))
				done = append(done, happenings[i].name)
				happenings[i].happen(t, box, r)
				before := stamps(t, box)
				v, err := box.View()
				require.NoError(t, err, done)
				fromView := seenByView(t, v)
				replaced := v.Replaced() != ""
				require.NoError(t, v.Close())
				require.Equal(t, before, stamps(t, box), "the view changed something after %v", done)

				content, _ := os.ReadFile(box.Path()) // it may be gone
				fromTx := seenByTx(t, box)
				if after, _ := os.ReadFile(box.Path()); string(after) != string(content) {
					continue // a committed line was missing and is there again
				}
				require.Equal(t, plainEntries(fromTx.Next), plainEntries(fromView.Next), done)
				fromTx.Next, fromView.Next = nil, nil
				if fromTx.Session == "" {
					fromView.Session = "" // it is not among the remembered ones
				}
				require.Equal(t, fromTx, fromView, done)
				assert.Equal(t, replaced, strings.Contains(strings.Join(fromTx.Warnings, "\n"), "was truncated or replaced"))
			}
		})
	}
}

// happenings are things that may happen to an inbox.
var happenings = []struct {
	name   string
	happen func(t testing.TB, box *inbox.Inbox, r *rand.Rand)
}{
	{"send", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		send(t, box, inbox.Message{Text: "sent", ID: fmt.Sprint(r.IntN(50))})
	}},
	{"send late", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		send(t, box, inbox.Message{Text: "late", ID: fmt.Sprint("late ", r.Uint64()), Expires: noon.Add(time.Duration(r.IntN(3)-1) * time.Hour)})
	}},
	{"schedule", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		send(t, box, inbox.Message{Text: "tomorrow", ID: fmt.Sprint("later ", r.Uint64()), NotBefore: noon.Add(24 * time.Hour)})
	}},
	{"write", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		echo(t, box.Path(), anyLines[r.IntN(len(anyLines))])
	}},
	{"write", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		echo(t, box.Path(), anyLines[r.IntN(len(anyLines))])
	}},
	{"deliver", happenDeliver},
	{"deliver", happenDeliver},
	{"deliver", happenDeliver},
	{"acknowledge", inFlightDo(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })},
	{"acknowledge", inFlightDo(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })},
	{"dead-letter", inFlightDo(func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })},
	{"drop", inFlightDo((*inbox.Tx).Drop)},
	{"give back", inFlightDo(func(tx *inbox.Tx) error { return tx.GiveBack("", true) })},
	{"give back uncounted", inFlightDo(func(tx *inbox.Tx) error { return tx.GiveBack(inbox.NeverArrived, false) })},
	{"pause", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		until := noon.Add(time.Duration(r.IntN(3)-1) * time.Hour)
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Holds().Pause("maintenance", &until)
			require.NoError(t, err)
		})
	}},
	{"resume", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Holds().Resume()) })
	}},
	{"back off", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Holds().BackOff(time.Duration(r.IntN(3))*time.Hour, r.IntN(9), r.IntN(2) == 0, overloaded)
			require.NoError(t, err)
		})
	}},
	{"wait", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		wait(t, box, fmt.Sprint(r.Uint64()), fmt.Sprint("s", r.IntN(3)))
	}},
	{"stop waiting", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) { in(t, box, (*inbox.Tx).StopWaiting) }},
	{"bind", inFlightDo(func(tx *inbox.Tx) error { return tx.Bind(inbox.Recipient{SessionID: "s1", PromptID: "bound"}) })},
	{"ask", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) { ask(t, box, fmt.Sprint("s", r.IntN(3)), "may I?") }},
	{"prompt", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(fmt.Sprint("s", r.IntN(3))).Prompt("p")) })
	}},
	{"session", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(fmt.Sprint("s", r.IntN(3))).Start(os.Getpid(), nil)) })
	}},
	{"set the cursor", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		write(t, beside(box, ".inbox-offset"), fmt.Sprint(r.Int64N(60)))
	}},
	{"remove the cursor", happenRemove(".inbox-offset")},
	{"remove what is in flight", happenRemove(".in-flight")},
	{"remove the flag", happenRemove(".responded")},
	{"remove the inbox", happenRemove("inbox.jsonl")},
	{"remove the lock", happenRemove(".inbox-lock")},
	{"set the flag", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) { write(t, beside(box, ".responded"), "") }},
	{"truncate", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) { write(t, box.Path(), "") }},
	{"rewrite", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) { rewrite(t, box.Path(), oldContent+"four\n") }},
	{"replace", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) { replace(t, box.Path(), oldContent) }},
	{"another boot", func(t testing.TB, _ *inbox.Inbox, r *rand.Rand) { reboot(t, fmt.Sprint("boot ", r.Uint64())) }},
	{"killed before the mark", func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("killed").Start(1, nil)) })
		forget(t, box)
	}},
	{"torn record", func(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("before").Start(1, nil)) }) // there is a journal
		before := read(t, beside(box, journal))
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("torn").End()) })
		after := written(read(t, beside(box, journal)))
		if old := written(before); strings.HasPrefix(after, old) { // otherwise it was trimmed
			write(t, beside(box, journal), filled(after[:len(old)+r.IntN(40)], before))
		}
	}},
}

func happenDeliver(t testing.TB, box *inbox.Inbox, r *rand.Rand) {
	mark := still(t, box)
	in(t, box, func(tx *inbox.Tx) {
		if tx.InFlight() != nil {
			return
		}
		e, err := tx.Next(mark)
		if err == nil {
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: fmt.Sprint("s", r.IntN(3))})
		} else {
			require.ErrorIs(t, err, inbox.ErrEmpty)
			err = nil
		}
		require.NoError(t, err)
	})
}

func inFlightDo(settle func(*inbox.Tx) error) func(testing.TB, *inbox.Inbox, *rand.Rand) {
	return func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) {
		in(t, box, func(tx *inbox.Tx) {
			if tx.InFlight() != nil {
				require.NoError(t, settle(tx))
			}
		})
	}
}

func happenRemove(name string) func(testing.TB, *inbox.Inbox, *rand.Rand) {
	return func(t testing.TB, box *inbox.Inbox, _ *rand.Rand) {
		if err := os.Remove(beside(box, name)); err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
	}
}

// anyLines are what producers write: whole lines, parts of lines, and lines that are no entry.
var anyLines = []string{
	"check the dashboard\n", "\n", "  \t\n", "with CR\r\n", "\r\n", "\"\"\n", "{\"prompt\":\"\"}\n", "torn", " ", "{\"prompt\":\"half",
	"\x00\x00\n", "a\x00b\n", "caf\xe9\n", "\u00a0\n", "\u2028\u3000\n", "\u0085", "{\"prompt\":\"p\",\"id\":\"raw\"}\n",
	"{\"prompt\":\"late\",\"expires_at\":\"2020-01-01T00:00:00Z\"}\n", "\xc2\n", "\xe2\x80", strings.Repeat("x", 70<<10) + "\n",
}

func TestViewOfNothing(t *testing.T) {
	box := open(t, filepath.Join(t.TempDir(), "later.jsonl"))
	v := viewOf(t, box)
	assert.Zero(t, v.Cursor())
	assert.EqualValues(t, -1, v.Size())
	assert.True(t, v.WrittenAt().IsZero())
	assert.Nil(t, v.InFlight())
	assert.Nil(t, v.Redeliver())
	assert.False(t, v.Settling())
	assert.Empty(t, v.Replaced())
	assert.Empty(t, v.Warnings())
	b, err := v.Backlog(context.Background())
	require.NoError(t, err)
	assert.Zero(t, b)
	all, err := v.Next(5)
	require.NoError(t, err)
	assert.Empty(t, all)
	n, err := v.Totals()
	require.NoError(t, err)
	assert.Zero(t, n.Delivered)
	where, err := v.Find("x")
	require.NoError(t, err)
	assert.Empty(t, where)
	assert.Empty(t, snapshot(t, box), "not even the lock was made")
}

// A view refuses what Begin refuses.
func TestViewRefusesWhatBeginRefuses(t *testing.T) {
	for name, spoil := range map[string]func(t testing.TB, box *inbox.Inbox){
		"cursor":    func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, ".inbox-offset"), "none") },
		"in flight": func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, ".in-flight"), "{") },
		"journal":   func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, journal), "what\nis\nthis\n") },
		"no file":   func(t testing.TB, box *inbox.Inbox) { mkfifo(t, beside(box, ".responded.x")); mkfifoAt(t, box) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			spoil(t, box)
			_, viewErr := box.View()
			require.Error(t, viewErr)
			_, beginErr := box.Begin(context.Background())
			require.Error(t, beginErr)
			assert.Equal(t, beginErr.Error(), viewErr.Error())
		})
	}
}

func mkfifoAt(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	require.NoError(t, os.Remove(beside(box, ".in-flight")))
	mkfifo(t, beside(box, ".in-flight"))
}

// A view works while another process holds the lock.
func TestViewBesideTheLock(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	holder := child("hold", box).Start(t)
	require.Equal(t, "held", holder.Line(t))
	v := viewOf(t, box)
	assert.Equal(t, "one", v.InFlight().Text())
	b, err := v.Backlog(context.Background())
	require.NoError(t, err)
	assert.EqualValues(t, 2, b.Entries)
	holder.CloseInput(t)
	assert.Zero(t, holder.Wait(t).ExitCode)
}

// A view needs no write access.
func TestViewOfAReadOnlyDirectory(t *testing.T) {
	for name, change := range map[string]func(t testing.TB, box *inbox.Inbox){
		"as it is":               func(testing.TB, *inbox.Inbox) {},
		"killed before the mark": func(t testing.TB, box *inbox.Inbox) { forget(t, box) },
		"no lock":                func(t testing.TB, box *inbox.Inbox) { require.NoError(t, os.Remove(beside(box, ".inbox-lock"))) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			turn(t, box)
			change(t, box)
			readOnly(t, box)
			r := child("view", box).Run(t)
			require.Zero(t, r.ExitCode, r.Stderr)
			assert.Equal(t, "4 two 1\n", r.Stdout)
		})
	}
}

// readOnly gives the inbox to the user nobody, who may not write there.
func readOnly(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	own := func(path string, mode os.FileMode) {
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(path, nobody, nobody))
		}
		require.NoError(t, os.Chmod(path, mode))
	}
	for name := range snapshot(t, box) {
		own(beside(box, name), 0o400)
	}
	own(box.Dir(), 0o500)
	if os.Geteuid() == 0 { // otherwise nobody could not get there
		require.NoError(t, os.Chmod(filepath.Dir(box.Dir()), 0o755))
	}
	t.Cleanup(func() { require.NoError(t, os.Chmod(box.Dir(), 0o700)) })
}

// Beside a consumer that never rests, each view shows one commit: the cursor is at the entry in
// flight, and the inbox is never taken for another one.
func TestViewBesideACommitter(t *testing.T) {
	cursors := 150
	if testing.Short() {
		cursors = 40
	}
	box := newBox(t, "")
	worker := child("work", box).Start(t)
	require.Equal(t, "ready", worker.Line(t))
	last, settling, others := int64(0), 0, 0
	for others < cursors {
		v, err := box.View()
		require.NoError(t, err)
		require.Empty(t, v.Replaced())
		require.Empty(t, v.Warnings())
		require.GreaterOrEqual(t, v.Cursor(), last)
		if v.Cursor() > last {
			last = v.Cursor()
			others++
		}
		if v.Settling() {
			settling++
		}
		if d := v.InFlight(); d != nil {
			require.Equal(t, d.StartOffset, v.Cursor())
			require.GreaterOrEqual(t, v.Size(), d.EndOffset)
			require.True(t, v.Responded())
		}
		n, err := v.Totals()
		require.NoError(t, err)
		inFlight := int64(0)
		if v.InFlight() != nil {
			inFlight = 1
		}
		require.Equal(t, n.Delivered, n.Answered+inFlight)
		require.NoError(t, v.Close())
	}
	worker.CloseInput(t)
	r := worker.Wait(t)
	require.Zero(t, r.ExitCode, r.Stderr)
	t.Logf("%d views amid a commit", settling)
}

// Waiting entries are counted as they would be delivered.
func TestBacklog(t *testing.T) {
	t.Parallel()
	const tooLong = inbox.MaxLine + 1
	for name, c := range map[string]struct {
		content string
		want    inbox.Backlog
	}{
		"nothing":             {"", inbox.Backlog{}},
		"lines":               {"a\nb\n", inbox.Backlog{Entries: 2, Bytes: 4}},
		"blank lines":         {"\n\n \t\na\n\r\n\v\f\n", inbox.Backlog{Entries: 1, Bytes: 12}},
		"CRLF":                {"a\r\n\r\nb\r\n", inbox.Backlog{Entries: 2, Bytes: 8}},
		"torn":                {"a\nb", inbox.Backlog{Entries: 2, Bytes: 3, Torn: true}},
		"torn blank":          {"a\n  ", inbox.Backlog{Entries: 1, Bytes: 4}},
		"torn CR":             {"a\nb\r", inbox.Backlog{Entries: 2, Bytes: 4, Torn: true}},
		"NUL bytes":           {"a\x00\n\x00\n\x00b\x00", inbox.Backlog{Entries: 2, Bytes: 8, Torn: true}},
		"spaces of Unicode":   {"\u00a0\n\u0085\r\n\u2028 \u3000\n", inbox.Backlog{Bytes: 15}},
		"torn Unicode spaces": {"\u2003", inbox.Backlog{Bytes: 3}},
		"half a character":    {"\xe2\x80\n\xc2", inbox.Backlog{Entries: 2, Bytes: 4, Torn: true}},
		"nothing to deliver":  {"\"\"\na\n", inbox.Backlog{Entries: 2, Bytes: 5}},
		"a long line":         {strings.Repeat(" ", 3<<20) + "x\n" + strings.Repeat("y", 2<<20), inbox.Backlog{Entries: 2, Bytes: 5<<20 + 2, Torn: true}},
		"a long blank line":   {strings.Repeat(" ", 3<<20) + "\nx\n", inbox.Backlog{Entries: 1, Bytes: 3<<20 + 3}},
		"a blank Unicode one": {strings.Repeat("\u2003", 1<<20) + "\nx\n", inbox.Backlog{Entries: 1, Bytes: 3<<20 + 3}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, c.content)
			assert.Equal(t, c.want, backlog(t, box))
			seenByView(t, viewOf(t, box)) // which compares
		})
	}
	t.Run("too long", func(t *testing.T) {
		long.Only(t, "64 MiB")
		box := sparse(t, tooLong, "\nnext\n")
		assert.Equal(t, inbox.Backlog{Entries: 2, Bytes: tooLong + 6}, backlog(t, box))
		all, err := viewOf(t, box).Next(9)
		require.NoError(t, err)
		require.Len(t, all, 2)
		assert.Equal(t, inbox.ReasonTooLong, all[0].Doomed)
		assert.Equal(t, "next", all[1].Text)
	})
}

func TestBacklogLeavesOutWhatIsInFlight(t *testing.T) {
	box := newBox(t, "\none\ntwo\nthree\n")
	deliver(t, box)
	assert.Equal(t, inbox.Backlog{Entries: 2, Bytes: 10}, backlog(t, box))
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, inbox.Backlog{Entries: 3, Bytes: 14}, backlog(t, box), "what was given back waits, too")
	d := viewOf(t, box).Redeliver()
	require.NotNil(t, d)
	assert.Equal(t, "one", d.Text())
	assert.Equal(t, 1, d.Attempt)
	deliver(t, box)
	assert.Equal(t, inbox.Backlog{Entries: 2, Bytes: 10}, backlog(t, box))
}

// An entry that is given back counts once, with its bytes.
func TestBacklogOfARedelivery(t *testing.T) {
	box := newBox(t, "one\n")
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, inbox.Backlog{Entries: 1, Bytes: 4}, backlog(t, box))
}

func TestBacklogLeavesOutWhatIsCanceled(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	in(t, box, func(tx *inbox.Tx) {
		_, err := tx.Cancel(sha256Hex("two"), 4)
		require.NoError(t, err)
	})
	assert.Equal(t, inbox.Backlog{Entries: 1, Bytes: 4}, backlog(t, box))
}

// An entry that was delivered from a former file takes nothing off the new one.
func TestBacklogBesideADetachedEntry(t *testing.T) {
	for name, giveBack := range map[string]bool{"in flight": false, "given back": true} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			deliver(t, box)
			if giveBack {
				in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
			}
			rewrite(t, box.Path(), "new\n")
			want := inbox.Backlog{Entries: 1, Bytes: 4}
			if giveBack {
				want = inbox.Backlog{Entries: 2, Bytes: 8}
			}
			assert.Equal(t, want, backlog(t, box))
			seenByView(t, viewOf(t, box))
			in(t, box, func(*inbox.Tx) {})
			assert.Equal(t, want, backlog(t, box))
		})
	}
}

// A delivered torn line does not wait. Lines written behind it do.
func TestBacklogBehindAnUnterminatedDelivery(t *testing.T) {
	box := newBox(t, "printf")
	mark := still(t, box)
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(mark)
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
	assert.Zero(t, backlog(t, box))
	echo(t, box.Path(), "\n")
	assert.Equal(t, inbox.Backlog{Bytes: 1}, backlog(t, box))
	echo(t, box.Path(), "next")
	assert.Equal(t, inbox.Backlog{Entries: 1, Bytes: 5, Torn: true}, backlog(t, box))
}

// A file that was lengthened without a write has a hole.
func TestBacklogBehindAHole(t *testing.T) {
	box := newBox(t, "one\n")
	turn(t, box)
	acknowledge(t, box, "done")
	require.NoError(t, os.Truncate(box.Path(), 1<<20))
	seenByView(t, viewOf(t, box))
	echo(t, box.Path(), "two\n")
	s := seenByView(t, viewOf(t, box))
	assert.Equal(t, plainEntries(seenByTx(t, box).Next), plainEntries(s.Next))
}

func TestBacklogEndsWithItsContext(t *testing.T) {
	v := viewOf(t, newBox(t, oldContent))
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	_, err := v.Backlog(ctx)
	assert.ErrorIs(t, err, why)
}

func TestViewNext(t *testing.T) {
	box := newBox(t, "zero\n\n{\"prompt\":\"one\",\"id\":\"1\",\"m\":1}\n\"\"\n{\"prompt\":\"late\",\"expires_at\":\"2020-01-01T00:00:00Z\"}\nfour\nfive")
	deliver(t, box)
	v := viewOf(t, box)
	all, err := v.Next(9)
	require.NoError(t, err)
	require.Len(t, all, 5)
	assert.Equal(t, "1", all[0].ID)
	assert.Equal(t, metadata{"m": raw("1")}, all[0].Metadata)
	assert.EqualValues(t, 6, all[0].Start)
	assert.Equal(t, 1, all[0].Attempt)
	for i, want := range []inbox.Waiting{{}, {Doomed: inbox.ReasonEmpty}, {Doomed: inbox.ReasonExpired}, {}, {Torn: true}} {
		all[i].Entry = inbox.Entry{}
		assert.Equal(t, want, all[i], i)
	}
	for n := range 7 {
		first, err := v.Next(n)
		require.NoError(t, err)
		assert.Len(t, first, min(n, 5))
	}
}

// A view stays as it was when it was made.
func TestViewIsOfOneMoment(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	v := viewOf(t, box)
	turn(t, box)
	echo(t, box.Path(), "four\n")
	assert.Zero(t, v.Cursor())
	assert.Equal(t, "one", v.InFlight().Text())
	assert.EqualValues(t, len(oldContent), v.Size())
	b, err := v.Backlog(context.Background())
	require.NoError(t, err)
	assert.Equal(t, inbox.Backlog{Entries: 2, Bytes: 10}, b)
}

func TestViewSettling(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	assert.False(t, viewOf(t, box).Settling())
	acknowledge(t, box, "done")
	forget(t, box)
	require.NoError(t, os.Remove(box.ResultsPath()))
	v := viewOf(t, box)
	assert.True(t, v.Settling())
	assert.Nil(t, v.InFlight(), "the commit counts")
	assert.NoFileExists(t, box.ResultsPath())
	in(t, box, func(*inbox.Tx) {})
	assert.False(t, viewOf(t, box).Settling())
	assert.Len(t, results(t, box), 1)
}

func TestViewFind(t *testing.T) {
	box := newBox(t, "{\"prompt\":\"x\",\"id\":\"answered\"}\n{\"prompt\":\"x\",\"id\":\"in flight\"}\n{\"prompt\":\"x\",\"id\":\"queued\"}\n{\"prompt\":\"x\",\"id\":\"torn\"}")
	turn(t, box)
	turn(t, box)
	echo(t, box.Path(), "\n")
	send(t, box, inbox.Message{ID: "scheduled", Text: "x", NotBefore: noon.Add(time.Hour)})
	v := viewOf(t, box)
	for id, want := range map[string]string{
		"answered": inbox.FoundAnswered, "in flight": inbox.FoundInFlight, "queued": inbox.FoundQueued, "torn": inbox.FoundQueued,
		"scheduled": inbox.FoundScheduled, "none": "", "": "",
	} {
		got, err := v.Find(id)
		require.NoError(t, err)
		assert.Equal(t, want, got[id], id)
	}
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	where, err := viewOf(t, box).Find("in flight")
	require.NoError(t, err)
	assert.Equal(t, inbox.FoundQueued, where["in flight"])
}

// A cursor may be set back into a region whose space was freed.
func TestFindBehindAHole(t *testing.T) {
	box := newBox(t, "")
	require.NoError(t, os.Truncate(box.Path(), 1<<20))
	echo(t, box.Path(), "{\"prompt\":\"x\",\"id\":\"i\"}\n")
	assert.Equal(t, inbox.FoundQueued, send(t, box, inbox.Message{ID: "i", Text: "x"}).Found)
}
