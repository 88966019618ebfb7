package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// A disk that fills up at any step of a session's life, but for some KiB, and has room
// again later: the guild gets one end, with the whole transcript.
func TestDiskOfItsOwnFull(t *testing.T) {
	n := 0
	for _, step := range []string{"queued", "taken", "started", "message", "result", "ended", "settled", "decided", "kept"} {
		for _, left := range []int{0, 8, 40, 100, 200} {
			if n++; n%long.Rounds(6, 1) != 0 {
				continue
			}
			t.Run(step+" "+strconv.Itoa(left), func(t *testing.T) {
				t.Parallel()
				fullDisk(t, step, left)
			})
		}
	}
}

// The disk takes a page more each time, from the first write of a session on: it is full at
// each of the writes in turn.
func TestDiskFillsUpAtEachWrite(t *testing.T) {
	const writes, page = 200, 4
	for n := 0; n < writes; n += long.Rounds(67, 1) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			fullDisk(t, "recorded", n*page)
		})
	}
}

// disk is one of the session's own, with its database and folder.
func (r *rig) disk() string {
	disk := r.path("disk")
	require.NoError(r.t, os.Mkdir(disk, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size=80m", "none", disk).CombinedOutput(); err != nil {
		r.t.Skipf("a disk of its own cannot be had: %s", out)
	}
	r.t.Cleanup(func() { // what another test starts holds every file that is open here, until its exec
		r.until("nobody uses the disk", func() bool { return exec.Command("umount", disk).Run() == nil })
	})
	r.Config.DBPath = disk + "/nexus.db"
	return disk
}

// A disk that its errors made read-only during a turn, and that somebody mounts writable again: the answer counts.
func TestDiskReadOnlyForAWhile(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	fifo := r.path("fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	r.Config.Prompt = "wait:" + fifo
	cmd := r.start()
	t.Cleanup(func() {
		if t.Skipped() {
			assert.NoError(t, os.WriteFile(fifo, nil, 0o600))
			_ = cmd.Wait() // of no interest
		}
	})
	writable := script.ReadOnly(t, filepath.Join(filepath.Dir(r.folder().InboxPath()), inbox.LockName))
	require.NoError(t, os.WriteFile(fifo, nil, 0o600))
	r.until("the end cannot be kept", func() bool {
		log, _ := os.ReadFile(r.path("logs/ses-1.log"))
		return contains(log, "the session's end cannot be kept") || r.state().EndedAt != nil
	})
	assert.Nil(t, r.state().EndedAt)
	writable()
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "completed", r.report()["status"])
	assert.Equal(t, 1, r.state().Entries.Answered)
}

// A guardian that has not even the room to sign the lock tries again until it has.
func TestGuardianOnAFullDisk(t *testing.T) {
	r := newRig(t, "hang")
	disk := r.disk()
	cmd := r.start()
	kill(t, r.state().Guardian.PID)
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait() // it was killed
	require.NoError(t, os.Truncate(r.folder().LockPath(), 0))
	t.Setenv(fillVariable, "now 0 "+disk)
	fill("now")
	guard := r.command()
	guard.Args = append(guard.Args, session.FinishCommand, r.folder().Dir(), "50ms")
	guard.Stderr = nil
	require.NoError(t, guard.Start())
	over := make(chan error, 1)
	go func() { over <- guard.Wait() }()
	r.until("it has tried", func() bool {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(guard.Process.Pid) + "/cmdline")
		return len(over) > 0 || strings.Count(string(line), "\x00") > len(guard.Args)
	})
	assert.Empty(t, over, "it has given up")
	require.NoError(t, os.Remove(disk+"/ballast"))
	assert.NoError(t, <-over)
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 1, s.Record.Applied)
	r.isClean()
}

func fullDisk(t *testing.T, step string, left int) {
	r := newRig(t, long40k+" "+long40k+" hello")
	disk := r.disk()
	cmd := r.command()
	cmd.Env = append(cmd.Env, fillVariable+"="+step+" "+strconv.Itoa(left)+" "+disk)
	require.NoError(t, cmd.Start())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait() // it may have failed
	}()
	waits := false
	r.until("it is over, or waits for room", func() bool {
		log, _ := os.ReadFile(r.path("logs/ses-1.log"))
		waits = contains(log, "the session's end cannot be kept")
		select {
		case <-over:
			return true
		default:
			return waits
		}
	})
	s, _ := r.guild.Session("ses-1")
	if waits {
		assert.Zero(t, s.Record.Applied)
	}
	require.NoError(t, os.Remove(disk+"/ballast"))
	<-over
	r.alone()
	s, _ = r.guild.Session("ses-1")
	assert.Equal(t, 1, s.Record.Applied)
	t.Logf("waits %v: %s, %d messages: %v", waits, s.Status, s.Messages, r.report()["error"])
	switch s.Messages {
	case 0: // the client was not started
		assert.Equal(t, "failed", s.Status)
	case 3:
		// The client's hook may have found no room to note the answer: the result line has it.
		assert.Equal(t, "completed", s.Status)
	default:
		assert.Fail(t, "the transcript is not whole")
	}
	assert.Equal(t, s.Status, string(r.state().Status))
	assert.Equal(t, folder.Delivered, r.state().TerminalReport.State)
}
