package watch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/money/account"
	"heartbeat/internal/see"
	"heartbeat/internal/watch"
)

// lookout looks at a folder as time goes on, faster than a clock.
type lookout struct {
	t    *testing.T
	root string
	look *watch.Lookout
	at   time.Time
}

func over(t *testing.T) *lookout {
	t.Helper()
	root := t.TempDir()
	return &lookout{t, root, watch.New(root), time.Now()}
}

// path names the inbox of a folder, which is made.
func (l *lookout) path(name string) string {
	l.t.Helper()
	require.NoError(l.t, os.MkdirAll(filepath.Join(l.root, name), 0o700))
	return filepath.Join(l.root, name, "inbox.jsonl")
}

func (l *lookout) box(name string) *inbox.Inbox {
	l.t.Helper()
	box, err := inbox.Open(l.path(name), inbox.Options{})
	require.NoError(l.t, err)
	return box
}

// sees looks after that time.
func (l *lookout) sees(later time.Duration) (map[string]watch.Inbox, bool) {
	l.t.Helper()
	l.at = l.at.Add(later)
	p, changed := l.look.Look(l.t.Context(), l.at, nil)
	all := map[string]watch.Inbox{}
	for _, i := range p.Inboxes {
		all[filepath.Base(filepath.Dir(i.Path()))] = i
	}
	return all, changed
}

func sendTo(t *testing.T, box *inbox.Inbox, id, text string) {
	t.Helper()
	_, err := box.Append(t.Context(), inbox.Message{ID: id, Text: text}, 0)
	require.NoError(t, err)
}

func in(t *testing.T, box *inbox.Inbox, do func(tx *inbox.Tx) error) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, errors.Join(do(tx), tx.Commit(), tx.Close()))
}

func deliver(tx *inbox.Tx) error {
	e, err := tx.Next(inbox.Mark{})
	if err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s1"})
	}
	return err
}

// TestALifeOfAnInbox follows one through everything that changes the overview.
func TestALifeOfAnInbox(t *testing.T) {
	l := over(t)
	box := l.box("a")
	sendTo(t, box, "job-1", "one")
	sendTo(t, box, "job-2", "two")
	all, changed := l.sees(0)
	require.True(t, changed)
	a := all["a"]
	assert.EqualValues(t, 2, a.Backlog.Entries)
	assert.Equal(t, see.NoSession, a.State)
	require.NotNil(t, a.Head)
	_, changed = l.sees(time.Second)
	assert.False(t, changed)

	in(t, box, deliver)
	all, changed = l.sees(time.Second)
	require.True(t, changed)
	assert.Equal(t, see.Answering, all["a"].State)
	assert.Equal(t, "job-1", all["a"].InFlight.ID())
	assert.Greater(t, all["a"].Seen, a.Seen)

	in(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonFailed) })
	all, _ = l.sees(time.Second)
	assert.Equal(t, 1, all["a"].Letters.All())
	assert.EqualValues(t, 1, all["a"].Backlog.Entries)

	soon := time.Now().Add(time.Hour)
	in(t, box, func(tx *inbox.Tx) error {
		_, err := tx.Holds().Pause("lunch", &soon)
		return err
	})
	all, _ = l.sees(time.Second)
	assert.Equal(t, see.Paused, all["a"].State)

	f, err := os.OpenFile(box.Path(), os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString("three\nfour")
	require.NoError(t, errors.Join(err, f.Close()))
	all, _ = l.sees(time.Second)
	assert.EqualValues(t, 3, all["a"].Backlog.Entries)
	assert.True(t, all["a"].Backlog.Torn)
}

// What a turn has spent so far is of today before its Stop charges it.
func TestTodayGoesOnWithinATurn(t *testing.T) {
	l := over(t)
	box := l.box("a")
	sendTo(t, box, "job-1", "one")
	transcript := filepath.Join(t.TempDir(), "s1.jsonl")
	require.NoError(t, os.WriteFile(transcript, []byte(`{"type":"user","message":{"content":"q"}}`+"\n"), 0o600))
	in(t, box, func(tx *inbox.Tx) error {
		info, err := os.Stat(transcript)
		require.NoError(t, err)
		account.Of(tx).Position("s1", transcript, info.Size(), true)
		return deliver(tx)
	})
	all, _ := l.sees(0)
	assert.Zero(t, all["a"].Today.Requests)
	f, err := os.OpenFile(transcript, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"assistant","message":{"id":"m1","model":"m","usage":{"input_tokens":1000,"output_tokens":100}}}` + "\n")
	require.NoError(t, errors.Join(err, f.Close()))
	all, changed := l.sees(time.Second)
	assert.True(t, changed)
	assert.EqualValues(t, 1, all["a"].Today.Requests)
	assert.EqualValues(t, 1100, all["a"].Today.Tokens.Sum())
}

// Inboxes that come and go do so in the view, and one that is broken is shown broken.
func TestInboxesComeAndGo(t *testing.T) {
	l := over(t)
	all, _ := l.sees(0)
	assert.Empty(t, all)
	sendTo(t, l.box("a"), "", "one")
	sendTo(t, l.box("b"), "", "one")
	all, changed := l.sees(10 * time.Second)
	assert.True(t, changed)
	assert.Len(t, all, 2)

	require.NoError(t, os.RemoveAll(filepath.Join(l.root, "a")))
	all, _ = l.sees(time.Second) // not searched for again yet
	if gone, still := all["a"]; assert.True(t, still) {
		assert.Equal(t, see.Unreadable, gone.State)
	}
	all, _ = l.sees(10 * time.Second)
	assert.NotContains(t, all, "a")

	sendTo(t, l.box("a"), "", "one")
	all, _ = l.sees(10 * time.Second)
	assert.EqualValues(t, 1, all["a"].Backlog.Entries)
}

func TestOddInboxes(t *testing.T) {
	l := over(t)
	require.NoError(t, syscall.Mkfifo(l.path("fifo"), 0o600))
	require.NoError(t, os.Mkdir(l.path("folder"), 0o700))
	require.NoError(t, os.Symlink("/dev/zero", l.path("device")))
	require.NoError(t, os.WriteFile(l.path("invalid"), []byte("\xff\xfe\x80 bytes\n\x00\x00\x1b[2J\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(l.path("journal")), ".inbox-journal"), []byte("rubbish\n"), 0o600))
	require.NoError(t, os.WriteFile(l.path("long"), []byte(strings.Repeat("x", 64<<20)+"\nshort\n"), 0o600))
	require.NoError(t, os.WriteFile(l.path("empty"), nil, 0o600))
	all, _ := l.sees(0)
	for name, state := range map[string]see.State{
		"fifo": see.Unreadable, "folder": see.Unreadable, "device": see.Unreadable,
		"invalid": see.NoSession, "long": see.NoSession, "empty": see.Empty,
	} {
		assert.Equal(t, state, all[name].State, "%s: %s", name, all[name].Why)
	}
	assert.EqualValues(t, 2, all["long"].Backlog.Entries)
	assert.NotNil(t, all["long"].Head)
	for name, i := range all {
		items, _, err := watch.Entries(i)
		if i.State != see.Unreadable {
			require.NoError(t, err, name)
		}
		for _, item := range items {
			assert.Less(t, len(item.Text), 20<<10, name)
			assert.Less(t, len(item.Reply), 20<<10, name)
		}
	}
	_, changed := l.sees(time.Second)
	assert.False(t, changed, "nothing of that changes by being looked at")
}

func TestAnotherUsersInbox(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	l := over(t)
	sendTo(t, l.box("a"), "", "one")
	require.NoError(t, os.Chmod(filepath.Join(l.root, "a", ".inbox-journal"), 0))
	all, _ := l.sees(0)
	assert.Equal(t, see.Unreadable, all["a"].State)
	assert.Contains(t, all["a"].Why, "look at it as the user that owns it")
}

// Whoever keeps the lock without committing anything is named.
func TestALockThatIsKept(t *testing.T) {
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("no /proc/locks here")
	}
	l := over(t)
	box := l.box("a")
	sendTo(t, box, "", "one")
	_, _ = l.sees(0)
	lock, err := disk.AcquireLock(t.Context(), filepath.Join(box.Dir(), ".inbox-lock"), 0)
	require.NoError(t, err)
	all, _ := l.sees(3 * time.Second)
	assert.Equal(t, see.NoSession, all["a"].State, "it may let go in a moment")
	all, changed := l.sees(3 * time.Second)
	assert.True(t, changed)
	assert.Equal(t, see.Locked, all["a"].State)
	assert.Contains(t, all["a"].Why, fmt.Sprint(os.Getpid()))
	require.NoError(t, lock.Release())
	all, _ = l.sees(3 * time.Second)
	assert.Equal(t, see.NoSession, all["a"].State)
}

// It is also named where somebody works in the inbox's folder, which changes at each look.
func TestALockThatIsKeptInABusyFolder(t *testing.T) {
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("no /proc/locks here")
	}
	l := over(t)
	box := l.box("a")
	sendTo(t, box, "", "one")
	lock, err := disk.AcquireLock(t.Context(), filepath.Join(box.Dir(), ".inbox-lock"), 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Release()) }()
	for i := range 4 {
		require.NoError(t, os.WriteFile(filepath.Join(box.Dir(), fmt.Sprint(i)), nil, 0o600))
		l.sees(time.Second)
	}
	all, _ := l.sees(0)
	assert.Equal(t, see.Locked, all["a"].State)
}

// A pause that ends by itself is over without a change of any file.
func TestAPauseEnds(t *testing.T) {
	l := over(t)
	box := l.box("a")
	until := time.Now().Add(time.Millisecond)
	in(t, box, func(tx *inbox.Tx) error {
		_, err := tx.Holds().Pause("", &until)
		return err
	})
	l.at = until.Add(-time.Millisecond)
	for { // the pause may be over already
		all, _ := l.sees(time.Minute)
		if all["a"].Paused == nil {
			assert.Equal(t, see.NoInbox, all["a"].State)
			return
		}
	}
}

// Another day begins, and an entry's time comes, without a change of any file.
func TestTimePasses(t *testing.T) {
	l := over(t)
	box := l.box("a")
	due := time.Now().Add(time.Hour)
	_, err := box.Append(t.Context(), inbox.Message{ID: "later", Text: "text", NotBefore: due}, 0)
	require.NoError(t, err)
	all, _ := l.sees(0)
	assert.Empty(t, all["a"].Troubles)
	_, changed := l.sees(time.Second)
	assert.False(t, changed)
	all, changed = l.sees(2 * time.Hour)
	assert.True(t, changed)
	require.NotEmpty(t, all["a"].Troubles)
	assert.Equal(t, see.KindOverdue, all["a"].Troubles[0].Kind)
	_, changed = l.sees(time.Second)
	assert.False(t, changed)
	_, changed = l.sees(24 * time.Hour)
	assert.True(t, changed)
}

func TestEntries(t *testing.T) {
	l := over(t)
	box := l.box("a")
	for i := range 5 {
		sendTo(t, box, fmt.Sprint("job-", i), fmt.Sprint("text ", i))
	}
	in(t, box, deliver)
	in(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("the answer") })
	in(t, box, deliver)
	in(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
	in(t, box, deliver)
	in(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("", true) })
	in(t, box, func(tx *inbox.Tx) error { return tx.In("s1").Ask("permission_prompt", "may I?") })
	_, err := box.Append(t.Context(), inbox.Message{ID: "later", Text: "later", NotBefore: time.Now().Add(time.Hour)}, 0)
	require.NoError(t, err)
	all, _ := l.sees(0)
	items, notes, err := watch.Entries(all["a"])
	require.NoError(t, err)
	assert.Empty(t, notes)
	var said []string
	for _, i := range items {
		said = append(said, fmt.Sprintf("%s %s: %s%s %s", i.Kind, i.ID, i.Text, i.Reply, i.Note))
	}
	assert.Equal(t, []string{
		"asks s1: may I? permission_prompt", "again job-2: text 2 attempt 2", "waits job-3: text 3 ", "waits job-4: text 4 ",
		"scheduled later: later ", "dead letter job-1: text 1 orphaned", "answered job-0: text 0the answer ",
	}, said)

	in(t, box, deliver)
	all, _ = l.sees(time.Second)
	items, _, err = watch.Entries(all["a"])
	require.NoError(t, err)
	assert.Equal(t, watch.InFlight, items[1].Kind)
	assert.Equal(t, "job-2", items[1].ID)
}

func TestListsAreBounded(t *testing.T) {
	l := over(t)
	box := l.box("a")
	var many []inbox.Message
	for i := range 300 {
		many = append(many, inbox.Message{ID: fmt.Sprint("job-", i), Text: "text"})
	}
	_, err := box.AppendAll(t.Context(), many, 0)
	require.NoError(t, err)
	all, _ := l.sees(0)
	items, notes, err := watch.Entries(all["a"])
	require.NoError(t, err)
	assert.Less(t, len(items), 210)
	assert.Equal(t, []string{"only the first 200 entries that wait are listed"}, notes)
}

// BenchmarkLook has fifty inboxes of ten thousand entries.
func BenchmarkLook(b *testing.B) {
	root := b.TempDir()
	var lines strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&lines, `{"id":"m-%07d","prompt":"question %07d of many","sent_at":"2026-03-04T12:00:00Z"}`+"\n", n, n)
	}
	for i := range 50 {
		dir := filepath.Join(root, fmt.Sprintf("box-%02d", i))
		require.NoError(b, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "inbox.jsonl")
		require.NoError(b, os.WriteFile(path, []byte(lines.String()), 0o600))
		box, err := inbox.Open(path, inbox.Options{})
		require.NoError(b, err)
		_, err = box.Append(b.Context(), inbox.Message{Text: "last"}, 0)
		require.NoError(b, err)
	}
	at := time.Now()
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			_, _ = watch.New(root).Look(b.Context(), at, nil)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		l := watch.New(root)
		for b.Loop() {
			at = at.Add(2 * time.Second)
			_, _ = l.Look(b.Context(), at, nil)
		}
	})
}

// What is appended behind it does not make the entry younger that comes next.
func TestTheOldestStaysSo(t *testing.T) {
	l := over(t)
	box := l.box("a")
	was := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, text := range []string{"one\n", "one\ntwo\n", "one\ntwo\nthree\n"} {
		require.NoError(t, os.WriteFile(box.Path(), []byte(text), 0o600))
		at := was.Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(box.Path(), at, at))
		all, _ := l.sees(time.Second)
		require.NotNil(t, all["a"].Head)
		assert.Equal(t, was, all["a"].Head.Since.Local())
	}
	in(t, box, deliver)
	all, _ := l.sees(time.Second)
	assert.Equal(t, was.Add(2*time.Minute), all["a"].Head.Since.Local())
}
