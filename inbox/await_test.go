package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
)

// waiting is a context that reports when somebody first waits for its end.
type waiting struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (w *waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}

type awaited struct {
	outcomes.Outcome
	err error
}

// await waits for an entry in the background. It returns once Await has looked and found nothing,
// or has ended.
func await(t testing.TB, box *inbox.Inbox, r inbox.Receipt) <-chan awaited {
	t.Helper()
	return awaitPolling(t, box, r, time.Millisecond)
}

func awaitPolling(t testing.TB, box *inbox.Inbox, r inbox.Receipt, poll time.Duration) <-chan awaited {
	t.Helper()
	ctx := &waiting{Context: t.Context(), waits: make(chan struct{})}
	done, over := make(chan awaited, 1), make(chan struct{})
	go func() {
		o, err := outcomes.Await(ctx, box, r, poll)
		done <- awaited{o, err}
		close(over)
	}()
	select {
	case <-ctx.waits:
	case <-over:
	}
	return done
}

// settle delivers the next entry, unless it is in flight already, and settles it.
func settle(t testing.TB, box *inbox.Inbox, how func(*inbox.Tx) error) {
	t.Helper()
	mark := still(t, box)
	in(t, box, func(tx *inbox.Tx) {
		if tx.InFlight() == nil {
			e, err := tx.Next(mark)
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{})
			require.NoError(t, err)
		}
		require.NoError(t, how(tx))
	})
}

func answer(reply string) func(*inbox.Tx) error {
	return func(tx *inbox.Tx) error { return tx.Acknowledge(reply) }
}

func orphan(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) }

func TestAwait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps  []func(*inbox.Tx) error
		reply  string
		reason inbox.Reason
		gone   bool
	}{
		"answered":              {steps: []func(*inbox.Tx) error{answer("done")}, reply: "done"},
		"dead-lettered":         {steps: []func(*inbox.Tx) error{orphan}, reason: inbox.ReasonOrphaned},
		"dropped":               {steps: []func(*inbox.Tx) error{(*inbox.Tx).Drop}, gone: true},
		"given back, answered":  {steps: []func(*inbox.Tx) error{func(tx *inbox.Tx) error { return tx.GiveBack("", true) }, answer("later")}, reply: "later"},
		"given back, dead":      {steps: []func(*inbox.Tx) error{func(tx *inbox.Tx) error { return tx.GiveBack("", true) }, orphan}, reason: inbox.ReasonOrphaned},
		"given back, dropped":   {steps: []func(*inbox.Tx) error{func(tx *inbox.Tx) error { return tx.GiveBack(inbox.NeverArrived, false) }, (*inbox.Tx).Drop}, gone: true},
		"an empty answer":       {steps: []func(*inbox.Tx) error{answer("")}},
		"a reply of many lines": {steps: []func(*inbox.Tx) error{answer("\"two\"\nlines")}, reply: "\"two\"\nlines"},
	} {
		for when, before := range map[string]bool{"before": true, "while waiting": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				box := newBox(t, "first\n")
				r := send(t, box, inbox.Message{Text: "x", ID: "job"})
				send(t, box, inbox.Message{Text: "behind it"})
				settle(t, box, answer("of another"))
				var got <-chan awaited
				if !before {
					got = await(t, box, r)
				}
				for _, how := range c.steps {
					settle(t, box, how)
				}
				if before {
					got = await(t, box, r)
				}
				o := <-got
				if c.gone {
					require.ErrorIs(t, o.err, outcomes.ErrGone)
					assert.ErrorContains(t, o.err, `"job"`)
					assert.Equal(t, outcomes.Outcome{}, o.Outcome)
					return
				}
				require.NoError(t, o.err)
				if c.reason != "" {
					require.NotNil(t, o.DeadLetter)
					assert.Nil(t, o.Result)
					assert.Equal(t, deadLetters(t, box), []inbox.DeadLetter{*o.DeadLetter})
					return
				}
				require.NotNil(t, o.Result)
				assert.Nil(t, o.DeadLetter)
				assert.Equal(t, c.reply, o.Result.Reply)
				assert.Equal(t, []string{"job", r.EntryID}, []string{o.Result.ID, o.Result.EntryID})
				assert.Equal(t, results(t, box)[1], *o.Result)
			})
		}
	}
}

func TestAwaitExpired(t *testing.T) {
	box := newBox(t, "")
	now := clockOf(t, box)
	r := now.send(t, inbox.Message{Text: "x", Expires: noon.Add(time.Minute)})
	got := await(t, now.box, r)
	now.set(noon.Add(time.Hour))
	assert.Empty(t, drain(t, now.box))
	o := <-got
	require.NoError(t, o.err)
	require.NotNil(t, o.DeadLetter)
	assert.Equal(t, inbox.ReasonExpired, o.DeadLetter.Reason)
}

// clock is an inbox whose time is set by hand.
type clock struct {
	box *inbox.Inbox
	now atomic.Pointer[time.Time]
}

// clockOf returns the inbox with a clock that starts at noon.
func clockOf(t testing.TB, box *inbox.Inbox) *clock {
	t.Helper()
	c := &clock{}
	c.set(noon)
	var err error
	c.box, err = inbox.Open(box.Path(), inbox.Options{LockWait: 5 * time.Minute, Now: func() time.Time { return *c.now.Load() }})
	require.NoError(t, err)
	return c
}

func (c *clock) set(now time.Time) { c.now.Store(&now) }

func (c *clock) send(t testing.TB, m inbox.Message) inbox.Receipt {
	t.Helper()
	return send(t, c.box, m)
}

// Waiting entries are gone with their inbox, but delivered ones are not.
func TestAwaitWhenTheInboxGoes(t *testing.T) {
	t.Parallel()
	for how, change := range map[string]func(t testing.TB, path string){
		"truncated":       func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"rewritten":       func(t testing.TB, path string) { rewrite(t, path, "new\nother\n") },
		"replaced":        func(t testing.TB, path string) { replace(t, path, "new\n") },
		"removed":         func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) },
		"cut amid a line": func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, fileSize(t, path)-3)) },
	} {
		for _, answeredOne := range []bool{false, true} {
			t.Run(fmt.Sprint(how, ", one was answered: ", answeredOne), func(t *testing.T) {
				box := newBox(t, "first\n")
				r := send(t, box, inbox.Message{Text: "x", ID: "job"})
				if answeredOne {
					settle(t, box, answer(""))
				}
				got := await(t, box, r)
				change(t, box.Path())
				o := <-got
				require.ErrorIs(t, o.err, outcomes.ErrGone)
			})
		}
		t.Run(how+" in flight", func(t *testing.T) {
			box := newBox(t, "")
			r := send(t, box, inbox.Message{Text: "x", ID: "job"})
			deliver(t, box)
			got := await(t, box, r)
			change(t, box.Path())
			settle(t, box, answer("done"))
			o := <-got
			require.NoError(t, o.err)
			require.NotNil(t, o.Result)
			assert.Equal(t, "done", o.Result.Reply)
		})
	}
}

// An entry that a launcher moves within the inbox is still there.
func TestAwaitAnEntryThatMoves(t *testing.T) {
	box := newBox(t, "first\n")
	r := send(t, box, inbox.Message{Text: "x", ID: "job"})
	got := await(t, box, r)
	replace(t, box.Path(), "another first line\n"+strings.TrimPrefix(read(t, box.Path()), "first\n"))
	assert.Equal(t, []string{"another first line", "x"}, drain(t, box))
	o := <-got
	require.NoError(t, o.err)
	require.NotNil(t, o.Result)
	assert.Equal(t, "reply to x", o.Result.Reply)
}

// It is also found if it was answered in its new place before anybody looked.
func TestAwaitAnEntryThatMovedUnseen(t *testing.T) {
	box := newBox(t, "first\n")
	r := send(t, box, inbox.Message{Text: "x", ID: "job"})
	replace(t, box.Path(), "another first line\n"+strings.TrimPrefix(read(t, box.Path()), "first\n"))
	drain(t, box)
	o, err := outcomes.Await(t.Context(), box, r, never)
	require.NoError(t, err)
	require.NotNil(t, o.Result)
	assert.Equal(t, "reply to x", o.Result.Reply)
}

func TestAwaitAnEntryThatIsSkipped(t *testing.T) {
	box := newBox(t, "")
	r := send(t, box, inbox.Message{Text: "x"})
	got := await(t, box, r)
	write(t, beside(box, ".inbox-offset"), fmt.Sprint(r.End))
	assert.ErrorIs(t, (<-got).err, outcomes.ErrGone)
}

// Whatever an operator does to the results while somebody waits, a later answer is seen.
func TestAwaitBesideARotation(t *testing.T) {
	t.Parallel()
	for name, rotate := range map[string]func(t testing.TB, box *inbox.Inbox){
		"renamed":   func(t testing.TB, box *inbox.Inbox) { rename(t, box.ResultsPath(), box.ResultsPath()+".1") },
		"removed":   func(t testing.TB, box *inbox.Inbox) { require.NoError(t, os.Remove(box.ResultsPath())) },
		"truncated": func(t testing.TB, box *inbox.Inbox) { require.NoError(t, os.Truncate(box.ResultsPath(), 0)) },
		"one line less": func(t testing.TB, box *inbox.Inbox) {
			content := read(t, box.ResultsPath())
			write(t, box.ResultsPath(), strings.TrimPrefix(content, firstLine(t, box.ResultsPath())))
		},
		"rewritten, longer": func(t testing.TB, box *inbox.Inbox) {
			write(t, box.ResultsPath(), strings.Repeat("{\"note\":\"an operator's\"}\n", 100))
		},
		"replaced": func(t testing.TB, box *inbox.Inbox) { replace(t, box.ResultsPath(), "{\"note\":\"an operator's\"}\n") },
		"trimmed": func(t testing.TB, box *inbox.Inbox) {
			_, err := outcomes.Trim(context.Background(), box, noon.Add(time.Hour))
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\ntwo\nthree\n")
			r := send(t, box, inbox.Message{Text: "x"})
			settle(t, box, answer("1"))
			settle(t, box, answer("2"))
			got := await(t, box, r)
			rotate(t, box)
			late := await(t, box, r)
			settle(t, box, answer("3"))
			settle(t, box, answer("done"))
			for _, got := range []<-chan awaited{got, late} {
				o := <-got
				require.NoError(t, o.err)
				require.NotNil(t, o.Result)
				assert.Equal(t, "done", o.Result.Reply)
			}
		})
	}
}

// The file with the answer may be moved away before a waiting process looks at it.
func TestAwaitAnAnswerThatIsRotatedAway(t *testing.T) {
	for name, rotate := range map[string]func(t testing.TB, path string){
		"renamed": func(t testing.TB, path string) { rename(t, path, path+".1") },
		"removed": func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n")
			r := send(t, box, inbox.Message{Text: "x"})
			settle(t, box, answer("1")) // so that there is a file to watch
			deliver(t, box)
			// The journal's mark is the last write of a commit.
			crash.Observe(t, func(op disk.Op) error {
				if op.Path == beside(box, journal) && strings.Contains(string(op.Data), "followed") {
					rotate(t, box.ResultsPath())
				}
				return nil
			})
			got := await(t, box, r)
			acknowledge(t, box, "done")
			o := <-got
			require.NoError(t, o.err)
			assert.Equal(t, "done", o.Result.Reply)
		})
	}
}

// The outcome of an earlier entry, with the same bytes and offsets, is not taken for the new entry's.
func TestAwaitLeavesOutEarlierOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		earlier, later func(*inbox.Tx) error
	}{
		"dead letter, then answered":    {orphan, answer("new")},
		"dead letter, then another":     {orphan, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonInterrupted) }},
		"result taken away, then again": {answer("old"), answer("new")},
		"result taken away, then dead":  {answer("old"), func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonInterrupted) }},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			m := inbox.Message{Text: "x", ID: "job"}
			first := send(t, box, m)
			settle(t, box, c.earlier)
			if len(results(t, box)) > 0 { // otherwise the name would be taken
				other := strings.Replace(read(t, box.ResultsPath()), `"id":"job"`, `"id":"jab"`, 1)
				write(t, box.ResultsPath(), other)
			}
			require.NoError(t, os.Truncate(box.Path(), 0))
			second := send(t, box, m)
			require.Equal(t, []any{first.EntryID, first.Start}, []any{second.EntryID, second.Start})
			got := await(t, box, second)
			settle(t, box, c.later)
			o := <-got
			require.NoError(t, o.err)
			if o.Result != nil {
				assert.Equal(t, "new", o.Result.Reply)
			} else {
				assert.Equal(t, inbox.ReasonInterrupted, o.DeadLetter.Reason)
			}
		})
	}
}

// Await takes no lock if there is nothing to repair.
func TestAwaitBesideTheLock(t *testing.T) {
	box := newBox(t, oldContent)
	r := send(t, box, inbox.Message{Text: "x"})
	dropped := send(t, box, inbox.Message{Text: "y"})
	drained := drain(t, open(t, box.Path()))
	require.Len(t, drained, 5)
	lines := strings.SplitAfter(read(t, box.ResultsPath()), "\n")
	write(t, box.ResultsPath(), strings.Join(lines[:4], ""))
	begin(t, box)
	o := <-await(t, box, r)
	require.NoError(t, o.err)
	assert.Equal(t, "reply to x", o.Result.Reply)
	assert.ErrorIs(t, (<-await(t, box, dropped)).err, outcomes.ErrGone)
}

// A kill between the commit and its effects hides no outcome: the waiting process completes the commit.
func TestAwaitAfterAKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settle func(*inbox.Tx) error
		file   func(*inbox.Inbox) string
	}{
		"answered":      {answer("done"), (*inbox.Inbox).ResultsPath},
		"dead-lettered": {orphan, (*inbox.Inbox).DeadLetterPath},
	} {
		for how, spoil := range map[string]func(t testing.TB, path string){
			"gone": func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) },
			"torn": func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, fileSize(t, path)/2)) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				box := newBox(t, "")
				r := send(t, box, inbox.Message{Text: "x"})
				settle(t, box, c.settle)
				spoil(t, c.file(box))
				write(t, beside(box, ".inbox-offset"), "0")
				forget(t, box)
				o := <-await(t, box, r)
				require.NoError(t, o.err)
				assert.True(t, (o.Result != nil) != (o.DeadLetter != nil))
			})
		}
	}
}

// The same holds for the commit that appends the entry.
func TestAwaitWhenTheEntryDidNotFollow(t *testing.T) {
	for name, m := range map[string]inbox.Message{
		"now":   {Text: "x", ID: "job"},
		"later": {Text: "x", ID: "job", NotBefore: noon.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n")
			now := clockOf(t, box)
			stop := crash.Observe(t, func(op disk.Op) error {
				if op.Kind == disk.OpWrite && (op.Path == box.Path() || op.Path == box.ScheduledPath()) {
					return unix.ENOSPC
				}
				return nil
			})
			r := now.send(t, m)
			stop()
			require.NotEmpty(t, r.Warnings)
			echo(t, box.Path(), "written meanwhile\n") // where the entry was to stand
			got := await(t, now.box, r)
			now.set(noon.Add(2 * time.Hour))
			assert.Equal(t, []string{"one", "written meanwhile", "x"}, drain(t, now.box))
			o := <-got
			require.NoError(t, o.err)
			assert.Equal(t, "reply to x", o.Result.Reply)
		})
	}
}

// A process that waits for a scheduled entry moves it to the inbox when it is due, even if nobody
// else is at work.
func TestAwaitAScheduledEntry(t *testing.T) {
	for name, again := range map[string]bool{"just sent": false, "sent before": true} {
		t.Run(name, func(t *testing.T) {
			now := clockOf(t, newBox(t, ""))
			box := now.box
			m := inbox.Message{Text: "x", ID: "job", NotBefore: noon.Add(time.Hour)}
			r := now.send(t, m)
			if again {
				r = now.send(t, m)
				require.Equal(t, inbox.FoundScheduled, r.Found)
				require.NotNil(t, r.NotBefore)
				assert.Equal(t, m.NotBefore, *r.NotBefore)
			}
			w := watch(t, box, time.Millisecond)
			got := await(t, box, r)
			assert.Zero(t, backlog(t, box))
			now.set(noon.Add(time.Hour))
			for backlog(t, box).Entries == 0 {
				<-w.C
			}
			assert.Equal(t, []string{"x"}, drain(t, box))
			o := <-got
			require.NoError(t, o.err)
			assert.Equal(t, "reply to x", o.Result.Reply)
		})
	}
}

// A line that is removed from .scheduled.jsonl by hand is gone.
func TestAwaitAScheduledEntryThatIsTakenOut(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	r := now.send(t, inbox.Message{Text: "x", NotBefore: noon.Add(time.Hour)})
	got := await(t, now.box, r)
	require.NoError(t, os.Remove(now.box.ScheduledPath()))
	assert.ErrorIs(t, (<-got).err, outcomes.ErrGone)
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	box := newBox(t, "")
	r := send(t, box, inbox.Message{Text: "x", ID: "job"})
	why := errors.New("enough")
	for name, before := range map[string]bool{"before": true, "while waiting": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			w := &waiting{Context: ctx, waits: make(chan struct{})}
			go func() {
				if !before {
					<-w.waits
				}
				cancel(why)
			}()
			o, err := outcomes.Await(w, box, r, never)
			require.ErrorIs(t, err, why)
			assert.NotErrorIs(t, err, outcomes.ErrGone)
			assert.Equal(t, outcomes.Outcome{}, o)
		})
	}
	assert.Equal(t, []string{"x"}, drain(t, box), "it waits on")
}

// Await works for entries that were there before as for new ones.
func TestAwaitAFoundEntry(t *testing.T) {
	t.Parallel()
	m := inbox.Message{Text: "x", ID: "job"}
	for name, c := range map[string]struct {
		found string
		then  func(t testing.TB, box *inbox.Inbox)
	}{
		"queued":     {inbox.FoundQueued, func(testing.TB, *inbox.Inbox) {}},
		"in flight":  {inbox.FoundInFlight, func(t testing.TB, box *inbox.Inbox) { deliver(t, box) }},
		"given back": {inbox.FoundQueued, func(t testing.TB, box *inbox.Inbox) { deliver(t, box); giveBack(t, box) }},
		"detached": {inbox.FoundInFlight, func(t testing.TB, box *inbox.Inbox) {
			deliver(t, box)
			rewrite(t, box.Path(), "new\n")
		}},
		"answered": {inbox.FoundAnswered, func(t testing.TB, box *inbox.Inbox) { settle(t, box, answer("done")) }},
		"answered, and the inbox is gone": {inbox.FoundAnswered, func(t testing.TB, box *inbox.Inbox) {
			settle(t, box, answer("done"))
			require.NoError(t, os.Remove(box.Path()))
		}},
		"answered, after it was a dead letter": {inbox.FoundAnswered, func(t testing.TB, box *inbox.Inbox) {
			settle(t, box, orphan)
			letters, _, err := script.Letters(box)
			require.NoError(t, err)
			in(t, box, func(tx *inbox.Tx) {
				_, err := tx.Requeue(letters[0], inbox.Mark{})
				require.NoError(t, err)
			})
			settle(t, box, answer("done"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "{\"prompt\":\"x\",\"id\":\"job\"}\n")
			c.then(t, box)
			r := send(t, box, m)
			require.Equal(t, c.found, r.Found)
			got := await(t, box, r)
			if c.found != inbox.FoundAnswered {
				settle(t, box, answer("done"))
			}
			o := <-got
			require.NoError(t, o.err)
			require.NotNil(t, o.Result)
			assert.Nil(t, o.DeadLetter, "it is one of the two")
			assert.Equal(t, "done", o.Result.Reply)
		})
	}
}

func giveBack(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
}

// The second entry of a name in one batch is the first.
func TestAwaitANameThatCameTwice(t *testing.T) {
	box := newBox(t, "")
	all, err := box.AppendAll(context.Background(), []inbox.Message{{Text: "x", ID: "job"}, {Text: "x", ID: "job"}}, 0)
	require.NoError(t, err)
	got := await(t, box, all[1])
	settle(t, box, answer("done"))
	o := <-got
	require.NoError(t, o.err)
	assert.Equal(t, "done", o.Result.Reply)
}

// Dozens of waiters, in this process and in others, each get their own answer.
func TestManyWaiters(t *testing.T) {
	const here, there = 50, 4
	box := newBox(t, "")
	var messages []inbox.Message
	for i := range here + there {
		messages = append(messages, inbox.Message{Text: "x", ID: fmt.Sprint(i)}) // the message that awaitNamed sends
	}
	receipts, err := box.AppendAll(context.Background(), messages, 0)
	require.NoError(t, err)
	var got []<-chan awaited
	for _, r := range receipts[:here] {
		got = append(got, awaitPolling(t, box, r, 0))
	}
	var children []*crash.Running
	for i := here; i < here+there; i++ {
		c := child("await", box, fmt.Sprint(i)).Start(t)
		require.Equal(t, inbox.FoundQueued, c.Line(t))
		children = append(children, c)
	}
	for i := range here + there {
		settle(t, box, [...]func(*inbox.Tx) error{answer(fmt.Sprint("reply to ", i)), orphan}[i%2])
	}
	for i, got := range got {
		o := <-got
		require.NoError(t, o.err)
		if i%2 == 0 {
			assert.Equal(t, fmt.Sprint("reply to ", i), o.Result.Reply)
		} else {
			assert.Equal(t, fmt.Sprint(i), o.DeadLetter.ID)
		}
	}
	for i, c := range children {
		r := c.Wait(t)
		require.Zero(t, r.ExitCode, r.Stderr)
		if i%2 == 0 {
			assert.Contains(t, r.Stdout, fmt.Sprint("reply to ", here+i))
		} else {
			assert.Contains(t, r.Stdout, inbox.ReasonOrphaned)
		}
	}
}
