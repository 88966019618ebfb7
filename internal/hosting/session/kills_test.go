package session_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
)

// A host that is killed at any step of its life loses no report, and each is applied
// once. docs/host.md has the same table.
func TestKilledAtEachStep(t *testing.T) {
	const notAnswered = "the session's host was killed; 0 of 1 prompt answered, "
	for _, c := range []struct{ at, status, error string }{
		{at: "claimed"},
		{at: "guarded"},
		{"recorded", "failed", "the session's host was killed; no prompt was answered"},
		{"serving", "failed", "the session's host was killed; no prompt was answered"},
		{"queued", "failed", notAnswered + "1 waiting"},
		{"taken", "failed", notAnswered + "1 waiting"},
		{"started", "", ""}, // the client may have had its answer
		{"up", "", ""},
		{"message", "", ""},
		{"message 2", "", ""}, // its hook has not told yet
		{"result", "completed", ""},
		{"ended", "completed", ""},
		{"settled", "completed", ""},
		{"decided", "completed", ""},
		{"kept", "completed", ""},
		{"noted", "completed", ""},
		{"reported", "completed", ""},
		{"cleaned", "completed", ""},
		{"over", "completed", ""},
	} {
		t.Run(c.at, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "hello")
			cmd := r.command()
			cmd.Env = append(cmd.Env, killVariable+"="+c.at)
			assert.EqualError(t, cmd.Run(), "signal: killed")
			if c.at == "claimed" || c.at == "guarded" {
				_, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
				require.NoError(t, err)
				s, _ := r.guild.Session("ses-1")
				assert.Zero(t, s.Record.Applied, "its caller knows that it has not begun")
				return
			}
			r.until("the guardian has finished", func() bool { return r.state().Host == nil && r.folder().Holder() == 0 })
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, 1, s.Record.Applied)
			if c.at != "kept" && c.at != "noted" && c.at != "reported" {
				assert.Zero(t, s.Record.Repeated)
			}
			if c.status != "" {
				assert.Equal(t, c.status, r.report()["status"])
				assert.Equal(t, c.error, orEmpty(r.report()["error"]))
				assert.Equal(t, folder.Status(c.status), r.state().Status)
			}
			r.isClean()
		})
	}
}

func orEmpty(v any) string {
	text, _ := v.(string)
	return text
}

// Without its guardian, a dead host's session is finished by the next host beside the
// same database.
func TestNextHostFinishes(t *testing.T) {
	r := newRig(t, "hang")
	cmd := r.start()
	guard := r.state().Guardian
	require.NotNil(t, guard)
	kill(t, guard.PID)
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait()
	assert.Equal(t, folder.Running, r.state().Status)

	first := *r.Config
	r.Config.SessionID, r.Config.Prompt = "ses-2", "hello"
	r.guild.Expect("ses-2")
	_, o := r.run()
	assert.Equal(t, folder.Completed, o.State)
	r.Config = &first
	if r.state().Host != nil { // the second session was over first
		_, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
		require.NoError(t, err)
	}
	assert.Equal(t, "failed", r.report()["status"])
	r.isClean()
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
}
