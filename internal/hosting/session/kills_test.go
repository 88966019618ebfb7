package session_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// A host that is killed at any step of its life loses no report, and each is applied
// once, as docs/advanced/host.md says.
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
				r.alone()
				_, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
				require.NoError(t, err)
				s, _ := r.guild.Session("ses-1")
				assert.Zero(t, s.Record.Applied, "its caller knows that it has not begun")
				return
			}
			r.until("the guardian has finished", func() bool { return r.state().Host == nil && r.folder().Holder() == 0 })
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, 1, s.Record.Applied)
			if c.at != "kept" && c.at != "reported" {
				assert.Zero(t, s.Record.Repeated)
			}
			if c.status != "" {
				assert.Equal(t, c.status, r.report()["status"])
				assert.Equal(t, c.error, orEmpty(r.report()["error"]))
				assert.Equal(t, folder.Status(c.status), r.state().Status)
			}
			r.countsMessages()
			r.isClean()
		})
	}
}

// countsMessages checks that the state tells what the stored messages say.
func (r *rig) countsMessages() {
	r.t.Helper()
	last, output := int64(0), ""
	s := r.state()
	o := stream.TranscriptOptions{DB: r.store(), Guild: s.DB, SessionID: s.SessionID}
	for m, err := range stream.ReadEndedTranscript(r.t.Context(), o, 1) {
		require.NoError(r.t, err)
		if last = m.N; m.Type == "assistant" {
			output = "done: hello"
		}
	}
	assert.Equal(r.t, last, s.Messages-s.Lost)
	assert.Equal(r.t, output, s.Output)
	assert.Equal(r.t, last > 0, s.ProviderSessionID != "")
	behind, err := o.DB.Behind(r.t.Context(), s.SessionID)
	require.NoError(r.t, err)
	assert.Empty(r.t, behind, "the guild's table has them too")
}

// A host that is killed at a write, or within it, loses no report either.
func TestKilledAtWrites(t *testing.T) {
	whole := newRig(t, "hello")
	count := whole.path("count")
	cmd := whole.command()
	cmd.Env = append(cmd.Env, crash.EnvCount+"="+count)
	require.NoError(t, cmd.Run())
	ops, err := os.ReadFile(count)
	require.NoError(t, err)
	n, step := bytes.Count(ops, []byte{'\n'}), long.Rounds(11, 1)
	for at := 1; at <= n; at += step {
		for _, torn := range []string{"", ",torn"} {
			if torn != "" && at%2 == 0 && step > 1 {
				continue
			}
			t.Run(strconv.Itoa(at)+torn, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "hello")
				cmd := r.command()
				cmd.Env = append(cmd.Env, crash.EnvKillAt+"="+strconv.Itoa(at)+torn)
				_ = cmd.Run() // there may be fewer writes this time
				r.finished()
			})
		}
	}
}

// finished checks what is left once the guardian of a killed host, and the next host, had
// their turns.
func (r *rig) finished() {
	r.t.Helper()
	begun := func() bool {
		_, err := r.folder().Read()
		return err == nil
	}
	r.until("nobody works on the session", func() bool {
		if r.folder().Holder() != 0 {
			return false
		}
		s, err := r.folder().Read()
		return err != nil || s.Host == nil || s.Guardian == nil || machine.ProcessStart(s.Guardian.PID) == 0
	})
	r.alone()
	_, err := session.Drain(r.t.Context(), session.DrainOptions{DB: r.Config.DBPath})
	require.NoError(r.t, err)
	s, _ := r.guild.Session("ses-1")
	if !begun() {
		assert.Zero(r.t, s.Record.Applied, "its caller knows that it has not begun")
		return
	}
	assert.Equal(r.t, 1, s.Record.Applied)
	r.isClean()
}

func orEmpty(v any) string {
	text, _ := v.(string)
	return text
}

// Without its guardian, a dead host's session is finished by the next host beside the
// same database.
func TestNextHostFinishes(t *testing.T) {
	t.Parallel()
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
