package hook_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
)

// ledger counts what happened to each entry, by text.
type ledger struct {
	delivered []string // by the session after the crash
	answered  []string // ever, in that order
	results   map[string]int
	letters   map[string]int
	marks     map[string]int // of letters that were requeued or accepted
	scheduled map[string]int
}

// settled returns how often an entry ended or was scheduled for later. It is 1 if nothing was lost
// or doubled.
func (l ledger) settled(text string) int {
	return l.results[text] + l.letters[text] - l.marks[text] + l.scheduled[text]
}

// check compares what was promised with what the next session finds.
func (s situation) check(t *testing.T, c crash.Crash) {
	if s.holds != nil {
		s.holds(t, s, c)
	}
	if s.then != nil {
		inProcess(t, s.command(c.Dir, s.then), "")
	}
	delivered := s.nextSession(t, c.Dir)
	l := readLedger(t, c.Dir)
	l.delivered = delivered
	s.checkLedger(t, l)
	s.checkPromises(t, c, l)
}

func (s situation) checkLedger(t *testing.T, l ledger) {
	for _, text := range s.everything() {
		assert.LessOrEqual(t, l.results[text], 1, "%q was acknowledged more than once", text)
		assert.LessOrEqual(t, l.letters[text], 1, "%q was dead-lettered more than once", text)
		assert.LessOrEqual(t, l.marks[text], l.letters[text], "%q was requeued more than once", text)
		assert.LessOrEqual(t, l.settled(text), 1, "%q was doubled: %+v", text, l)
		if !slices.Contains(s.vanishing, text) {
			assert.Equal(t, 1, l.settled(text), "%q was lost: %+v", text, l)
		}
	}
	assert.Subset(t, s.everything(), l.delivered, "it delivered what nobody wrote")
	var order []int
	for _, text := range l.answered {
		order = append(order, slices.Index(s.everything(), text))
	}
	assert.IsNonDecreasing(t, order, "answered out of order: %q", l.answered)
	for _, text := range s.answeredBefore() {
		assert.NotContains(t, l.delivered, text, "it was answered before")
	}
}

func (s situation) checkPromises(t *testing.T, c crash.Crash, l ledger) {
	redelivered := 0
	for _, p := range c.Promised {
		text, printed := strings.CutPrefix(p, "printed ")
		if printed && s.policy != "retry" {
			assert.NotContains(t, l.delivered, text, "it was printed before the crash, and the policy forbids to deliver it twice")
		}
		if p == "done" && strings.Contains(s.stdin, "reply to A") {
			assert.Equal(t, 1, l.results["A"], "the answer was taken before the crash")
			assert.NotContains(t, l.delivered, "A")
		}
	}
	for _, text := range l.delivered {
		if slices.Contains(c.Promised, "printed "+text) {
			redelivered++
		}
	}
	assert.LessOrEqual(t, redelivered, 1, "more than one redelivery")
}

// nextSession runs a whole new session after a crash, and returns what was delivered to it.
func (s situation) nextSession(t testing.TB, dir string) (delivered []string) {
	args := append(s.command(dir, s.wired), "--settle", "0")
	if s.policy != "" {
		args = append(args, "--on-orphan", s.policy)
	}
	reply, active := "ready", false
	for {
		out := s.tell(t, dir, args, crashStop("after", active, reply))
		if out == "" {
			break
		}
		var d struct{ Reason string }
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		delivered = append(delivered, d.Reason)
		require.Less(t, len(delivered), 20, "the session does not end")
		reply, active = "reply to "+d.Reason, true
	}
	require.NoFileExists(t, filepath.Join(dir, ".in-flight"))
	size, err := os.Stat(s.inbox(dir))
	require.NoError(t, err)
	offset, err := os.ReadFile(filepath.Join(dir, ".inbox-offset"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(size.Size()), string(offset))
	return delivered
}

func readLedger(t testing.TB, dir string) ledger {
	l := ledger{results: map[string]int{}, letters: map[string]int{}, marks: map[string]int{}, scheduled: map[string]int{}}
	for _, r := range jsonLines[inbox.Result](t, filepath.Join(dir, ".results.jsonl")) {
		text, ok := strings.CutPrefix(r.Reply, "reply to ")
		if r.Said {
			text, ok = r.Prompt, r.Result == "42"
		}
		require.True(t, ok, "acknowledged unanswered: %+v", r)
		l.answered = append(l.answered, text)
		l.results[text]++
	}
	textOf := map[string]string{} // by letter name
	for _, line := range jsonLines[json.RawMessage](t, filepath.Join(dir, ".dead-letter.jsonl")) {
		d, mark, ok := inbox.ParseLetter(line)
		require.True(t, ok, "%s", line)
		if mark {
			if !d.Open() {
				l.marks[textOf[d.Letter]]++
			}
			continue
		}
		text := d.RawLine.Text
		if d.ID != "" {
			text = d.Text()
		}
		textOf[d.Letter] = text
		l.letters[text]++
	}
	for _, e := range jsonLines[struct {
		Prompt string
		Raw    string `json:"raw_line"`
	}](t, filepath.Join(dir, ".scheduled.jsonl")) {
		l.scheduled[cmp.Or(e.Prompt, e.Raw)]++
	}
	return l
}

func jsonLines[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for l := range bytes.Lines(content) {
		require.True(t, bytes.HasSuffix(l, []byte("\n")), "torn line in %s: %q", path, l)
		var v T
		require.NoError(t, json.Unmarshal(l, &v), "%s: %q", path, l)
		all = append(all, v)
	}
	return all
}

// settle lets another transaction finish what the crash left, then calls f.
func (s situation) settle(t testing.TB, dir string, f func(box *inbox.Inbox, tx *inbox.Tx)) {
	t.Helper()
	box, err := inbox.Open(s.inbox(dir), inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	f(box, tx)
}

// texts counts the entries in a file by text, settled or not.
func texts(t testing.TB, path string) map[string]int {
	t.Helper()
	found := map[string]int{}
	content, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for l := range strings.Lines(string(content)) {
		var e struct{ Prompt string }
		l = strings.TrimSuffix(l, "\n")
		if json.Unmarshal([]byte(l), &e) == nil && e.Prompt != "" {
			l = e.Prompt
		}
		found[l]++
	}
	return found
}

func done(c crash.Crash) bool { return slices.Contains(c.Promised, "done") }

// requeuedOrNot wants a letter either in the inbox again and marked, or neither.
func requeuedOrNot(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		letters, warnings, err := script.Letters(box)
		require.NoError(t, err)
		assert.Empty(t, warnings)
		require.Len(t, letters, 2)
		stands := texts(t, box.Path())
		for _, l := range letters {
			times := 1 // where it stood at first
			if l.RequeuedAt != nil {
				times = 2
			}
			assert.Equal(t, times, stands[l.RawLine.Text], "%q in the inbox", l.RawLine.Text)
			assert.True(t, l.RequeuedAt != nil || !done(c), "it was said to be requeued")
		}
	})
}

// keptOrNot wants the late answer once, with its letter, and nothing settled by it.
func keptOrNot(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		letters, _, err := script.Letters(box)
		require.NoError(t, err)
		require.Len(t, letters, 1)
		assert.True(t, letters[0].Open())
		if letters[0].RepliedAt != nil || done(c) {
			assert.Equal(t, "did A", letters[0].LateReply)
		}
		assert.NoFileExists(t, box.ResultsPath())
	})
}

// acceptedOrNot wants the late answer as a result and its letter marked, or neither. It then
// accepts again, as whoever ran the command would.
func acceptedOrNot(t *testing.T, s situation, c crash.Crash) {
	again := false
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		letters, _, err := script.Letters(box)
		require.NoError(t, err)
		require.Len(t, letters, 1)
		assert.Equal(t, "reply to A", letters[0].LateReply)
		again = letters[0].Open()
		assert.False(t, again && done(c), "it was said to be accepted")
	})
	if again {
		inProcess(t, s.command(c.Dir, s.args), "")
	}
}

// purgedOrNot wants all letters or none.
func purgedOrNot(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		letters, warnings, err := script.Letters(box)
		require.NoError(t, err)
		assert.Empty(t, warnings)
		if len(letters) != 2 || done(c) {
			assert.Empty(t, letters)
		}
	})
}

func entryIDOf(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:])
}

// canceledOrNot wants each entry either waiting or among the dead letters. All entries that were
// reported as canceled must be letters.
func canceledOrNot(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		letters, warnings, err := script.Letters(box)
		require.NoError(t, err)
		assert.Empty(t, warnings)
		found := map[string]int{}
		for _, l := range letters {
			assert.Equal(t, inbox.ReasonCanceled, l.Reason)
			found[l.Text()]++
		}
		v, err := box.View()
		require.NoError(t, err)
		defer func() { require.NoError(t, v.Close()) }()
		require.NoError(t, v.Waits(nil, func(w inbox.Waiting) bool { found[w.Text]++; return true }))
		scheduled, err := box.Scheduled()
		require.NoError(t, err)
		for _, e := range scheduled {
			found[e.Text]++
		}
		for _, text := range s.everything()[1:] {
			assert.Equal(t, 1, found[text], "%q: %v", text, found)
		}
		if done(c) {
			assert.NotEmpty(t, letters, "it was said to be canceled")
		}
	})
}

// stagedOrNot wants D scheduled once, or nowhere.
func stagedOrNot(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		assert.Zero(t, texts(t, box.Path())["D"])
		times := texts(t, box.ScheduledPath())["D"]
		assert.LessOrEqual(t, times, 1)
		assert.True(t, times == 1 || !done(c), "it was said to be scheduled")
	})
}

// neverAgain wants A in no later session: its agent has given a verdict.
func neverAgain(t *testing.T, s situation, c crash.Crash) {
	assert.NotContains(t, c.Promised, "printed A")
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		if d := tx.InFlight(); d != nil && d.Text() == "A" {
			assert.NotNil(t, d.Verdict, "what was said of A is lost")
		}
	})
}

// promotedOnce wants D in the inbox, and no longer scheduled.
func promotedOnce(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		assert.Equal(t, 1, texts(t, box.Path())["D"])
		assert.Equal(t, map[string]int{"E": 1}, texts(t, box.ScheduledPath()))
	})
}

// batchWhole wants all of a batch in the inbox, or nothing of it.
func batchWhole(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(box *inbox.Inbox, _ *inbox.Tx) {
		stands := texts(t, box.Path())
		for _, text := range []string{"D", "E", "F"} {
			assert.Equal(t, stands["D"], stands[text], "%v", stands)
		}
		assert.True(t, stands["D"] == 1 || !done(c), "it was said to be sent")
	})
}

// pausedIfSaid wants the pause that was confirmed, and no delivery past it.
func pausedIfSaid(t *testing.T, s situation, c crash.Crash) {
	held := false
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		p, err := tx.Holds().Paused()
		require.NoError(t, err)
		held = p != nil
	})
	assert.True(t, held || !done(c), "it was said to be paused")
	if held {
		assert.Empty(t, inProcess(t, []string{"--inbox", s.inbox(c.Dir)}, crashStop("held", false, "ready")))
	}
}

func resumedIfSaid(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		p, err := tx.Holds().Paused()
		require.NoError(t, err)
		assert.True(t, p == nil || !done(c), "it was said to go on")
	})
}
