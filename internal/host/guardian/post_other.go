//go:build !linux

package guardian

import "os"

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

// Dismiss does nothing.
func (*Guardian) Dismiss() {}

// Leave does nothing.
func (*Guardian) Leave() {}
