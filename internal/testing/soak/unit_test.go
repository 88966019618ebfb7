package soak

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unit keeps the launcher up as systemd does, by what the supervisor's unit says.
type unit struct {
	command func() *exec.Cmd
	said    lockedBuffer
	prevent []int // the statuses after which systemd starts it no more
	clean   []int // those that count as its end in order
	rest    time.Duration

	mu      sync.Mutex
	process *os.Process // nil between two
	meant   bool        // its end is asked for
	ended   chan struct{}
	failed  error
}

// readUnit takes what systemd does after an end from the unit that is shipped.
func readUnit(t *testing.T, command func() *exec.Cmd) *unit {
	raw, err := os.ReadFile("../../../scripts/launchers/systemd/heartbeat-supervisor@.service")
	require.NoError(t, err)
	u := &unit{command: command, clean: []int{0}, rest: 100 * time.Millisecond}
	said := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if key, value, is := strings.Cut(strings.TrimSpace(line), "="); is {
			said[key] = value
		}
	}
	require.Contains(t, []string{"on-failure", "always"}, said["Restart"])
	require.Equal(t, "0", said["StartLimitIntervalSec"], "it is started again however often it ends")
	u.prevent = statuses(t, said["RestartPreventExitStatus"])
	u.clean = append(u.clean, statuses(t, said["SuccessExitStatus"])...)
	if said["Restart"] == "always" {
		u.clean = nil
	}
	return u
}

func statuses(t *testing.T, text string) (all []int) {
	for _, word := range strings.Fields(text) {
		n, err := strconv.Atoi(word)
		require.NoError(t, err, "a status of the unit")
		all = append(all, n)
	}
	return all
}

// run starts the launcher, again and again, until stop.
func (u *unit) run() {
	defer close(u.ended)
	for {
		cmd := u.command()
		cmd.Stdout, cmd.Stderr = &u.said, &u.said
		u.mu.Lock()
		if u.meant {
			u.mu.Unlock()
			return
		}
		err := cmd.Start()
		u.process = cmd.Process
		u.mu.Unlock()
		if err == nil {
			err = cmd.Wait()
		}
		u.mu.Lock()
		u.process = nil
		over := u.meant || u.endsFor(cmd, err)
		u.mu.Unlock()
		if over {
			return
		}
		time.Sleep(u.rest)
	}
}

// endsFor reports whether systemd would leave it ended, which is a failure here.
func (u *unit) endsFor(cmd *exec.Cmd, err error) bool {
	if cmd.ProcessState == nil {
		u.failed = err
		return true
	}
	status := statusOf(cmd.ProcessState)
	if slices.Contains(u.prevent, status) || slices.Contains(u.clean, status) {
		u.failed = errors.New("the service has ended for good, with status " + strconv.Itoa(status))
	}
	return u.failed != nil
}

// statusOf is the exit status as a shell has it.
func statusOf(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// signal sends the launcher a signal, if there is one at the moment.
func (u *unit) signal(sig syscall.Signal) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process != nil {
		_ = u.process.Signal(sig) // it may have ended
	}
}

func (u *unit) pid() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process == nil {
		return 0
	}
	return u.process.Pid
}

// restart is systemctl restart.
func (u *unit) restart() {
	u.mu.Lock()
	u.meant = true
	u.mu.Unlock()
	u.signal(syscall.SIGTERM)
	<-u.ended
	u.start()
}

func (u *unit) start() {
	u.meant, u.ended = false, make(chan struct{})
	go u.run()
}

// lockedBuffer is what a launcher says, for the message of a failure.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// tail is the end of it.
func (l *lockedBuffer) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.b.Bytes()
	return string(b[max(0, len(b)-6000):])
}

func commandPath(name string) string { return filepath.Join(commands, name) }
