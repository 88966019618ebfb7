package attach_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/attach"
)

// TestAnotherUser reaches a socket whose mode somebody has opened up.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	folder, err := os.MkdirTemp("", "attach-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	serve(t, folder, &session{}, attach.Options{})
	path := filepath.Join(folder, attach.SocketName)
	require.NoError(t, os.Chmod(folder, 0o711))
	require.NoError(t, os.Chmod(path, 0o666))
	answer, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with its user
		text, err := askAs(65534, path)
		answer <- text
		failed <- err
	}()
	assert.Regexp(t, `(?s)^HTTP/1.1 403 .*\nuser 65534 may not reach this session: it is that of user 0\n$`, <-answer)
	assert.NoError(t, <-failed)
}

// askAs asks for the status as another user. It makes this thread that user's.
func askAs(uid int, path string) (string, error) {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
		return "", errno
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return "", err
	}
	_, _ = unix.Write(fd, []byte("GET /status HTTP/1.1\r\nHost: session\r\n\r\n")) // it may be refused before
	b := make([]byte, 4096)
	n, err := unix.Read(fd, b)
	return string(b[:max(0, n)]), err
}
