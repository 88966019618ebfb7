package hook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// A child of these tests runs the command unchanged. Its outcome makes a promise: a printed
// decision, or an end without an error.
func init() {
	crash.Dispatch(map[string]func() int{"command": func() int {
		var said bytes.Buffer
		machine.TestOnlyTrustAll = true // a crash's state is examined in a copy
		endWhenBroken()
		status := anyCommand(os.Args[1:], cli.Streams{Command: hook.CommandName, In: os.Stdin, Out: promisingWriter{os.Stdout}, Err: io.MultiWriter(os.Stderr, &said)})
		if status == cli.ExitOK && !saysNothingChanged(said.String()) {
			crash.Promise("done")
		}
		promiseOfWake(status, said.String())
		return status
	}})
}

// saysNothingChanged reports whether stderr shows an error that the status hides: a hook that
// approves or reports an event has no other status.
func saysNothingChanged(stderr string) bool {
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EIO, unix.EROFS} {
		if strings.Contains(stderr, errno.Error()) && !strings.Contains(stderr, "committed, but") {
			return true
		}
	}
	return strings.Contains(stderr, "nothing was changed")
}

type promisingWriter struct{ to *os.File }

func (w promisingWriter) Write(b []byte) (int, error) {
	var d struct{ Reason string }
	if json.Unmarshal(b, &d) == nil && d.Reason != "" {
		crash.Promise("printed " + d.Reason)
	}
	return w.to.Write(b)
}

// inProcess runs the command in this process and returns what it printed.
func inProcess(t testing.TB, args []string, stdin string) string {
	t.Helper()
	in, err := os.CreateTemp(t.TempDir(), "stdin")
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	_, err = in.WriteString(stdin)
	require.NoError(t, err)
	_, err = in.Seek(0, 0)
	require.NoError(t, err)
	var out, stderr bytes.Buffer
	require.Equal(t, cli.ExitOK, anyCommand(args, cli.Streams{Command: hook.CommandName, In: in, Out: &out, Err: &stderr}), stderr.String())
	return out.String()
}

func TestKillAtEveryCall(t *testing.T) {
	for name, s := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.scenario().EveryKill(t, s.check)
		})
	}
}

// exhaustive means every call under every fault, with many draws of what a power loss takes.
// Otherwise each situation and each kind of fault meets some of the calls.
var exhaustive = long.Wanted()

func TestPowerLossAtEveryCall(t *testing.T) {
	rounds := 1
	switch {
	case exhaustive:
		rounds = 6
	case testing.Short():
		rounds = 0
	}
	for name, s := range situations {
		t.Run(name, func(t *testing.T) {
			s.scenario().EveryPowerLoss(t, 1, rounds, afterPowerLoss(s.check))
		})
	}
}

func TestKillThenPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: left out with -short")
	}
	all := map[string]int{
		"acknowledge and deliver": 0, "orphan to dead letter": 0, "recover deadletter": 0, "recover retry": 0, "send": 0,
		"a price is completed": 0, "a session that spent ends": 0, "bound": crash.OnlySynced, "turn failed": crash.OnlySynced,
		"promoted by a stop": crash.OnlySynced, "requeue": crash.OnlySynced, "purge": crash.OnlySynced, "compact": crash.OnlySynced,
	}
	if !exhaustive {
		all = map[string]int{"acknowledge and deliver": 0, "requeue": crash.OnlySynced}
	}
	for name, rounds := range all {
		s := situations[name]
		t.Run(name, func(t *testing.T) {
			s.scenario().EveryKillThenPowerLoss(t, 1, rounds, afterPowerLoss(s.check))
		})
	}
}

// afterPowerLoss lets the check see another boot.
func afterPowerLoss(check func(*testing.T, crash.Crash)) func(*testing.T, crash.Crash) {
	return func(t *testing.T, c crash.Crash) {
		machine.TestOnlyBootID = "the next boot"
		defer func() { machine.TestOnlyBootID = "" }()
		check(t, c)
	}
}

// TestFailAtEveryCall makes each call fail like a full or broken disk. The hook approves or
// delivers and says why, and nothing is lost once the disk works again.
func TestFailAtEveryCall(t *testing.T) {
	faults := []unix.Errno{unix.ENOSPC}
	if exhaustive {
		faults = append(faults, unix.EIO, unix.EROFS)
	}
	for _, errno := range faults {
		for name, s := range situations {
			t.Run(unix.ErrnoName(errno)+" "+name, func(t *testing.T) {
				t.Parallel()
				s.scenario().EveryFail(t, errno, func(t *testing.T, c crash.Crash) {
					assert.Equal(t, s.wakes && printedBy(c) != "", c.Result.ExitCode == hook.ExitWake)
					assert.Zero(t, c.Result.Signal)
					printed := strings.Contains(strings.Join(c.Promised, "\n"), "printed")
					if c.Result.ExitCode != cli.ExitOK || s.stdin != "" && !printed {
						assert.NotEmpty(t, c.Result.Stderr, "it failed without a sentence")
					}
					if printed && strings.HasSuffix(t.Name(), "-stays") {
						assert.NotContains(t, c.Result.Stderr, "do not show it yet", "the answer could not be recorded either")
					}
					s.check(t, c)
				})
			})
		}
	}
}

// TestKillAtEveryCallBesideAnother kills our hook in a Stop that another hook blocks. The turn's
// next Stop answers what was printed, or nothing of ours.
func TestKillAtEveryCallBesideAnother(t *testing.T) {
	const reply = "did what the linter asked for"
	s := situations["acknowledge and deliver"]
	s.scenario().EveryKill(t, func(t *testing.T, c crash.Crash) {
		inProcess(t, s.command(c.Dir, nil), crashStop("s0", true, reply))
		for _, r := range jsonLines[inbox.Result](t, filepath.Join(c.Dir, ".results.jsonl")) {
			if r.StartOffset > 0 {
				assert.Contains(t, c.Promised, "printed B", "nobody saw it, and yet it was answered: %+v", r)
			}
		}
	})
}
