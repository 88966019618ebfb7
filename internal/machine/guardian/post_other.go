//go:build !linux

package guardian

import (
	"os"
	"syscall"

	"heartbeat/internal/machine"
)

// Guardian does nothing: this system does not show the environment of processes.
type Guardian struct{ PID int }

// Terminal is unused: see [Guardian].
type Terminal struct{}

// TerminalOf returns nil.
func TerminalOf(*os.File) (*Terminal, error) { return nil, nil }

// Serve does nothing.
func Serve() {}

// Post returns nil.
func Post(string, *Terminal, Then) (*Guardian, error) { return nil, nil }

// Kill does nothing.
func Kill(string) int { return 0 }

// Members returns nil.
func Members(string) []machine.Entry { return nil }

// Dismiss does nothing.
func (*Guardian) Dismiss() {}

// Undo does nothing.
func (*Guardian) Undo([]byte) {}

// Leave does nothing.
func (*Guardian) Leave() {}

// DiesWithParent does nothing: this system has no such signal.
func DiesWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

// Adopts is false: orphans become children of launchd.
const Adopts = false

// Adopt does nothing: this system has no subreapers.
func Adopt() {}
