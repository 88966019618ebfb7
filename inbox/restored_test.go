package inbox_test

import (
	"errors"
	"fmt"
	"maps"
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
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// backUp copies an inbox's directory as it is now.
func backUp(t testing.TB, box *inbox.Inbox) (dir string) {
	t.Helper()
	dir = t.TempDir()
	shell(t, box, "cp -a . "+dir)
	return dir
}

// sendNumbers sends entries with these numbers in their texts.
func sendNumbers(t testing.TB, box *inbox.Inbox, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		send(t, box, inbox.Message{Text: fmt.Sprint("sent ", n)})
	}
}

// restoreTold returns what status says about a restore.
func restoreTold(t testing.TB, box *inbox.Inbox) string {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	return strings.Join(append(v.Warnings(), v.ReadAgain()...), "\n")
}

func eventsOf(t testing.TB, box *inbox.Inbox, kind inbox.EventKind) (reasons []string) {
	t.Helper()
	for _, e := range events(t, box) {
		if e.Event == kind {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// answeredTwice returns the entries with more than one result.
func answeredTwice(t testing.TB, box *inbox.Inbox) (twice []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range results(t, box) {
		if name := fmt.Sprint(r.Prompt, " at ", r.StartOffset); seen[name] {
			twice = append(twice, name)
		} else {
			seen[name] = true
		}
	}
	return twice
}

// restores are ways to put an older copy in a file's place.
var restores = map[string]string{
	"cp":         "cp -r $from $to",
	"cp -a":      "cp -a $from $to",
	"new":        "rm -f $to; cp -r $from $to",
	"new, cp -a": "rm -f $to; cp -a $from $to",
}

func restoreFiles(t testing.TB, box *inbox.Inbox, how, from string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Stat(from + "/" + name); err == nil {
			shell(t, box, fmt.Sprintf("from=%s/%s to=%s; %s", from, name, name, restores[how]))
		}
	}
}

// An older copy of the inbox alone comes back: entries from `send` keep their outcome and are done
// once. Entries sent after that are new.
func TestRestoredInboxIsNotDoneAgain(t *testing.T) {
	strict(t)
	for how := range restores {
		for _, inFlight := range []bool{false, true} {
			t.Run(fmt.Sprint(how, " ", inFlight), func(t *testing.T) {
				t.Parallel()
				box := newBox(t, "")
				sendNumbers(t, box, 1, 3)
				turn(t, box)
				turn(t, box)
				old := backUp(t, box)
				sendNumbers(t, box, 4, 5)
				drain(t, box)
				want := []string{"sent 6"}
				if inFlight { // in no inbox any more, it lives on
					send(t, box, inbox.Message{Text: "flying"})
					turn(t, box)
				}
				restoreFiles(t, box, how, old, "inbox.jsonl")
				v, err := box.View()
				require.NoError(t, err)
				waiting, err := v.Backlog(t.Context())
				require.NoError(t, err)
				require.NoError(t, v.Close())
				assert.Zero(t, waiting.Entries, "nobody is told to wait for them")
				assert.Contains(t, restoreTold(t, box), "was truncated or replaced")
				assert.Empty(t, drain(t, box))
				assert.Equal(t, slices.Repeat([]string{"it was answered before"}, 3), eventsOf(t, box, inbox.EventSettled))
				assert.Contains(t, restoreTold(t, box), "entries whose outcome is known are passed (3 so far), and the others are delivered")
				send(t, box, inbox.Message{Text: "sent 6"})
				assert.Equal(t, want, drain(t, box))
				assert.Empty(t, answeredTwice(t, box))
			})
		}
	}
}

// A line that anybody may have written again looks like new work: it is done, and status says so.
func TestRestoredLinesWithoutATime(t *testing.T) {
	box := newBox(t, "triage\nreport\n")
	drain(t, box)
	old := backUp(t, box)
	send(t, box, inbox.Message{Text: "sent"})
	drain(t, box)
	restoreFiles(t, box, "cp", old, "inbox.jsonl")
	assert.Equal(t, "triage", turn(t, box))
	assert.Contains(t, restoreTold(t, box), "the inbox was truncated or replaced (the cursor")
	assert.Contains(t, restoreTold(t, box), "done again: 2 entries like one that was answered")
	assert.Equal(t, []string{"report"}, drain(t, box))
}

// Without results nothing proves that the lines were answered.
func TestRestoredInboxWithoutResults(t *testing.T) {
	box := newBox(t, "")
	sendNumbers(t, box, 1, 2)
	old := backUp(t, box)
	drain(t, box)
	sendNumbers(t, box, 3, 3)
	drain(t, box)
	require.NoError(t, os.Rename(box.ResultsPath(), box.ResultsPath()+".1"))
	restoreFiles(t, box, "cp", old, "inbox.jsonl")
	assert.Equal(t, "sent 1", turn(t, box))
	assert.Contains(t, restoreTold(t, box), "the inbox was truncated or replaced")
	assert.Equal(t, []string{"sent 2"}, drain(t, box))
}

// A Stop may come while the copy is being written, or between the accident and the restore: lines
// that come back later stand where they were answered.
func TestRestoredInTwoParts(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]int{"nothing": 0, "a line": 1, "amid a line": -1} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			sendNumbers(t, box, 1, 4)
			drain(t, box)
			whole := read(t, box.Path())
			lines := strings.SplitAfter(whole, "\n")
			part := strings.Join(lines[:max(0, first)], "")
			if first < 0 {
				part = whole[:len(lines[0])+10]
			}
			rewrite(t, box.Path(), part)
			if first < 0 {
				_, err := next(t, box)
				require.ErrorIs(t, err, inbox.ErrTorn)
				in(t, box, func(*inbox.Tx) {})
			} else {
				assert.Empty(t, drain(t, box))
			}
			echo(t, box.Path(), whole[len(part):])
			assert.Empty(t, drain(t, box))
			// Appending it is how to ask for all of it again.
			echo(t, box.Path(), whole)
			assert.Len(t, drain(t, box), 4)
		})
	}
}

// Lines that are copied to the inbox's end are new work, whatever they say.
func TestCopiedLinesAreNoRestore(t *testing.T) {
	box := newBox(t, "")
	sendNumbers(t, box, 1, 2)
	drain(t, box)
	shell(t, box, "cat inbox.jsonl > x; cat x >> inbox.jsonl")
	assert.Equal(t, []string{"sent 1", "sent 2"}, drain(t, box))
}

// An entry's last outcome decides: a set-aside entry stays set aside, and a requeued one is delivered once.
func TestRestoredInboxWithDeadLetters(t *testing.T) {
	dead := func(t *testing.T, box *inbox.Inbox) {
		require.NotEmpty(t, turn(t, box))
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
	}
	again := func(t *testing.T, box *inbox.Inbox) {
		all, _, err := script.Letters(box)
		require.NoError(t, err)
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Requeue(all[len(all)-1], inbox.Mark{})
			require.NoError(t, err)
		})
	}
	answer := func(t *testing.T, box *inbox.Inbox) { require.NotEmpty(t, drain(t, box)) }
	type steps = []func(t *testing.T, box *inbox.Inbox)
	for name, c := range map[string]struct {
		before, after steps // another entry is answered in between
		want          []string
		settled       string
	}{
		"set aside":             {steps{dead}, nil, nil, "it is a dead letter"},
		"requeued":              {steps{dead}, steps{again}, []string{"sent 1"}, ""},
		"requeued and answered": {steps{dead, again, answer}, nil, nil, "it was answered before"},
		"requeued twice":        {steps{dead, again, dead}, steps{again}, []string{"sent 1"}, ""},
		"answered, copied, set aside, requeued": {
			steps{answer, func(t *testing.T, box *inbox.Inbox) { shell(t, box, "cat inbox.jsonl > x; cat x >> inbox.jsonl") }, dead},
			steps{again}, []string{"sent 1"}, "",
		},
		"canceled": {steps{func(t *testing.T, box *inbox.Inbox) { cancel(t, box, "sent 1") }}, nil, nil, "it is a dead letter"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			sendNumbers(t, box, 1, 1)
			old := backUp(t, box)
			for _, step := range c.before {
				step(t, box)
			}
			send(t, box, inbox.Message{Text: "last"})
			require.Equal(t, []string{"last"}, drain(t, box))
			for _, step := range c.after {
				step(t, box)
			}
			restoreFiles(t, box, "cp", old, "inbox.jsonl")
			assert.Equal(t, c.want, drain(t, box))
			if c.settled != "" {
				assert.Contains(t, eventsOf(t, box, inbox.EventSettled), c.settled)
			}
		})
	}
}

// A scheduled entry is not also delivered from an older copy.
func TestRestoredInboxWithWhatWasPutOff(t *testing.T) {
	box := newBox(t, "")
	sendNumbers(t, box, 1, 1)
	old := backUp(t, box)
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("later", noon.Add(time.Hour))) })
	send(t, box, inbox.Message{Text: "last"})
	require.Equal(t, []string{"last"}, drain(t, box))
	restoreFiles(t, box, "cp", old, "inbox.jsonl")
	assert.Empty(t, drain(t, box))
	assert.Equal(t, []string{"it was put off, and waits for its time"}, eventsOf(t, box, inbox.EventSettled))
	scheduled, err := box.Scheduled()
	require.NoError(t, err)
	assert.Len(t, scheduled, 1)
}

var stateFiles = []string{".inbox-journal", ".inbox-offset", ".in-flight", ".responded", ".inbox-lock"}

// An older copy of the state alone comes back: entries with a result, whoever wrote their lines,
// are not done again, nor is the entry that was in flight then.
func TestRestoredStateDoesNothingTwice(t *testing.T) {
	strict(t)
	sets := map[string][]string{
		"all":                 stateFiles,
		"the journal":         stateFiles[:1],
		"without the lock":    stateFiles[:4],
		"without the journal": stateFiles[1:],
		"journal and cursor":  stateFiles[:2],
		"journal and lock":    {stateFiles[0], stateFiles[4]},
		"all but the cursor":  {stateFiles[0], stateFiles[2], stateFiles[3], stateFiles[4]},
	}
	moments := map[string]func(t *testing.T, box *inbox.Inbox){
		"in flight": func(t *testing.T, box *inbox.Inbox) { turn(t, box) },
		"nothing in flight": func(t *testing.T, box *inbox.Inbox) {
			turn(t, box)
			acknowledge(t, box, "done")
		},
		"given back": func(t *testing.T, box *inbox.Inbox) {
			turn(t, box)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
		},
		"a second attempt": func(t *testing.T, box *inbox.Inbox) {
			turn(t, box)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
			turn(t, box)
		},
	}
	for set, names := range sets {
		for moment, until := range moments {
			if set == "without the journal" && !strings.Contains("in flight, a second attempt", moment) {
				continue // the journal is right, and a cursor that is set back asks for what follows
			}
			for _, how := range restoredOnce() {
				for settled := 1; settled <= 3; settled += long.Rounds(2, 1) {
					for _, atWork := range []bool{false, true} {
						if !long.Wanted() && atWork == (settled == 1) {
							continue
						}
						t.Run(fmt.Sprint(set, " ", moment, " ", how, " ", settled, " ", atWork), func(t *testing.T) {
							t.Parallel()
							box := newBox(t, "")
							sendNumbers(t, box, 1, 2)
							echo(t, box.Path(), "echo 3\n")
							turn(t, box)
							until(t, box)
							old := backUp(t, box)
							echo(t, box.Path(), "echo 4\n")
							sendNumbers(t, box, 5, 6)
							for range settled {
								turn(t, box)
							}
							if !atWork {
								in(t, box, func(tx *inbox.Tx) {
									if tx.InFlight() != nil {
										require.NoError(t, tx.Acknowledge("done"))
									}
								})
							}
							restoreFiles(t, box, how, old, names...)
							before := len(results(t, box))
							drain(t, box)
							assert.Empty(t, answeredTwice(t, box))
							assert.Equal(t, max(6, before), len(results(t, box)))
							if set == "all" && before > 2 {
								assert.Contains(t, restoreTold(t, box), "the state beside the inbox is older than the results")
								assert.Len(t, eventsOf(t, box, inbox.EventOlder), 1)
							}
							assert.Empty(t, drain(t, box))
						})
					}
				}
			}
		}
	}
}

// restoredOnce are the ways that every run tries. A long run tries all.
func restoredOnce() []string {
	if long.Rounds(0, 1) == 1 {
		return slices.Sorted(maps.Keys(restores))
	}
	return []string{"cp -a", "new"}
}

// An entry that was scheduled then, and has since been answered, does not come again.
func TestRestoredScheduleDoesNothingTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	at := func(when time.Duration) *inbox.Inbox {
		box, err := inbox.Open(path, inbox.Options{Now: func() time.Time { return noon.Add(when) }})
		require.NoError(t, err)
		return box
	}
	box := at(0)
	for _, text := range []string{"soon", "late"} {
		send(t, box, inbox.Message{Text: text, NotBefore: noon.Add(map[string]time.Duration{"soon": time.Hour, "late": 3 * time.Hour}[text])})
	}
	old := backUp(t, box)
	box = at(2 * time.Hour)
	require.Equal(t, []string{"soon"}, drain(t, box))
	restoreFiles(t, box, "cp -a", old, append(stateFiles, ".scheduled.jsonl")...)
	assert.Empty(t, drain(t, box))
	scheduled, err := box.Scheduled()
	require.NoError(t, err)
	assert.Len(t, scheduled, 1)
	assert.Equal(t, []string{"late"}, drain(t, at(4*time.Hour)))
}

// forgedResult answers a waiting entry. first is the number of a delivery, or 0 for none.
func forgedResult(w inbox.Waiting, first int64) string {
	s := fmt.Sprintf(`{"entry_id":%q,"id":%q,"start_offset":%d,"end_offset":%d,"attempt":1,"delivered_at":"2026-01-01T00:00:00Z","acknowledged_at":"2026-01-01T00:00:00Z","reply":"forged"`, w.EntryID, w.ID, w.Start, w.End)
	if first > 0 {
		s += fmt.Sprintf(`,"first_seq":%d`, first)
	}
	return s + "}\n"
}

// A result that somebody wrote by hand settles nothing in ordinary delivery, and a repository's
// settles nothing at all.
func TestForgedResultsSettleNothing(t *testing.T) {
	t.Run("appended", func(t *testing.T) {
		strict(t)
		box := newBox(t, "")
		sendNumbers(t, box, 1, 2)
		turn(t, box)
		echo(t, box.ResultsPath(), forgedResult(waits(t, box)[0], 0))
		echo(t, box.ResultsPath(), forgedResult(waits(t, box)[0], 1))
		assert.Equal(t, []string{"sent 2"}, drain(t, box))
		assert.Empty(t, restoreTold(t, box))
	})
	t.Run("in a repository", func(t *testing.T) {
		strict(t)
		ours := newBox(t, "")
		sendNumbers(t, ours, 1, 2)
		echo(t, ours.ResultsPath(), forgedResult(waits(t, ours)[1], 1000))
		box := brought(t, ours.Dir(), false)
		assert.Equal(t, []string{"sent 1", "sent 2"}, drain(t, box))
	})
}

// After a kill or a power loss at any call, a line that came back is settled, once, and no other is.
func TestSettledBeforeAtEveryCall(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			box := open(t, filepath.Join(dir, "inbox.jsonl"))
			sendNumbers(t, box, 1, 2)
			echo(t, box.Path(), "echo\n")
			old := read(t, box.Path())
			drain(t, box)
			sendNumbers(t, box, 3, 3)
			drain(t, box)
			rewrite(t, box.Path(), old)
		},
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "turn", Args: []string{filepath.Join(dir, "inbox.jsonl")}}
		},
	}
	check := func(t *testing.T, c crash.Crash) {
		box := open(t, filepath.Join(c.Dir, "inbox.jsonl"))
		drain(t, box)
		var prompts []string
		for _, r := range results(t, box) {
			prompts = append(prompts, r.Prompt)
		}
		assert.Equal(t, []string{"sent 1", "sent 2", "echo", "sent 3", "echo"}, prompts)
		assert.Len(t, eventsOf(t, box, inbox.EventSettled), 2)
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("power loss", func(t *testing.T) {
		s.EveryPowerLoss(t, 1, 2, func(t *testing.T, c crash.Crash) {
			reboot(t, "after the power loss")
			check(t, c)
		})
	})
}

// Only as many lines are settled at a time as one commit can report, and each look at the results
// serves many.
func TestManyRestoredLines(t *testing.T) {
	t.Parallel()
	const n = 2500
	box := newBox(t, "")
	var all []inbox.Message
	for i := range n {
		all = append(all, inbox.Message{Text: fmt.Sprint(i)})
	}
	_, err := box.AppendAll(t.Context(), all, 0)
	require.NoError(t, err)
	var b strings.Builder
	for _, w := range waits(t, box) {
		b.WriteString(forgedResult(w, 1))
	}
	old := read(t, box.Path())
	write(t, box.ResultsPath(), b.String())
	write(t, beside(box, ".inbox-offset"), fmt.Sprint(len(old)))
	send(t, box, inbox.Message{Text: "last"})
	drain(t, box)
	rewrite(t, box.Path(), old)
	for more := true; more; {
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Next(inbox.Mark{})
			if more = errors.Is(err, inbox.ErrMore); !more {
				require.ErrorIs(t, err, inbox.ErrEmpty)
			}
		})
	}
	assert.Len(t, eventsOf(t, box, inbox.EventSettled), n)
}

// Random work, with backups of the inbox, the state or both restored at random moments: nothing is
// answered twice, and nothing is lost unless no file had it any more.
func TestRandomRestores(t *testing.T) {
	for seed := range uint64(long.Rounds(20, 600)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			box := newBox(t, "")
			sent, mayBeLost, since, old, done := 0, map[string]bool{}, map[string]bool{}, "", []string{}
			pending := func() (all []string) {
				content := read(t, box.Path())
				for i := 1; i <= sent; i++ {
					if text := fmt.Sprint("sent ", i, "."); !strings.Contains(content, text) {
						all = append(all, text)
					}
				}
				return all
			}
			steps := []func() string{
				func() string {
					sent++
					send(t, box, inbox.Message{Text: fmt.Sprint("sent ", sent, ".")})
					return "send"
				},
				func() string { return "turn " + turn(t, box) },
				func() string { return "turn " + turn(t, box) },
				func() string {
					in(t, box, func(tx *inbox.Tx) {
						if tx.InFlight() != nil {
							require.NoError(t, tx.GiveBack("", r.IntN(2) == 0))
						}
					})
					return "give back"
				},
				func() string {
					in(t, box, func(tx *inbox.Tx) {
						if tx.InFlight() != nil {
							require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned))
						}
					})
					return "dead letter"
				},
				func() string {
					letters, _, err := script.Letters(box)
					require.NoError(t, err)
					letters = slices.DeleteFunc(letters, func(l inbox.Letter) bool { return box.Requeueable(l) != nil })
					if len(letters) > 0 {
						in(t, box, func(tx *inbox.Tx) {
							_, err := tx.Requeue(letters[0], inbox.Mark{})
							require.NoError(t, err)
							since[letters[0].Text()] = true
						})
					}
					return "requeue"
				},
				func() string {
					if sent > 0 { // without any state all is read, as if it were new
						old, since = backUp(t, box), map[string]bool{}
					}
					return "back up"
				},
				func() string {
					names := [][]string{{"inbox.jsonl"}, stateFiles, append([]string{"inbox.jsonl"}, stateFiles...)}[r.IntN(3)]
					if old == "" {
						return "nothing to restore"
					}
					for _, name := range names { // files that the backup lacks were not there
						if _, err := os.Stat(filepath.Join(old, name)); os.IsNotExist(err) {
							_ = os.Remove(beside(box, name))
						}
					}
					restoreFiles(t, box, restoredOnce()[r.IntN(len(restoredOnce()))], old, names...)
					for _, text := range pending() {
						mayBeLost[text] = true
					}
					if slices.Contains(names, "inbox.jsonl") { // and with it the lines that were requeued since
						maps.Copy(mayBeLost, since)
					}
					return fmt.Sprint("restore ", names)
				},
			}
			for range 25 {
				done = append(done, steps[r.IntN(len(steps))]())
			}
			drain(t, box)
			settled := map[string]int{}
			for _, r := range results(t, box) {
				settled[r.Prompt]++
				require.Equal(t, 1, settled[r.Prompt], "%s is answered twice: %v", r.Prompt, done)
			}
			letters, _, err := script.Letters(box)
			require.NoError(t, err)
			for _, l := range letters {
				if l.RequeuedAt == nil {
					settled[l.Text()]++
				}
			}
			for i := 1; i <= sent; i++ {
				text := fmt.Sprint("sent ", i, ".")
				require.True(t, settled[text] > 0 || mayBeLost[text], "%s is lost: %v", text, done)
			}
		})
	}
}

// Unreadable files do not count as read: an older state is recognised later.
func TestRestoredStateWhoseResultsCannotBeRead(t *testing.T) {
	for _, name := range []string{".results.jsonl", ".dead-letter.jsonl"} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			sendNumbers(t, box, 1, 3)
			deliver(t, box)
			old := backUp(t, box)
			if name == ".results.jsonl" {
				acknowledge(t, box, "did it")
			} else {
				in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
			}
			shell(t, box, "cp -a "+old+"/.in* "+old+"/.responded . && mv "+name+" away && ln -s nowhere "+name)
			_, err := box.Begin(t.Context())
			require.ErrorContains(t, err, "is older than "+name)
			assert.ErrorContains(t, err, "nothing is delivered until that can be read")
			shell(t, box, "mv away "+name)
			in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.InFlight(), "its outcome is known") })
			assert.Equal(t, []string{"sent 2", "sent 3"}, drain(t, box))
		})
	}
}
