package claude_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/claude"
)

func TestWithoutIdentity(t *testing.T) {
	environ := []string{
		"HOME=h", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=s", "CLAUDE_CONFIG_DIR=c", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDECODE2=kept",
		"CLAUDE_PID=7", "PATH=a=b", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0",
	}
	before := append([]string(nil), environ...)
	assert.Equal(t, []string{
		"HOME=h", "CLAUDE_CONFIG_DIR=c", "CLAUDECODE2=kept", "PATH=a=b", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0",
	}, claude.WithoutIdentity(environ))
	assert.Equal(t, before, environ, "the caller's own is left alone")
	assert.Equal(t, []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PID"}, claude.Identity(environ))
	assert.Empty(t, claude.Identity(claude.WithoutIdentity(environ)))
}

func TestPID(t *testing.T) {
	for value, want := range map[string]int{"": 0, "42": 42, "0": 0, "-1": 0, "x": 0, "42 ": 0, "99999999999999999999": 0} {
		t.Setenv("CLAUDE_PID", value)
		assert.Equal(t, want, claude.PID(), "%q", value)
	}
}
