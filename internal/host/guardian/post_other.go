//go:build !linux

package guardian

import (
	"os"
	"syscall"

	"heartbeat/internal/host"
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
func Post(string, *Terminal) (*Guardian, error) { return nil, nil }

// PostThen returns nil.
func PostThen(string, *Terminal, Then) (*Guardian, error) { return nil, nil }

// Kill does nothing.
func Kill(string) int { return 0 }

// Members returns nil.
func Members(string) []host.Entry { return nil }

// Send signals a process. If it has ended the error matches ESRCH.
func Send(p host.Entry, sig syscall.Signal) error {
	if host.ProcessStart(p.PID) != p.Start {
		return syscall.ESRCH
	}
	return syscall.Kill(p.PID, sig)
}

// Dismiss does nothing.
func (*Guardian) Dismiss() {}

// Leave does nothing.
func (*Guardian) Leave() {}
