package disk_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

const oldContent = "the old content, which is longer"

// publishing runs Publish beside the remains of a killed Publish.
func publishing(how string) crash.Scenario {
	return crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			write(t, filepath.Join(dir, "f"), oldContent)
			write(t, filepath.Join(dir, "f.tmp"), "half of somethi")
		},
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "publish", Args: []string{dir, how}}
		},
	}
}

// oldOrNew checks that a reader finds the old or the new content, and the new one if Publish has
// returned. The next Publish must work.
func oldOrNew(t *testing.T, c crash.Crash) {
	path := filepath.Join(c.Dir, "f")
	want := []string{newContent}
	if len(c.Promised) == 0 {
		want = append(want, oldContent)
	}
	assert.Contains(t, want, read(t, path))
	assert.NoError(t, disk.Publish(path, []byte("next"), false))
	assert.Equal(t, map[string]string{"f": "next"}, crash.Snapshot(t, c.Dir).Files())
}

func TestPublish(t *testing.T) {
	for _, how := range []string{"durable", "fast"} {
		s := publishing(how)
		t.Run(how+"/kill", func(t *testing.T) { s.EveryKill(t, oldOrNew) })
		for _, errno := range []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EROFS} {
			t.Run(how+"/"+unix.ErrnoName(errno), func(t *testing.T) { s.EveryFail(t, errno, oldOrNew) })
		}
	}
	t.Run("power loss", func(t *testing.T) { publishing("durable").EveryPowerLoss(t, 1, 20, oldOrNew) })
	t.Run("kill, then power loss", func(t *testing.T) { publishing("durable").EveryKillThenPowerLoss(t, 1, 5, oldOrNew) })
}

func TestPublishCalls(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, durable := range []bool{true, false} {
		rec := crash.Record(t, dir, func() { assert.NoError(t, disk.Publish(path, []byte("new"), durable)) })
		want := []disk.Op{
			{Kind: disk.OpRemove, Path: path + ".tmp"},
			{Kind: disk.OpCreate, Path: path + ".tmp"},
			{Kind: disk.OpWrite, Path: path + ".tmp", Data: []byte("new")},
		}
		if durable {
			want = append(want, disk.Op{Kind: disk.OpSync, Path: path + ".tmp"})
		}
		want = append(want, disk.Op{Kind: disk.OpRename, Path: path + ".tmp", To: path})
		if durable {
			want = append(want, disk.Op{Kind: disk.OpSyncDir, Path: dir})
		}
		assert.Equal(t, want, rec.Ops)
	}
}
