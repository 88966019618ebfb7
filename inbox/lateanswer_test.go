package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
)

const proven = true

// give delivers the next entry to turn p1 of a session, and notes that it went out.
func give(t testing.TB, box *inbox.Inbox, session, evidence string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: session, PromptID: "p1", Evidence: []byte(evidence)})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.HandedOver())
	})
}

func setAsideNow(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
}

func endTurn(t testing.TB, box *inbox.Inbox, session, prompt, reply string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(session).LateAnswer(prompt, reply, proven)) })
}

func accept(t testing.TB, box *inbox.Inbox, l inbox.Letter) (accepted inbox.Letter) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		var err error
		accepted, err = tx.Accept(l)
		require.NoError(t, err)
	})
	return accepted
}

func TestLateAnswerIsKept(t *testing.T) {
	t.Parallel()
	box := newBox(t, `{"id":"job","prompt":"one"}`+"\n")
	give(t, box, "s", `{"a":1}`)
	setAsideNow(t, box)
	in(t, box, func(tx *inbox.Tx) {
		d, handed := tx.In("s").Late("p1")
		assert.Equal(t, "s p1 "+`{"a":1}`, d.SessionID+" "+d.PromptID+" "+string(d.Evidence))
		assert.True(t, handed)
		d, _ = tx.In("s").Late("p2")
		assert.Nil(t, d)
		require.NoError(t, tx.In("s").LateAnswer("p1", "too early", !proven))
		assert.False(t, tx.Dirty())
	})
	long := strings.Repeat("é\u202e", 600_000) // 3 MB
	tx := begin(t, box)
	require.NoError(t, tx.In("s").LateAnswer("p1", long, proven))
	require.NoError(t, tx.Close(), "it is kept whatever becomes of the transaction")
	endTurn(t, box, "s", "p1", "the same turn, told twice")
	l := letters(t, box)[0]
	assert.True(t, l.LateReply == long && l.RepliedAt.Equal(noon) && l.Open(), "whole, once, and open")
	assert.Empty(t, results(t, box))
	last := events(t, box)[0]
	assert.Equal(t, []any{inbox.EventLate, "job", "s", "dead letter " + l.Letter}, []any{last.Event, last.ID, last.Session, last.Reason})

	accepted := accept(t, box, l)
	r := results(t, box)[0]
	assert.True(t, r.Reply == long)
	r.Reply = ""
	assert.Equal(t, inbox.Result{
		EntryID: l.EntryID, ID: "job", EndOffset: l.EndOffset, Attempt: 1, SessionID: "s", PromptID: "p1", DeliveredAt: noon,
		AcknowledgedAt: noon, Prompt: "one", FirstSeq: l.FirstSeq, Accepted: inbox.ReasonOrphaned,
	}, r)
	assert.False(t, accepted.Open())
	assert.Equal(t, accepted.LetterMark, letters(t, box)[0].LetterMark)
	assert.ErrorContains(t, box.Requeueable(accepted), "is the entry's result")
}

// A turn without words is an answer like any other.
func TestLateAnswerWithoutWords(t *testing.T) {
	box := newBox(t, "one\n")
	give(t, box, "s", "")
	setAsideNow(t, box)
	endTurn(t, box, "s", "p1", "")
	l := letters(t, box)[0]
	assert.Equal(t, noon, *l.RepliedAt)
	accept(t, box, l)
	assert.Equal(t, []any{"", inbox.ReasonOrphaned}, []any{results(t, box)[0].Reply, results(t, box)[0].Accepted})
}

// Only the end of the entry's own turn keeps an answer, then or later.
func TestNoLateAnswer(t *testing.T) {
	t.Parallel()
	starts := func(tx *inbox.Tx) error { return tx.In("s").Start(os.Getpid(), nil) }
	for name, happens := range map[string]func(tx *inbox.Tx) error{
		"another turn of the session": func(tx *inbox.Tx) error { return tx.In("s").LateAnswer("p2", "else", proven) },
		"it begins anew":              starts,
		"it ends":                     func(tx *inbox.Tx) error { return tx.In("s").End() },
		"the turn fails":              func(tx *inbox.Tx) error { return tx.In("s").FailAlone("overloaded", "") },
		"it is given another entry": func(tx *inbox.Tx) error {
			e, err := tx.Next(inbox.Mark{})
			if err == nil {
				_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", PromptID: "p1"})
			}
			return err
		},
	} {
		box := newBox(t, "one\ntwo\n")
		give(t, box, "s", "")
		setAsideNow(t, box)
		endTurn(t, box, "other", "p1", "of another session")
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, happens(tx), name) })
		endTurn(t, box, "s", "p1", "late")
		assert.Nil(t, letters(t, box)[0].RepliedAt, name)
	}
	for name, before := range map[string]func(tx *inbox.Tx) error{
		"its session has ended":  func(tx *inbox.Tx) error { return errors.Join(starts(tx), tx.In("s").End()) },
		"this is the turn's end": func(tx *inbox.Tx) error { return tx.In("s").LateAnswer("p1", "now", proven) },
		"its evidence is too long": func(tx *inbox.Tx) error {
			return tx.Bind(inbox.Recipient{SessionID: "s", PromptID: "p1", Evidence: []byte(`"` + strings.Repeat("x", 5000) + `"`)})
		},
		"it names no prompt": func(tx *inbox.Tx) error { return tx.Bind(inbox.Recipient{SessionID: "s"}) },
	} {
		box := newBox(t, "one\n")
		give(t, box, "s", "")
		in(t, box, func(tx *inbox.Tx) {
			require.NoError(t, before(tx), name)
			require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned), name)
		})
		endTurn(t, box, "s", "p1", "late")
		endTurn(t, box, "s", "", "late")
		assert.Nil(t, letters(t, box)[0].RepliedAt, name)
	}
}

// At most eight turns are kept that continue without their entries: the ninth takes the first one's
// place. A stopped turn stays stopped until it ends, whatever happened to its letter.
func TestLeftTurnsAreBounded(t *testing.T) {
	t.Parallel()
	box := newBox(t, strings.Repeat("same\n", 10))
	for i := range 9 {
		give(t, box, fmt.Sprint("s", i), "")
		in(t, box, func(tx *inbox.Tx) {
			d := tx.InFlight()
			require.NoError(t, tx.DeadLetterFor(inbox.ReasonOverBudget, string(inbox.ReasonOverBudget), "too much"))
			tx.In(d.SessionID).StopTurn(d, "it was too much")
		})
	}
	for i := range 9 {
		in(t, box, func(tx *inbox.Tx) {
			prompt, why := tx.In(fmt.Sprint("s", i)).Stopped()
			assert.Equal(t, i > 0, prompt == "p1" && why == "it was too much")
		})
	}
	l, err := letters(t, box)[8].WithLimits(json.RawMessage(`{"tokens":1,"raised":true}`))
	require.NoError(t, err)
	requeue(t, box, l)
	in(t, box, func(tx *inbox.Tx) {
		_, why := tx.In("s8").Stopped()
		assert.Equal(t, "it was too much", why)
	})
	for i := range 9 {
		endTurn(t, box, fmt.Sprint("s", i), "p1", "late")
	}
	for i, l := range letters(t, box) {
		assert.Equal(t, i > 0 && i < 8, l.RepliedAt != nil, i)
	}
}

// Lines by others in the file close letters and add replies, but count as results only once a
// person says so. The first line counts.
func TestForeignLateReplies(t *testing.T) {
	box := newBox(t, "one\n")
	give(t, box, "s", "")
	setAsideNow(t, box)
	name := letters(t, box)[0].Letter
	add := func(line string) {
		b, err := os.ReadFile(box.DeadLetterPath())
		require.NoError(t, err)
		write(t, box.DeadLetterPath(), string(b)+line+"\n")
	}
	endTurn(t, box, "s", "p1", "true")
	add(`{"letter":"` + name + `","entry_id":"x","late_reply":"forged","replied_at":"2001-01-01T00:00:00Z"}`)
	add(`{"letter":"` + name + `","late_reply":"forged"}`)
	all, warnings, err := script.Letters(box)
	require.NoError(t, err)
	assert.Len(t, warnings, 1, "a line that says nothing")
	assert.Equal(t, "true", all[0].LateReply)
	assert.Empty(t, results(t, box))

	for name, line := range map[string]string{
		"a reply within the letter":    `{"entry_id":"0123","raw_line":"x","reason":"orphaned","delivered_at":"2001-01-01T00:00:00Z","late_reply":"x","replied_at":"2001-01-01T00:00:00Z"}`,
		"a letter without a reason":    `{"entry_id":"4567","raw_line":"x","delivered_at":"2001-01-01T00:00:00Z"}`,
		"one that was never delivered": `{"entry_id":"89ab","raw_line":"x","reason":"expired"}`,
	} {
		add(line)
		l, _, ok := inbox.ParseLetter([]byte(line))
		require.True(t, ok)
		if name[0] != 'a' || name[2] != 'r' {
			add(`{"letter":"` + l.Letter + `","late_reply":"forged","replied_at":"2001-01-01T00:00:00Z"}`)
		}
		all := deadLettersOf(t, box)
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Accept(all[len(all)-1])
			assert.ErrorContains(t, err, "no reply came to it", name)
			assert.False(t, tx.Dirty())
		})
	}
}

// An id that another entry has or had keeps that entry's answer.
func TestAcceptOfAnIDThatIsTaken(t *testing.T) {
	box := newBox(t, `{"id":"job","prompt":"one"}`+"\n")
	give(t, box, "s", "")
	setAsideNow(t, box)
	endTurn(t, box, "s", "p1", "late")
	l := letters(t, box)[0]
	_, err := box.Append(context.Background(), inbox.Message{ID: "job", Text: "one"}, 0)
	require.NoError(t, err)
	refused := func(where string) {
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Accept(l)
			assert.ErrorContains(t, err, `an entry of the same id, "job", is `+where)
		})
	}
	refused("queued")
	give(t, box, "s", "")
	refused("in flight")
	acknowledge(t, box, "done")
	refused("answered")
	assert.Len(t, results(t, box), 1)
	assert.True(t, letters(t, box)[0].Open())
}

// Accepted letters are trimmed like requeued ones, and so are marks without a letter.
func TestAcceptedLettersAreTrimmed(t *testing.T) {
	t.Parallel()
	box := newBox(t, "one\ntwo\nthree\n")
	for i := range 3 {
		give(t, box, fmt.Sprint("s", i), "")
		setAsideNow(t, box)
		endTurn(t, box, fmt.Sprint("s", i), "p1", "late")
	}
	all := letters(t, box)
	accept(t, box, all[0])
	n, err := outcomes.Trim(context.Background(), box, noon)
	require.NoError(t, err)
	assert.Zero(t, n.DeadLetters)
	_, _, err = outcomes.Purge(context.Background(), box, all[1:2])
	require.NoError(t, err)
	b, err := os.ReadFile(box.DeadLetterPath())
	require.NoError(t, err)
	write(t, box.DeadLetterPath(), string(b)+`{"letter":"gone","replied_at":"2001-01-01T00:00:00Z"}`+"\n")
	n, err = outcomes.Trim(context.Background(), box, noon.AddDate(0, 0, 1))
	require.NoError(t, err)
	assert.Equal(t, 1, n.DeadLetters)
	assert.Len(t, letters(t, box), 1)
	b, err = os.ReadFile(box.DeadLetterPath())
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(b), "\n"), "the open letter and its reply")
}

// The text of a long entry stays while its letter is open, whatever its late reply says.
func TestTextOfAnAcceptedLetter(t *testing.T) {
	t.Parallel()
	box := newBox(t, fmt.Sprintf("{\"prompt\":%q}\n", strings.Repeat("x\n", 1<<20)))
	give(t, box, "s", "")
	text := filepath.Base(textFiles(t, box)[0])
	setAsideNow(t, box)
	endTurn(t, box, "s", "p1", "I have read "+text)
	assert.Empty(t, forgetLeft(t, box))
	accept(t, box, letters(t, box)[0])
	assert.Equal(t, []string{text}, forgetLeft(t, box))
	assert.Contains(t, results(t, box)[0].Prompt, text)
}

// The three steps of a late answer, as children run them.
var lateSteps = map[string]func(box *inbox.Inbox) error{
	"set aside": func(box *inbox.Inbox) error {
		return inTx(box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
	},
	"late": func(box *inbox.Inbox) error {
		return inTx(box, func(tx *inbox.Tx) error { return tx.In("s").LateAnswer("p1", "late", proven) })
	},
	"accept": func(box *inbox.Inbox) error {
		return inTx(box, func(tx *inbox.Tx) error {
			all, _, err := script.Letters(box)
			if err == nil {
				_, err = tx.Accept(all[0])
			}
			return err
		})
	},
}

func inTx(box *inbox.Inbox, f func(tx *inbox.Tx) error) error {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return err
	}
	if err = f(tx); err == nil {
		err = tx.Commit()
	}
	return errors.Join(err, tx.Close())
}

func lateStep(box *inbox.Inbox) error { return lateSteps[os.Args[2]](box) }

// After a kill or a power loss at any call of a step, the entry has one outcome, and the missing
// steps can still be made.
func TestLateAnswerAtEveryCall(t *testing.T) {
	order := []string{"set aside", "late", "accept"}
	for i, step := range order {
		s := crash.Scenario{
			Setup: func(t testing.TB, dir string) {
				path := filepath.Join(dir, "inbox.jsonl")
				write(t, path, "one\n")
				box := open(t, path)
				give(t, box, "s", "")
				for _, before := range order[:i] {
					require.NoError(t, lateSteps[before](box))
				}
			},
			Run: func(dir string) crash.Command {
				return crash.Command{Name: "late", Args: []string{filepath.Join(dir, "inbox.jsonl"), step}}
			},
		}
		check := func(t *testing.T, c crash.Crash) {
			box := open(t, filepath.Join(c.Dir, "inbox.jsonl"))
			in(t, box, func(*inbox.Tx) {})
			if len(deadLettersOf(t, box)) == 0 {
				require.Equal(t, "set aside", step)
				require.NoError(t, lateSteps["set aside"](box))
			}
			if l := deadLettersOf(t, box)[0]; l.RepliedAt == nil {
				require.NotEqual(t, "accept", step)
				require.NoError(t, lateSteps["late"](box))
			}
			if l := deadLettersOf(t, box)[0]; l.Open() {
				assert.Empty(t, results(t, box))
				require.NoError(t, lateSteps["accept"](box))
			}
			assert.ErrorContains(t, lateSteps["accept"](box), "it was accepted at")
			require.NoError(t, lateSteps["late"](box))
			assert.Len(t, results(t, box), 1)
			assert.Equal(t, "late", results(t, box)[0].Reply)
			l := deadLettersOf(t, box)
			require.Len(t, l, 1)
			assert.Equal(t, "late", l[0].LateReply)
			assert.Empty(t, drain(t, box))
		}
		t.Run(step+", kill", func(t *testing.T) { s.EveryKill(t, check) })
		t.Run(step+", power loss", func(t *testing.T) {
			s.EveryPowerLoss(t, 1, 2, func(t *testing.T, c crash.Crash) {
				reboot(t, "after the power loss")
				check(t, c)
			})
		})
	}
}

func deadLettersOf(t testing.TB, box *inbox.Inbox) []inbox.Letter {
	t.Helper()
	all, _, err := script.Letters(box)
	require.NoError(t, err)
	return all
}
