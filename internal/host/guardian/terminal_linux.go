package guardian

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// terminalVariable tells a guardian of its keeper's terminal.
const terminalVariable = "HEARTBEAT_GUARDED_TERMINAL"

// Terminal is one that a keeper hands the keys of to its session, as it was before.
// A guardian does not hold on to it.
type Terminal struct {
	Path   string
	Device uint64
	State  unix.Termios
}

// TerminalOf notes how a terminal is; nil where it has no name of its own.
func TerminalOf(f *os.File) (*Terminal, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || !strings.HasPrefix(path, "/dev/") {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	state, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	return &Terminal{path, st.Rdev, *state}, nil
}

// variable is the terminal for the environment of a guardian.
func (t *Terminal) variable() (string, error) {
	text, err := json.Marshal(t)
	return terminalVariable + "=" + string(text), err
}

// restoreTerminal leaves the keeper's terminal as it was found, unless somebody has
// set it otherwise meanwhile, as the shell does that the keeper was started from.
func restoreTerminal() {
	var t Terminal
	if json.Unmarshal([]byte(os.Getenv(terminalVariable)), &t) != nil {
		return // there is none
	}
	fd, err := unix.Open(t.Path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // it is gone
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Rdev != t.Device {
		return
	}
	if now, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil && isRaw(now) {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, &t.State) // it may just have gone
	}
}

// isRaw reports whether a terminal hands every key over, and edits and prints
// nothing of its own: no shell leaves one so.
func isRaw(t *unix.Termios) bool {
	return t.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG|unix.IEXTEN) == 0 && t.Oflag&unix.OPOST == 0
}
