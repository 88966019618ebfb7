package session_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/long"
)

// A disk that fills up at any step of a session's life, but for some KiB, and has room
// again later: the guild gets one end, with the whole transcript.
func TestDiskOfItsOwnFull(t *testing.T) {
	n := 0
	for _, step := range []string{"queued", "taken", "started", "message", "result", "ended", "settled", "decided", "kept", "noted"} {
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

func fullDisk(t *testing.T, step string, left int) {
	r := newRig(t, long40k+" "+long40k+" hello")
	disk := r.path("disk")
	require.NoError(t, os.Mkdir(disk, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size=80m", "none", disk).CombinedOutput(); err != nil {
		t.Skipf("a disk of its own cannot be had: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", disk).Run()) })
	r.Config.DBPath = disk + "/nexus.db"
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
		if step != "queued" && step != "taken" && step != "started" || s.Status != "failed" { // there the client's hook could not note that it had delivered the entry
			assert.Equal(t, "completed", s.Status)
		}
	default:
		assert.Fail(t, "the transcript is not whole")
	}
	assert.Equal(t, s.Status, string(r.state().Status))
	assert.Equal(t, folder.Delivered, r.state().TerminalReport.State)
}
