package guardian

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// terminalVariable passes the guardian the keeper's terminal.
const terminalVariable = "HEARTBEAT_GUARDED_TERMINAL"

// Terminal is a terminal and its state before the keeper's session took its input. The guardian does not keep it open.
type Terminal struct {
	Path   string
	Device uint64
	State  unix.Termios
}

// TerminalOf records the state of a terminal. It returns nil if f has no name in /dev.
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

// restoreTerminal undoes the modes that the keeper's session had set, restores the terminal's state and
// drops unread input, unless the shell that the keeper was started from has already set the state.
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
	if how := undo(); len(how) > 0 {
		_, _ = unix.Write(fd, how) // nothing helps a terminal that takes nothing
	}
	now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	// No shell leaves a terminal in raw mode.
	if err == nil && now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG|unix.IEXTEN) == 0 && now.Oflag&unix.OPOST == 0 {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, &t.State) // fails if it has just gone
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	}
}

// undo returns the last bytes given to [Guardian.Undo].
func undo() []byte {
	record := make([]byte, 2+maxUndo)
	n, _ := unix.Pread(undoing, record, 0) // empty if the keeper gave nothing
	if n < 2 {
		return nil
	}
	return record[2:min(n, 2+int(binary.LittleEndian.Uint16(record)))]
}
