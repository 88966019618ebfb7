package launch_test

import (
	"os"
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
	s.sees("a session")
	s.types("first\r")
	s.sees("first")
	s.shown = ""
	s.sees("a session")
	s.types("second\r")
	s.sees("drained: 2 answered, 1 dead-lettered; 2 sessions (1 restart)")
	s.sees(`"reply":"first`)
	s.sees(`"reply":"second`)
	s.leaves(3)
	recorded, err := os.ReadFile(filepath.Join(s.cmd.Dir, "cast"))
	require.NoError(t, err)
	assert.Contains(t, string(recorded), "a session")
}

// If a person ends the session at the terminal, the work ends.
func TestManagedQuitAtTheTerminal(t *testing.T) {
	s := sit(t, "sh", "-c", `printf 'quit\nlater\n' > inbox.jsonl; exec heartbeat-launch --inbox inbox.jsonl --on-orphan drop -- claude begin`)
	s.sees("quit: 0 answered, 1 dropped, 1 queued; 1 session, ")
	s.sees(": the session was ended at the terminal")
	s.leaves(75)
}
