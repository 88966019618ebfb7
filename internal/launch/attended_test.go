package launch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// At a terminal the session itself is shown, keys are passed on to each of several
// sessions, and the terminal is left as it was.
func TestManagedAtATerminal(t *testing.T) {
	t.Parallel()
	s := sit(t, "sh", "-c", `printf 'typed\ndie\ntyped again\n' > inbox.jsonl; printf '#!/bin/sh\necho "a session"\nexec claude "$@"\n' > shown; chmod +x shown
		heartbeat-launch --inbox inbox.jsonl --record cast -- ./shown begin; status=$?; cat .results.jsonl; exit $status`)
	s.Prints("a session")
	s.Types("first\r")
	s.Prints("first")
	s.Printed = ""
	s.Prints("a session")
	s.Types("second\r")
	s.Prints("drained: 2 answered, 1 dead-lettered; 2 sessions (1 restart)")
	s.Prints(`"reply":"first`)
	s.Prints(`"reply":"second`)
	s.Leaves(3)
	recorded, err := os.ReadFile(filepath.Join(s.Cmd.Dir, "cast"))
	require.NoError(t, err)
	assert.Contains(t, string(recorded), "a session")
}

// If a person ends the session at the terminal, the work ends.
func TestManagedQuitAtTheTerminal(t *testing.T) {
	s := sit(t, "sh", "-c", `printf 'quit\nlater\n' > inbox.jsonl; exec heartbeat-launch --inbox inbox.jsonl --on-orphan drop -- claude begin`)
	s.Prints("quit: 0 answered, 1 dropped, 1 queued; 1 session, ")
	s.Prints(": the session was ended at the terminal")
	s.Leaves(75)
}

// At a terminal the end of a limit is waited for without a flag, as is said outside of the
// session's screen, and Ctrl-C ends the wait.
func TestManagedLimitAtATerminal(t *testing.T) {
	t.Parallel()
	const script = `printf 'limited met try again in 3 hours\ntwo\n' > inbox.jsonl; exec heartbeat-launch --inbox inbox.jsonl -- claude begin`
	const waits = ", then the limit is over: rate_limit: try again in 3 hours (Ctrl-C ends it)"
	t.Run("it ends", func(t *testing.T) {
		t.Parallel()
		s := sit(t, "sh", "-c", script)
		s.Prints("limits: none; an API limit or an outage is waited out")
		s.Prints(waits)
		resume := exec.Command("heartbeat", "resume", "--inbox", "inbox.jsonl")
		resume.Dir = s.Cmd.Dir
		out, err := resume.CombinedOutput()
		require.NoError(t, err, string(out))
		s.Prints("drained: 2 answered, 1 redelivered; 2 sessions")
		s.Leaves(0)
	})
	t.Run("a person ends it", func(t *testing.T) {
		t.Parallel()
		s := sit(t, "sh", "-c", script)
		s.Prints(waits)
		s.Types("\x03")
		s.Prints("signal: 0 answered, 1 redelivered, 2 queued; 1 session")
		s.Leaves(130)
	})
}
