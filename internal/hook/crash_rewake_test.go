package hook_test

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/testing/crash"
	recovery "heartbeat/recover"
)

func init() { maps.Copy(situations, rewakeSituations) }

const (
	wakeText   = "<system-reminder>\nStop hook blocking error from command \"Stop\": A\n</system-reminder>"
	promptOfA  = `{"hook_event_name":"UserPromptSubmit","session_id":"s0","prompt_id":"p-s0","prompt":"%s"}`
	failedTurn = `{"hook_event_name":"StopFailure","session_id":"s0","prompt_id":"p-s0","error":%q}`
	asking     = `{"hook_event_name":"Notification","session_id":"s0","notification_type":"permission_prompt","message":"may I?"}`
)

var (
	rewake = []string{"--rewake"}
	// noClient is a session whose process is gone: the hook reports the event and does not wait.
	noClient = []string{"CLAUDE_PID=99999999"}
	// tooLong is an entry that is handed over in a file.
	tooLong = "L" + strings.Repeat("x", 200_000)
)

// The background hook commits the event and its own waiting, and later the delivery with which it
// wakes the session.
var rewakeSituations = map[string]situation{
	"woken":                   {turns: 1, args: rewake, stdin: crashStop("s0", true, "reply to A"), wakes: true, holds: handedOverOrNot},
	"answered after waking":   {prepare: bound, args: rewake, stdin: crashStop("s0", false, "reply to A"), wakes: true, holds: handedOverOrNot},
	"woken, its check passes": {prepare: boundChecked, args: rewake, wired: []string{"--check", "true"}, stdin: crashStop("s0", false, "reply to A"), wakes: true, holds: handedOverOrNot},
	"woken, its check fails":  {prepare: boundChecked, args: rewake, wired: []string{"--check", unmet}, stdin: crashStop("s0", false, "A is done"), wakes: true, holds: unanswered},
	"woken, its check fails, to retry": {
		prepare: boundChecked, args: rewake, wired: []string{"--check", unmet}, stdin: crashStop("s0", false, "A is done"), wakes: true, holds: unanswered, policy: "retry",
	},
	"handed over again": {prepare: givenBack, args: rewake, stdin: crashStop("s0", false, "ready"), wakes: true, holds: handedOverOrNot},
	"bound": {
		prepare: announcedBefore, args: rewake, stdin: fmt.Sprintf(promptOfA, strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(wakeText)),
		holds: answeredByItsTurn,
	},
	"turn failed": {
		prepare: bound, args: rewake, env: noClient, stdin: fmt.Sprintf(failedTurn, "overloaded"),
		then: []string{"resume"}, holds: failedOrNot(0),
	},
	"turn failed for good": {
		prepare: bound, args: []string{"--rewake", "--max-attempts", "1"}, env: noClient, stdin: fmt.Sprintf(failedTurn, "invalid_request"),
		then: []string{"resume"}, holds: failedOrNot(1),
	},
	"paused by authentication": {
		prepare: bound, args: rewake, env: noClient, stdin: fmt.Sprintf(failedTurn, "authentication_failed"),
		then: []string{"resume"}, holds: failedOrNot(0),
	},
	"spilled": {
		entries: "A\n" + tooLong + "\nC\n", turns: 1, args: rewake, stdin: crashStop("s0", true, "reply to A"),
		wakes: true, holds: spilledWhole,
	},
	"spilled and answered": {
		entries: tooLong + "\nB\nC\n", prepare: bound, args: rewake, stdin: crashStop("s0", false, "reply to "+tooLong),
		wakes: true, holds: spilledWhole,
	},
	"spilled and answered to a hook that blocks": {
		entries: tooLong + "\nB\nC\n", prepare: bound, stdin: crashStop("s0", false, "reply to "+tooLong), holds: spillGone,
	},
	"asked": {turns: 1, stdin: asking, holds: asksIfSaid},
}

// bound puts the first entry in flight, with session s0 working on it.
func bound(t testing.TB, s situation, dir string) { inFlightOfWoken(t, s, dir, true) }

// boundChecked is bound with a check that the entry has to pass.
func boundChecked(t testing.TB, s situation, dir string) {
	bound(t, s, dir)
	s.commit(t, dir, func(_ *inbox.Inbox, tx *inbox.Tx) { require.NoError(t, tx.NoteCheck(inbox.Check{Name: "check"})) })
}

// inFlightOfWoken delivers the first entry to session s0 by waking it.
func inFlightOfWoken(t testing.TB, s situation, dir string, bound bool) {
	t.Helper()
	s.commit(t, dir, func(box *inbox.Inbox, tx *inbox.Tx) {
		hook.DeliverWoken(t, box, tx, filepath.Join(dir, "transcript.jsonl"), bound)
	})
}

// commit changes the inbox before the command does.
func (s situation) commit(t testing.TB, dir string, f func(box *inbox.Inbox, tx *inbox.Tx)) {
	t.Helper()
	s.settle(t, dir, func(box *inbox.Inbox, tx *inbox.Tx) {
		f(box, tx)
		require.NoError(t, tx.Commit())
	})
}

// announcedBefore leaves A handed over, and a transcript in which the client has announced A.
func announcedBefore(t testing.TB, s situation, dir string) {
	path := filepath.Join(dir, "transcript.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	inFlightOfWoken(t, s, dir, false)
	line := fmt.Sprintf(`{"type":"user","promptId":"p-s0","message":{"role":"user","content":%q}}`+"\n", wakeText)
	require.NoError(t, os.WriteFile(path, []byte(line), 0o600))
}

// givenBack leaves A in the queue after an attempt that did not count.
func givenBack(t testing.TB, s situation, dir string) {
	bound(t, s, dir)
	s.commit(t, dir, func(_ *inbox.Inbox, tx *inbox.Tx) { require.NoError(t, tx.GiveBack("overloaded", false)) })
}

// promiseOfWake turns a hook's status and stderr into promises: hook.ExitWake hands over exactly one entry.
func promiseOfWake(status int, stderr string) {
	if status&0xff != hook.ExitWake {
		return
	}
	crash.Promise("done")
	text := strings.TrimSuffix(ownPreamble.ReplaceAllString(stderr, ""), "\n")
	if file := spillNote.FindStringSubmatch(text); file != nil {
		content, err := os.ReadFile(file[1])
		if err != nil {
			fatal(err)
		}
		text = string(content)
	}
	crash.Promise("printed " + text)
}

var (
	ownPreamble = regexp.MustCompile(`\AThis is the next request .*:\n\n`)
	spillNote   = regexp.MustCompile(`\AThe request is too long to be handed over here \(\d+ bytes\)\. It is in the file (.*): read all of it, in parts if need be, and carry it out\.\z`)
)

// endWhenBroken ends a waiting hook whose disk stays broken, and shortens its wait for a disk that recovers. It
// catches the signal, so that a hook that does not wait continues however long its calls take.
func endWhenBroken() {
	hook.SetFirstRetry(10 * time.Millisecond)
	observer := disk.TestOnlyObserver
	if observer == nil || !slices.Contains(os.Args, "--rewake") {
		return
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	var first time.Time
	disk.TestOnlyObserver = func(op disk.Op) error {
		err := observer(op)
		switch {
		case err == nil:
		case first.IsZero():
			first = time.Now()
		case time.Since(first) > 20*time.Millisecond:
			_ = unix.Kill(os.Getpid(), syscall.SIGTERM) // otherwise it continues until the watchdog comes
		}
		return err
	}
}

// handedOverOrNot wants the entry that was handed over in flight. A hook that lived must not leave
// an entry in flight that it handed to nobody.
func handedOverOrNot(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		d := tx.InFlight()
		printed := printedBy(c)
		if printed != "" {
			require.NotNil(t, d, "it was handed over")
			assert.Equal(t, printed, d.Text())
			assert.True(t, recovery.EvidenceOf(d).Woken)
			w, err := tx.Waiter()
			require.NoError(t, err)
			assert.Nil(t, w, "it waits no more")
			if _, answer, answers := strings.Cut(s.stdin, "reply to "); answers {
				first := s.everything()[0]
				require.True(t, strings.HasPrefix(answer, first))
				assert.Equal(t, 1, readLedger(t, c.Dir).results[first])
			}
		} else if lived := c.Result.ExitCode == cli.ExitOK && c.Result.Signal == 0; lived && c.Result != (crash.Result{}) {
			t.Errorf("the hook left without an entry: %s", c.Result.Stderr)
		}
	})
}

func printedBy(c crash.Crash) string {
	for _, p := range c.Promised {
		if text, printed := strings.CutPrefix(p, "printed "); printed {
			return text
		}
	}
	return ""
}

// answeredByItsTurn ends the turn that the client announced, perhaps to a hook that was killed. The
// reply must answer the entry all the same.
func answeredByItsTurn(t *testing.T, s situation, c crash.Crash) {
	inProcess(t, s.command(c.Dir, nil), crashStop("s0", false, "reply to A"))
	assert.Equal(t, 1, readLedger(t, c.Dir).results["A"])
}

// shortestBackoff is shorter than any real back-off.
const shortestBackoff = 3 * time.Second

// failedOrNot wants all traces of the failed turn or none, and that many letters.
func failedOrNot(letters int) func(*testing.T, situation, crash.Crash) {
	return func(t *testing.T, s situation, c crash.Crash) {
		held := false
		s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
			b, err := tx.Holds().Backoff()
			require.NoError(t, err)
			p, err := tx.Holds().Paused()
			require.NoError(t, err)
			session := tx.In("s0").Known()
			held = session.Failure != nil
			assert.Equal(t, held, tx.InFlight() == nil, "settled, and held, in one")
			if !held || time.Since(session.Failure.At) < shortestBackoff { // a busy machine may come later
				assert.Equal(t, held, b != nil || p != nil)
			}
		})
		assert.True(t, held || !done(c), "it was said")
		if held {
			assert.Equal(t, letters, readLedger(t, c.Dir).letters["A"])
		}
	}
}

// spilledWhole wants the whole text in the file that the entry in flight names. compact must leave
// no other such file.
func spilledWhole(t *testing.T, s situation, c crash.Crash) {
	handedOverOrNot(t, s, c)
	inProcess(t, s.command(c.Dir, []string{"compact"}), "")
	kept := 0
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		d := tx.InFlight()
		if d == nil || recovery.EvidenceOf(d).Spill == "" {
			return
		}
		kept = 1
		content, err := os.ReadFile(filepath.Join(c.Dir, filepath.Base(recovery.EvidenceOf(d).Spill)))
		require.NoError(t, err)
		assert.True(t, d.Text() == string(content), "%d bytes, want %d", len(content), len(d.Text()))
	})
	names, err := filepath.Glob(filepath.Join(c.Dir, ".woken-*"))
	require.NoError(t, err)
	assert.Len(t, names, kept)
}

// spillGone wants no spill file after compact, since nothing is spilled any more.
func spillGone(t *testing.T, s situation, c crash.Crash) {
	if printedBy(c) == "B" {
		assert.NotContains(t, c.Result.Stderr, "nothing was changed", "it delivered")
		inProcess(t, s.command(c.Dir, []string{"compact"}), "")
		names, err := filepath.Glob(filepath.Join(c.Dir, ".woken-*"))
		require.NoError(t, err)
		assert.Empty(t, names)
	}
}

// asksIfSaid wants the question that was confirmed.
func asksIfSaid(t *testing.T, s situation, c crash.Crash) {
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		session := tx.In("s0").Known()
		if session.Asks == nil {
			assert.False(t, done(c), "it was said to be noted")
			return
		}
		assert.Equal(t, "may I?", session.Asks.Text)
	})
}
