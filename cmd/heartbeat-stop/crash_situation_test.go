package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/disktest"
)

// situation is a state of an inbox of the entries A, B and C, and a command
// that changes it.
type situation struct {
	entries string // what is in the inbox; A, B and C when empty
	turns   int    // Stops of session s0 before: the last one's entry is in flight
	args    []string
	stdin   string
	policy  string // of the session that comes after the crash
	sent    string // what the command itself appends
}

const lines = "A\nB\nC\n"

func crashStop(session string, active bool, reply string) string {
	return fmt.Sprintf(`{"hook_event_name":"Stop","session_id":%q,"prompt_id":"p-%s","stop_hook_active":%v,"last_assistant_message":%q}`,
		session, session, active, reply)
}

var situations = map[string]situation{
	"first delivery":            {stdin: crashStop("s0", false, "ready")},
	"acknowledge and deliver":   {turns: 1, stdin: crashStop("s0", true, "reply to A")},
	"acknowledge and approve":   {entries: "A\n", turns: 1, stdin: crashStop("s0", true, "reply to A")},
	"orphan to dead letter":     {turns: 1, stdin: crashStop("s1", false, "ready")},
	"orphan to retry":           {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "retry"}, policy: "retry"},
	"orphan exhausted":          {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "retry", "--max-attempts", "1"}, policy: "retry"},
	"orphan dropped":            {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "drop"}},
	"nothing to deliver inside": {entries: "\"\"\nA\nB\nC\n", stdin: crashStop("s0", false, "ready")},
	"failure noted":             {turns: 1, stdin: `{"hook_event_name":"StopFailure","session_id":"s0","error":"overloaded"}`},
	"session noted":             {stdin: `{"hook_event_name":"SessionStart","session_id":"s0"}`},
	"inbox refilled":            {entries: "A\nB\nC\nrefilled", turns: 2, stdin: crashStop("s0", true, "reply to B")},
	"recover deadletter":        {turns: 1, args: []string{"recover"}},
	"recover retry":             {turns: 1, args: []string{"recover", "--on-orphan", "retry"}, policy: "retry"},
	"recover drop":              {turns: 1, args: []string{"recover", "--on-orphan", "drop"}},
	"send":                      {args: []string{"send", "--id", "sent", "D"}, sent: "D"},
	"send into a new inbox":     {entries: "none", args: []string{"send", "--id", "sent", "D"}, sent: "D"},
	"send behind a torn line":   {entries: "A\nB\nC", args: []string{"send", "--settle", "0", "--id", "sent", "D"}, sent: "D"},
	"journal trimmed":           {turns: -1, stdin: crashStop("s0", true, "reply to A")},
}

func (s situation) inbox(dir string) string { return filepath.Join(dir, "inbox.jsonl") }

func (s situation) setup(t testing.TB, dir string) {
	content := s.entries
	switch {
	case content == "none":
		return
	case content == "" || strings.HasSuffix(content, "refilled"):
		content = lines
	}
	require.NoError(t, os.WriteFile(s.inbox(dir), []byte(content), 0o600))
	turns := s.turns
	if turns < 0 {
		fillJournal(t, dir)
		turns = 1
	}
	for i := range turns {
		reply := "ready"
		if i > 0 {
			reply = "reply to " + string(rune('A'+i-1))
		}
		require.Contains(t, inProcess(t, []string{"--inbox", s.inbox(dir)}, crashStop("s0", i > 0, reply)), "block")
	}
	if strings.HasSuffix(s.entries, "refilled") {
		require.NoError(t, os.WriteFile(s.inbox(dir), []byte("D\nE\n"), 0o600))
	}
}

// fillJournal leaves a journal that the next commit makes long enough to trim.
func fillJournal(t testing.TB, dir string) {
	args := []string{"--inbox", filepath.Join(dir, "inbox.jsonl")}
	for i := 0; ; i++ {
		inProcess(t, args, fmt.Sprintf(`{"hook_event_name":"SessionStart","session_id":"%d-%s"}`, i, strings.Repeat("x", 3000)))
		journal, err := os.ReadFile(filepath.Join(dir, ".inbox-journal"))
		require.NoError(t, err)
		if len(bytes.TrimRight(journal, "\x00")) > 215<<10 {
			return
		}
	}
}

func (s situation) scenario() disktest.Scenario {
	return disktest.Scenario{
		Setup: s.setup,
		Run: func(dir string) disktest.Command {
			args := s.args
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				args = append([]string{"--inbox", s.inbox(dir)}, args...)
			} else {
				args = append([]string{args[0], "--inbox", s.inbox(dir)}, args[1:]...)
			}
			return disktest.Command{Name: "command", Args: args, Stdin: s.stdin}
		},
	}
}
