package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
)

// A prompt that was handed over as a file is answered if the client has opened that.
func TestPromptInAFile(t *testing.T) {
	const (
		unread = "claude exited with code 0; 0 of 1 prompt answered, 1 replied to without opening the file that the text was in"
		read   = `{"file_path":"FILE"}`
	)
	for name, c := range map[string]struct {
		reads, kill, error string
		noHooks            bool
	}{
		"read":                            {reads: read},
		"found by a pattern":              {reads: `{"command":"cat /x/inbox/.entry-*"}`},
		"read, and the host killed":       {reads: read, kill: "settled"},
		"read, and no hook ran":           {reads: read, noHooks: true},
		"never read":                      {error: unread},
		"never read, and no hook ran":     {error: unread, noHooks: true},
		"not to be read":                  {reads: read + " fails", error: unread},
		"another file read":               {reads: `{"file_path":"/x/.entry-1-2-ab.txt"}`, error: unread},
		"never read, and the host killed": {kill: "settled", error: unread},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, strings.Repeat("a long text ", 4<<20/12))
			r.Config.Env = map[string]string{readsVariable: c.reads}
			if c.noHooks {
				r.Config.Env[agent.NoHooksVariable] = "1"
			}
			cmd := r.command()
			cmd.Env = append(cmd.Env, killVariable+"="+c.kill)
			_ = cmd.Run() // it may be killed
			r.until("the session is reported", func() bool { s, _ := r.guild.Session("ses-1"); return s.Record.Applied == 1 })
			r.alone()
			report := r.report()
			entries := report["entries"].(map[string]any)
			first := entries["each"].([]any)[0].(map[string]any)
			assert.Regexp(t, `^\.entry-0-\d+-[0-9a-f]{12}\.txt$`, first["file"])
			if c.error == "" {
				assert.Equal(t, "completed", report["status"], report["error"])
				assert.Equal(t, "answered", first["fate"])
				assert.Equal(t, 1.0, entries["answered"])
			} else {
				assert.Equal(t, "failed", report["status"])
				assert.Equal(t, c.error, report["error"])
				assert.Equal(t, "unread", first["fate"])
				assert.Equal(t, "its text was handed over as a file, which no call of a tool opened", first["why"])
				assert.Equal(t, []any{0.0, 1.0}, []any{entries["answered"], entries["unread"]})
			}
			r.isClean()
		})
	}
}

// What a session has opened counts in its next life, too.
func TestPromptInAFileBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Repeat("a long text ", 4<<20/12))
	r.Config.Env = map[string]string{readsVariable: `{"file_path":"FILE"}`}
	r.run()
	require.Equal(t, "completed", r.report()["status"])
	r.Resume, r.Config.Prompt = true, "hello"
	r.guild.Expect("ses-1")
	_, o := r.run()
	assert.Empty(t, o.Error)
	assert.Equal(t, 2, r.state().Entries.Answered)
	assert.Len(t, r.state().Opened, 1)
}
