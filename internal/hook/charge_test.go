package hook_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/hook"
)

func (s *spender) view() *inbox.View {
	box, err := inbox.Open(filepath.Join(s.dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(s.t, err)
	v, err := box.View()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, v.Close()) })
	return v
}

func (s *spender) notCounted() (reasons []string) {
	for _, e := range jsonLines[inbox.Event](s.t, filepath.Join(s.dir, ".events.jsonl")) {
		if e.Event == inbox.EventUncounted {
			assert.Equal(s.t, "s0", e.Session)
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// An unreadable transcript suspends the limits. The hook says so once, until the transcript counts again.
func TestATranscriptThatCannotBeRead(t *testing.T) {
	hook.SetLineWait(time.Millisecond)
	s := spending(t, "--max-tokens-per-entry", "3k").deliver()
	content, err := os.ReadFile(s.transcript())
	require.NoError(t, err)
	require.NoError(t, os.Remove(s.transcript()))
	require.NoError(t, unix.Mkfifo(s.transcript(), 0o600))
	for range 4 {
		require.Empty(t, s.event("PostToolBatch", ""))
	}
	require.Len(t, s.notCounted(), 1)
	assert.Contains(t, s.notCounted()[0], "not a regular file")
	assert.Contains(t, s.view().In("s0").Uncounted(), "not a regular file")
	require.NoError(t, os.Remove(s.transcript()))
	require.NoError(t, os.WriteFile(s.transcript(), content, 0o600))
	for range 3 {
		s.request()
	}
	require.Contains(t, s.event("PostToolBatch", ""), "tokens")
	assert.Empty(t, s.view().In("s0").Uncounted())
}

// A transcript that is moved away while its session writes on suspends them as well.
func TestATranscriptThatIsGone(t *testing.T) {
	hook.SetLineWait(time.Millisecond)
	s := spending(t, "--max-tokens-per-entry", "3k").deliver()
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
	require.NoError(t, os.Rename(s.transcript(), s.transcript()+".old"))
	require.Empty(t, s.event("PostToolBatch", ""))
	for _, next := range []string{"B", "C"} {
		require.Contains(t, s.event("Stop", `,"stop_hook_active":true,"last_assistant_message":"before `+next+`"`), `"reason":"`+next+`"`)
	}
	require.Len(t, s.notCounted(), 1)
	assert.Contains(t, s.notCounted()[0], "the transcript was moved or removed while its session ran")
	assert.Contains(t, s.view().In("s0").Uncounted(), "moved or removed")
}

// A Stop says so too, and the same cause makes no second event. Without limits nothing is said.
func TestATranscriptThatCannotBeReadAtAStop(t *testing.T) {
	for _, limits := range [][]string{{"--max-tokens-per-day", "30k"}, nil} {
		s := spending(t, limits...).deliver()
		require.NoError(t, os.Remove(s.transcript()))
		require.NoError(t, os.Mkdir(s.transcript(), 0o700))
		stop := func(reply string) string {
			return s.event("Stop", `,"stop_hook_active":true,"last_assistant_message":"`+reply+`"`)
		}
		require.Contains(t, stop("did A"), `"reason":"B"`, "what cannot be counted keeps nobody from being served")
		require.Contains(t, stop("did B"), `"reason":"C"`)
		assert.Len(t, s.notCounted(), len(limits)/2)
	}
}

// A second client of the session begins and ends beside an entry's turn, and then another session begins. The entry's limit
// holds all the same.
func TestALimitBesideASecondClient(t *testing.T) {
	hook.SetLineWait(time.Millisecond)
	t.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
	t.Setenv("CLAUDE_PID", strconv.Itoa(os.Getpid()))
	s := spending(t, "--max-tokens-per-entry", "3k").deliver()
	s.request()
	t.Setenv("CLAUDE_PID", strconv.Itoa(os.Getppid()))
	require.Empty(t, s.event("SessionStart", `,"source":"resume"`))
	require.Empty(t, s.event("UserPromptSubmit", `,"prompt_id":"p-2","prompt":"a person"`))
	s.user("a person")
	require.Empty(t, s.event("SessionEnd", ""))
	require.Empty(t, inProcess(t, s.args, `{"hook_event_name":"SessionStart","session_id":"s1","source":"startup"}`))
	t.Setenv("CLAUDE_PID", strconv.Itoa(os.Getpid()))
	s.request()
	require.Empty(t, s.event("PostToolBatch", ""))
	s.request()
	require.Contains(t, s.event("PostToolBatch", ""), "tokens")
	require.Len(t, s.letters(), 1)
	assert.Equal(t, inbox.ReasonOverBudget, s.letters()[0].Reason)
}

// Only the hook that a launcher wired notes a start that is its session's.
func TestStartsOutsideOfALauncher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for session, flags := range map[string][]string{"hers": nil, "own": {"--launched"}} {
		inProcess(t, append(flags, "--inbox", path), `{"hook_event_name":"SessionStart","session_id":"`+session+`","source":"startup"}`)
	}
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	for session, want := range map[string]bool{"hers": true, "own": false} {
		_, _, outside := agent.StartOf(v.In(session).Known().StartNote)
		assert.Equal(t, want, outside, session)
	}
}
