package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	watching "heartbeat/internal/supervise/sharing"
	"heartbeat/internal/testing/agent"
)

func newTerminalRig(t *testing.T, prompt string) *rig {
	r := newRig(t, prompt)
	r.PTY = true
	return r
}

// An interactive session is hosted by the launcher, and its messages come from the
// client's transcript.
func TestTerminal(t *testing.T) {
	t.Parallel()
	r := newTerminalRig(t, "hello")
	up, o := r.run()
	assert.Equal(t, "completed", string(o.State), o.Error)
	report := r.report()
	assert.Equal(t, "completed", report["status"])
	assert.Equal(t, "done: hello", report["output"])
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, up.PGID, s.PGID)
	assert.Equal(t, 4, s.Messages, "the prompt that starts the client, the entry, and an answer to each")
	assert.Equal(t, 1, s.Running.Applied)
	r.isClean()
}

// A client that is ended before it has written its last answer has told its hook.
func TestTerminalLastAnswerUnwritten(t *testing.T) {
	t.Parallel()
	r := newTerminalRig(t, "hello "+agent.Unwritten)
	_, o := r.run()
	assert.Equal(t, "completed", string(o.State), o.Error)
	assert.Equal(t, "done: hello unwritten", r.report()["output"])
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 4, s.Messages)
	r.isClean()
}

// An answer that is kept is not stored again behind what the client has written of the next entry.
func TestTerminalEndsInTheNextEntry(t *testing.T) {
	t.Parallel()
	r := newTerminalRig(t, "")
	gate := r.path("gate")
	require.NoError(t, unix.Mkfifo(gate, 0o600))
	r.Config.Prompt, r.Grace = "wait:"+gate, time.Second
	cmd := r.startInTerminal()
	_, err := attach.Host{Folder: r.folder().Dir()}.Send(t.Context(), "next", "hang")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(gate, []byte("go"), 0o600))
	var transcript string
	r.until("the next entry is in the transcript", func() bool {
		all, err := filepath.Glob(r.path("transcripts/*.jsonl"))
		require.NoError(t, err)
		transcript = all[0]
		text, err := os.ReadFile(transcript)
		return err == nil && bytes.Contains(text, []byte("hang"))
	})
	f, err := os.OpenFile(transcript, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"looking"}]}}` + "\n")
	require.NoError(t, errors.Join(err, f.Close()))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "looking", r.report()["output"])
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 6, s.Messages, "the prompt that starts the client, two entries, two answers, and what was begun")
	r.isClean()
}

func TestTerminalEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(r *rig, cmd *exec.Cmd)
		change func(*session.Options)
		status string
		ended  string
		error  string
	}{
		"signal": {end: func(_ *rig, cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }, status: "cancelled", ended: "cancel",
			error: "cancelled by SIGTERM"},
		"socket": {end: func(r *rig, _ *exec.Cmd) {
			assert.NoError(r.t, attach.Host{Folder: r.folder().Dir()}.Cancel(r.t.Context(), attach.End{Grace: -1}))
		}, status: "cancelled", ended: "cancel", error: "cancelled by heartbeat-host cancel"},
		"time over": {change: func(o *session.Options) { o.Timeout = 15 * time.Second }, status: "timeout", ended: "timeout",
			error: "the session was ended after 15s (--timeout); 0 of 1 prompt answered, 1 set aside as dead letters"},
		"stalled": {change: func(o *session.Options) { o.Stall, o.StallAction = 10*time.Second, session.CancelStall }, status: "failed", ended: "stall",
			error: "the session was ended after 10s without progress (--stall-action cancel); 0 of 1 prompt answered, 1 set aside as dead letters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTerminalRig(t, "hang")
			if c.change != nil {
				c.change(&r.Options)
			}
			r.Grace = time.Second
			cmd := r.startInTerminal()
			if c.end != nil {
				c.end(r, cmd)
			}
			require.NoError(t, cmd.Wait())
			report := r.report()
			assert.Equal(t, c.status, report["status"])
			assert.Equal(t, c.ended, report["ended"])
			assert.Equal(t, c.error, report["error"])
			r.isClean()
		})
	}
}

// Somebody can attach to it, by its inbox.
func TestTerminalIsReached(t *testing.T) {
	t.Parallel()
	r := newTerminalRig(t, "hang")
	r.AskPatience, r.Grace = time.Minute, time.Second
	cmd := r.startInTerminal()
	box, err := inbox.Open(r.path("heartbeat-host/ses-1/inbox/inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	l := see.LauncherOf(box)
	require.NotNil(t, l)
	assert.Equal(t, cmd.Process.Pid, l.PID)
	assert.True(t, l.Waits)
	conn, err := watching.Dial(t.Context(), l.Socket, l.PID)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	r.isClean()
}

func TestTerminalHostKilled(t *testing.T) {
	t.Parallel()
	r := newTerminalRig(t, "hang")
	cmd := r.startInTerminal()
	life := machine.WatchProcess(r.state().Client.PID)
	require.NoError(t, cmd.Process.Kill())
	<-life.Died()
	_ = cmd.Wait()
	r.finished()
	assert.Equal(t, "failed", r.report()["status"])
}

// startInTerminal starts the host, and returns once the entry is in flight.
func (r *rig) startInTerminal() *exec.Cmd {
	r.t.Helper()
	cmd := r.command()
	out, err := cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	var up session.Up
	require.NoError(r.t, json.NewDecoder(out).Decode(&up))
	r.until("the entry is in flight", func() bool {
		_, err := os.Stat(r.path("heartbeat-host/ses-1/inbox/.in-flight"))
		return err == nil
	})
	return cmd
}
