package session_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine"
	testguild "heartbeat/internal/testing/guild"
)

// Every way in which a client ends by itself or has to be ended.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		prompt string
		change func(*session.Options)
		status folder.Status
		error  string
		ended  string
	}{
		"exit 0 without an answer": {prompt: "exit:0", status: folder.Failed, error: "claude exited with code 0; 0 of 1 prompt answered, 1 set aside as dead letters", ended: "exit"},
		"exit 3":                   {prompt: "complain:oops exit:3", status: folder.Failed, error: "claude exited with code 3: oops; 0 of 1 prompt answered, 1 set aside as dead letters", ended: "exit"},
		"killed":                   {prompt: "die", status: folder.Failed, error: "claude was ended by SIGKILL; 0 of 1 prompt answered, 1 set aside as dead letters", ended: "exit"},
		"a grandchild that stays":  {prompt: "child", status: folder.Completed, ended: "exit"},
		"rate limit":               {prompt: "limit", status: folder.RateLimited, error: "rate_limit", ended: "exit"},
		"never exits": {prompt: "result hang", status: folder.Failed, ended: "exit-deadline",
			error:  "claude did not exit within 100ms after its result, and was ended; 0 of 1 prompt answered, 1 set aside as dead letters",
			change: func(o *session.Options) { o.ExitTimeout = 100 * time.Millisecond }},
		"time over": {prompt: "hang", status: folder.Timeout, ended: "timeout",
			error:  "the session was ended after 15s (--timeout); 0 of 1 prompt answered, 1 set aside as dead letters",
			change: func(o *session.Options) { o.Timeout = 15 * time.Second }},
		"stalled": {prompt: "hang", status: folder.Failed, ended: "stall",
			error:  "the session was ended after 10s without progress (--stall-action cancel); 0 of 1 prompt answered, 1 set aside as dead letters",
			change: func(o *session.Options) { o.Stall, o.StallAction = 10*time.Second, session.CancelStall }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.prompt)
			if c.change != nil {
				c.change(&r.Options)
			}
			_, o := r.run()
			report := r.report()
			assert.Equal(t, string(c.status), report["status"])
			if c.error == "" {
				assert.NotContains(t, report, "error")
			} else {
				assert.Equal(t, c.error, report["error"])
			}
			assert.Equal(t, c.ended, report["ended"])
			assert.Equal(t, c.error, o.Error)
			r.isClean()
		})
	}
}

// A client that finds no conversation to continue says why, and has not seen its prompt.
func TestNoConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t, "go on")
	r.Claude = r.path("unable")
	text := `#!/bin/sh
echo '{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"s","errors":["No conversation found"]}'
exit 1
`
	require.NoError(t, os.WriteFile(r.Claude, []byte(text), 0o700))
	_, o := r.run()
	assert.Equal(t, "claude exited with code 1; its result is an error (error_during_execution): No conversation found; "+
		"0 of 1 prompt answered, 1 waiting", o.Error)
}

// An entry that is taken is answered, however late it came; the others are refused.
func TestSentLate(t *testing.T) {
	for step, answered := range map[string]float64{"result": 2, "ended": 2, "settled": 2, "decided": 1} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "first")
			cmd := r.command()
			cmd.Env = append(cmd.Env, sendVariable+"="+step+" "+r.folder().Dir())
			require.NoError(t, cmd.Run())
			assert.Equal(t, "completed", r.report()["status"])
			assert.Equal(t, answered, r.report()["entries"].(map[string]any)["answered"])
			assert.Equal(t, 0.0, r.report()["entries"].(map[string]any)["queued"])
			sent, err := os.ReadFile(filepath.Join(r.folder().Dir(), "sent"))
			require.NoError(t, err)
			if answered == 2 {
				assert.Equal(t, "<nil>", string(sent))
			} else {
				assert.Equal(t, attach.ErrEnded.Error(), string(sent))
			}
		})
	}
}

// What can be asked of a running session.
func TestCancel(t *testing.T) {
	for name, c := range map[string]struct {
		cancel func(r *rig, cmd *exec.Cmd)
		by     string
	}{
		"SIGTERM":           {func(_ *rig, cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }, "SIGTERM"},
		"SIGINT":            {func(_ *rig, cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGINT) }, "SIGINT"},
		"SIGHUP":            {func(_ *rig, cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGHUP) }, "SIGHUP"},
		"the process group": {func(_ *rig, cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }, "SIGTERM"},
		"socket": {func(r *rig, _ *exec.Cmd) {
			assert.NoError(r.t, attach.Host{Folder: r.folder().Dir()}.Cancel(r.t.Context(), attach.End{Grace: -1}))
		}, "heartbeat-host cancel"},
		"twice": {func(r *rig, _ *exec.Cmd) {
			r.until("the client does not listen", func() bool {
				log, _ := os.ReadFile(r.path("logs/ses-1.log"))
				return contains(log, "waits_for_a_kill")
			})
			h := attach.Host{Folder: r.folder().Dir()}
			assert.NoError(r.t, h.Cancel(r.t.Context(), attach.End{Grace: time.Hour}))
			assert.NoError(r.t, h.Cancel(r.t.Context(), attach.End{}))
		}, "heartbeat-host cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "hang")
			if name == "twice" {
				r.Config.Prompt = "deaf complain:waits_for_a_kill hang"
			}
			cmd := r.start()
			c.cancel(r, cmd)
			require.NoError(t, cmd.Wait())
			report := r.report()
			assert.Equal(t, "cancelled", report["status"])
			assert.Equal(t, "cancelled by "+c.by, report["error"])
			assert.Equal(t, c.by, r.state().Cancel.By)
			r.isClean()
		})
	}
}

// A guild that takes no `cancelled` gets `failed`, with the truth in the error.
func TestCancelledForAnOldGuild(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hang")
	old, err := testguild.Open(testguild.Options{})
	require.NoError(t, err)
	old.Expect("ses-1")
	r.guild, r.server.Config.Handler = old, old
	cmd := r.start()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "failed", r.report()["status"])
	assert.Contains(t, r.report()["error"], "cancelled by SIGTERM")
	assert.Equal(t, folder.Cancelled, r.state().Status)
	assert.Equal(t, folder.Failed, r.state().TerminalReport.As)
}

// start starts the host, and returns once the client is at work.
func (r *rig) start() *exec.Cmd {
	r.t.Helper()
	cmd := r.command()
	out, err := cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	var up session.Up
	require.NoError(r.t, json.NewDecoder(out).Decode(&up))
	r.until("the client has begun", func() bool {
		s, err := r.folder().Read()
		return err == nil && s.ProviderSessionID != ""
	})
	return cmd
}

// A guild that is away gets its report from the next host beside the database.
func TestGuildAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	r.guild.Break(testguild.Fault{On: "record", Do: testguild.Answer, Status: 422, Times: -1})
	_, o := r.run()
	assert.Equal(t, folder.Completed, o.State)
	assert.False(t, o.Delivered)
	assert.FileExists(t, r.path("dlq/ses-1.json"))
	assert.Equal(t, folder.Refused, r.state().TerminalReport.State)

	r.guild.Mend()
	d, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath, Refused: true})
	require.NoError(t, err)
	require.Len(t, d.Reports, 1)
	assert.Equal(t, "completed", r.report()["status"])
	r.isClean()
}

// Prompts that come while the session runs are answered by it.
func TestSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	second := r.path("second")
	require.NoError(t, syscall.Mkfifo(second, 0o600))
	r.Config.Prompt = "wait:" + second
	cmd := r.start()
	h := attach.Host{Folder: r.folder().Dir()}
	_, err := h.Send(t.Context(), "two", "and again")
	require.NoError(t, err)
	_, err = h.Send(t.Context(), "three", "and again and again")
	require.NoError(t, err)
	settings := filepath.Join(r.folder().TempDir(), "settings.json")
	assert.FileExists(t, settings)
	counted, err := session.Entries(r.folder(), *r.state())
	require.NoError(t, err)
	assert.Equal(t, folder.Entries{InFlight: 1, Queued: 2}, counted)
	assert.FileExists(t, settings, "who only looks leaves the client's settings alone")
	require.NoError(t, os.WriteFile(second, nil, 0o600))
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "completed", r.report()["status"])
	assert.Equal(t, "done: and again and again", r.report()["output"])
	assert.Equal(t, 3, r.state().Entries.Answered)
	assert.Equal(t, 1, r.state().Rounds)
	r.isClean()
}

// Attached readers see every message, and the end.
func TestAttach(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	fifo := r.path("fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	r.Config.Prompt = "wait:" + fifo
	cmd := r.start()
	var types []string
	db := store.In(folder.Root(r.Config.DBPath), "")
	over := func() (int64, bool) { s := r.state(); return s.Messages, s.Status.Ended() }
	for m, err := range stream.ReadTranscript(t.Context(), stream.TranscriptOptions{DB: db, SessionID: "ses-1"}, 1, over) {
		require.NoError(t, err)
		types = append(types, m.Type)
		if len(types) == 1 {
			require.NoError(t, os.WriteFile(fifo, nil, 0o600))
		}
	}
	require.NoError(t, cmd.Wait())
	require.NoError(t, db.Close())
	assert.Equal(t, []string{"system", "assistant", "result"}, types)
}

// An id is used once, unless the session is to go on.
func TestUsedBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	_, first := r.run()
	assert.Equal(t, folder.Completed, first.State)
	var said bytes.Buffer
	again := r.command()
	again.Stderr = &said
	assert.Error(t, again.Run())
	assert.Contains(t, said.String(), "was used before")
	assert.Equal(t, folder.Completed, r.state().Status)

	r.Resume, r.Config.Prompt = true, "more"
	r.guild.Expect("ses-1")
	_, second := r.run()
	assert.Equal(t, folder.Completed, second.State, second.Error)
	assert.Equal(t, int64(6), r.state().Messages)
	assert.Empty(t, r.state().Warnings)
	r.isClean()

	// Without the client's transcript another conversation begins, and somebody is told.
	require.NoError(t, os.RemoveAll(r.path("transcripts")))
	require.NoError(t, os.Mkdir(r.path("transcripts"), 0o700))
	r.guild.Expect("ses-1")
	_, third := r.run()
	assert.Equal(t, folder.Completed, third.State, third.Error)
	assert.Equal(t, []string{"the conversation has no transcript, so another one begins"}, r.state().Warnings)

	// Its transcript stays when its folder goes, so another session may not add to it.
	f, err := folder.At(r.Config.DBPath, "ses-1")
	require.NoError(t, err)
	require.NoError(t, f.Purge(t.Context(), time.Now().Add(time.Hour), true))
	r.Resume = false
	said.Reset()
	again = r.command()
	again.Stderr = &said
	assert.Error(t, again.Run())
	assert.Contains(t, said.String(), "was used before, for a session whose folder was removed")
}

// The client of a host that is killed dies with it, and the guardian reports.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	works := filepath.Join(t.TempDir(), "works")
	require.NoError(t, unix.Mkfifo(works, 0o600))
	r := newRig(t, "child wait:"+works)
	cmd := r.start()
	hold, err := os.OpenFile(works, os.O_WRONLY, 0) // returns once the client works on its prompt
	require.NoError(t, err)
	defer func() { assert.NoError(t, hold.Close()) }()
	client := r.state().Client
	require.NotNil(t, client)
	life := machine.WatchProcess(client.PID)
	require.NoError(t, cmd.Process.Kill())
	<-life.Died()
	_ = cmd.Wait()
	r.until("the guardian has finished", func() bool { return r.state().Host == nil })
	assert.Equal(t, "failed", r.report()["status"])
	assert.Equal(t, "the session's host was killed; 0 of 1 prompt answered, 1 set aside as dead letters", r.report()["error"])
	r.isClean()
}

// Whoever finishes for a dead host may be killed too, at any step.
func TestFinisherKilled(t *testing.T) {
	for _, at := range []string{"decided", "kept", "reported"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "hang")
			cmd := r.start()
			kill(t, r.state().Guardian.PID)
			kill(t, cmd.Process.Pid)
			_ = cmd.Wait()
			finisher := r.command()
			finisher.Args = append(finisher.Args, session.FinishCommand, r.folder().Dir(), "1s")
			finisher.Env = append(finisher.Env, killVariable+"="+at)
			assert.EqualError(t, finisher.Run(), "signal: killed")
			_, err := session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
			require.NoError(t, err)
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, 1, s.Record.Applied)
			assert.Equal(t, "failed", r.report()["status"])
			r.isClean()
		})
	}
}

// Without work there is no session, and nothing is left behind.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, " \n")
	var said bytes.Buffer
	cmd := r.command()
	cmd.Stderr = &said
	assert.Error(t, cmd.Run())
	assert.Contains(t, said.String(), "prompt")
	assert.NoDirExists(t, r.path("heartbeat-host"))
	assert.NoDirExists(t, r.path("logs"))
}

// A session that is cancelled before its client starts is cancelled, and its prompt waits.
func TestCancelledBeforeStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	cmd := r.command()
	cmd.Env = append(cmd.Env, cancelVariable+"=queued "+r.Config.DBPath)
	require.NoError(t, cmd.Run())
	assert.Equal(t, "cancelled", r.report()["status"])
	assert.Equal(t, "cancelled by SIGTERM", r.report()["error"])
	assert.Equal(t, 1, r.state().Entries.Queued)
	r.isClean()
}
