package folder_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{
		"host":  func() int { return status(host(os.Args[1])) },
		"live":  func() int { return status(live(os.Args[1])) },
		"purge": func() int { return status(purge(os.Args[1])) },
		"known": func() int { return status(know(os.Args[1])) },
	})
}

func status(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const id = "ses-mnseaiv7-0a1b2c3d"

var longAgo = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at is the folder of a session in a test's directory.
func at(dir string) folder.Folder {
	f, err := folder.At(filepath.Join(dir, "nexus.db"), id)
	if err != nil {
		panic(err)
	}
	return f
}

// claimed is a folder with its lock, which the test's end releases.
func claimed(t *testing.T) (folder.Folder, *folder.Lock) {
	t.Helper()
	f := at(t.TempDir())
	lock, err := f.Claim(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Release()) })
	return f, lock
}

func ended() *folder.State {
	at := longAgo
	return &folder.State{Facts: folder.Facts{TerminalReport: folder.Report{State: folder.Delivered}}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Completed}, EndedAt: &at}}
}

// host begins a session, writes its record twice, and leaves without a word.
func host(dir string) error {
	lock, err := at(dir).Claim(context.Background())
	if err != nil {
		return err
	}
	self := folder.ProcessOf(os.Getpid())
	for i, s := range []folder.Status{folder.Pending, folder.Running} {
		if err := lock.Write(&folder.State{Facts: folder.Facts{Host: &self, Messages: int64(i)}, Outcome: folder.Outcome{Summary: folder.Summary{Status: s}}}); err != nil {
			return err
		}
		crash.Promise(string(s))
	}
	return nil
}

// live hosts a session until its input ends.
func live(dir string) error {
	lock, err := at(dir).Claim(context.Background())
	if err != nil {
		fmt.Println("refused")
		return err
	}
	self := folder.ProcessOf(os.Getpid())
	if err := lock.Write(&folder.State{Facts: folder.Facts{Host: &self}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Running}}}); err != nil {
		return err
	}
	fmt.Println("up")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return lock.Release()
}

func purge(dir string) error {
	return at(dir).Purge(context.Background(), time.Now().Add(time.Hour), false)
}

// know notes the database of a user whose older release has noted others.
func know(dir string) error {
	if err := os.Setenv("XDG_STATE_HOME", dir); err != nil {
		return err
	}
	if err := folder.Remember(at(dir).DB); err != nil {
		return err
	}
	crash.Promise("noted")
	_, err := folder.Databases()
	return err
}
