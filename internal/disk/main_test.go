package disk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{
		"append":  func() int { return status(appendLines(os.Args[1], os.Args[2])) },
		"count":   func() int { return status(count(os.Args[1])) },
		"hold":    func() int { return status(hold(os.Args[1])) },
		"open as": func() int { return status(openAs(os.Args[1], os.Args[2:])) },
		"publish": func() int { return status(publish(os.Args[1], os.Args[2] == "durable")) },
	})
}

func status(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// waitInput waits until the parent closes the standard input.
func waitInput() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// hold takes the lock at path, reports that, and keeps it until its input ends.
func hold(path string) error {
	lock, err := disk.AcquireLock(context.Background(), path, 0)
	if err != nil {
		return err
	}
	fmt.Println("locked")
	return errors.Join(waitInput(), lock.Release())
}

// count adds one to the number in a file, under a lock.
func count(dir string) error {
	fmt.Println("ready")
	if err := waitInput(); err != nil {
		return err
	}
	lock, err := disk.AcquireLock(context.Background(), filepath.Join(dir, "lock"), 0)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "number")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return err
	}
	err = disk.Publish(path, []byte(strconv.Itoa(n+1)), false)
	return errors.Join(err, lock.Release())
}

const newContent = "the new content"

func publish(dir string, durable bool) error {
	err := disk.Publish(filepath.Join(dir, "f"), []byte(newContent), durable)
	if err == nil {
		crash.Promise(newContent)
	}
	return err
}

// openAs becomes the user uid and reports for each file how opening it for reading ends.
func openAs(uid string, paths []string) error {
	id, err := strconv.Atoi(uid)
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id)); err != nil {
		return err
	}
	for _, path := range paths {
		f, err := disk.OpenRead(path)
		fmt.Println(errors.Is(err, disk.ErrForeign), err)
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func write(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
