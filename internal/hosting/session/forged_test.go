package session_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/machine/guardian"
)

// hang hosts a session whose client never ends, and returns its state once that runs.
func (r *rig) hang() folder.State {
	cmd := r.command()
	require.NoError(r.t, cmd.Start())
	r.until("the client runs", func() bool {
		s, err := r.folder().Read()
		return err == nil && s.Client != nil && s.RunningReport.State == folder.Delivered
	})
	s := *r.state()
	r.t.Cleanup(func() {
		if alive, _ := s.Guardian.Alive(); alive { // it would finish the session
			_ = syscall.Kill(s.Guardian.PID, syscall.SIGKILL)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		guardian.Kill(s.Mark)
	})
	return s
}

// slay kills a session's host, and first its guardian.
func (r *rig) slay(s folder.State) {
	for _, p := range []*folder.Process{s.Guardian, s.Host} {
		require.NoError(r.t, syscall.Kill(p.PID, syscall.SIGKILL))
	}
	r.until("the host is dead", func() bool { return r.folder().Holder() == 0 })
}

// The tools of a session can write its record, so a finisher does nothing to others
// because of what is in it.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hang")
	s := r.hang()
	r.slay(s)
	precious := r.path("precious")
	require.NoError(t, os.MkdirAll(precious+"/work", 0o700))
	other := exec.Command("sleep", "1000")
	other.Env = guardian.Marked(os.Environ(), "ses-2.somebody")
	require.NoError(t, other.Start())
	defer func() {
		require.NoError(t, other.Process.Signal(syscall.Signal(0)), "another session's process was killed")
		_ = other.Process.Kill()
		_ = other.Wait()
	}()

	forged := s
	forged.Mark, forged.SystemPromptTmpDir, forged.Inbox = "ses-2.somebody", precious, r.path("elsewhere/inbox.jsonl")
	forged.LogPath = r.path("elsewhere/ses-1.log")
	lock, err := r.folder().Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Write(&forged))
	require.NoError(t, lock.Release())
	_, err = session.Finish(t.Context(), r.folder().Dir(), false)
	require.NoError(t, err)
	assert.DirExists(t, precious+"/work")
	assert.NoDirExists(t, r.path("elsewhere"))
	assert.Contains(t, r.state().Warnings, "systemPromptTmpDir "+precious+" was not marked by the session's host, and stays")
	assert.Equal(t, "failed", r.report()["status"])
}

func TestFinisherRemovesPromptDir(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hang")
	r.Config.SystemPromptTmpDir = r.path("prompt")
	require.NoError(t, os.MkdirAll(r.path("prompt/more"), 0o700))
	r.slay(r.hang())
	_, err := session.Finish(t.Context(), r.folder().Dir(), false)
	require.NoError(t, err)
	assert.NoDirExists(t, r.path("prompt"))
	assert.Empty(t, r.state().Warnings)
}

// A session whose lock was removed is not finished while its host lives.
func TestLockRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hang")
	s := r.hang()
	require.NoError(t, os.Remove(r.folder().LockPath()))
	_, err := session.Finish(t.Context(), r.folder().Dir(), false)
	require.ErrorIs(t, err, session.ErrHosted)
	again := r.command()
	again.Stderr = nil
	text, err := again.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(text), "is that of a session that is hosted right now")
	alive, known := s.Client.Alive()
	assert.True(t, alive && known)
	require.NoError(t, syscall.Kill(s.Host.PID, syscall.SIGTERM))
	r.until("the session has ended", func() bool { return r.state().Host == nil })
	assert.Equal(t, folder.Cancelled, r.state().Status)
	assert.Contains(t, r.state().Warnings, "the session's folder, or its lock, was removed while it was hosted, and made again")
}

// A host looks after the sessions beside its own. Where its lock was removed it finds
// its own session there, which is not one of a dead host.
func TestHostDoesNotFinishItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hang")
	s := r.hang()
	r.slay(s)
	self := folder.ProcessOf(os.Getpid())
	s.Host = &self
	lock, err := r.folder().Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Write(&s))
	require.NoError(t, os.Remove(r.folder().LockPath()))
	_, err = session.Finish(t.Context(), r.folder().Dir(), false)
	require.ErrorIs(t, err, session.ErrHosted)
	assert.Equal(t, folder.Running, r.state().Status)
	_ = lock.Release() // it locks nothing that has a name
}

// An entry that another session has in flight by now is not the dead one's to settle, and what was
// answered before the dead one began is none of its own.
func TestFinisherLeavesOthersEntries(t *testing.T) {
	t.Parallel()
	shared := newRig(t, "hang")
	shared.Inbox = shared.path("shared.jsonl")
	require.NoError(t, os.WriteFile(shared.Inbox, []byte("first\n"), 0o600))
	shared.hang()
	shared.until("the first is answered", func() bool {
		_, err := os.Lstat(shared.path(".in-flight"))
		text, _ := os.ReadFile(shared.path(".results.jsonl"))
		return err == nil && len(text) > 0
	})
	r := newRig(t, "hang")
	s := r.hang()
	r.slay(s)
	s.Inbox, s.OwnInbox = shared.Inbox, false
	lock, err := r.folder().Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Write(&s))
	require.NoError(t, lock.Release())
	_, err = session.Finish(t.Context(), r.folder().Dir(), false)
	require.NoError(t, err)
	assert.Equal(t, "failed", r.report()["status"])
	assert.Zero(t, figure(r.report(), "entries", "answered"))
	assert.Zero(t, shared.state().Entries.DeadLettered)
	box, err := inbox.Open(shared.Inbox, inbox.Options{})
	require.NoError(t, err)
	v, err := box.View()
	require.NoError(t, err)
	totals, err := v.Totals()
	require.NoError(t, errors.Join(err, v.Close()))
	assert.Empty(t, totals.DeadLetters)
}
