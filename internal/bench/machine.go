package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// setting is the line that says what was measured, and on which machine.
func (b *bench) setting() string {
	return fmt.Sprintf("Machine: %s, %d cores, %s, %s (scratch directory), %s %s/%s; load %s before the run. heartbeat-stop of commit %s.",
		cpu(), runtime.NumCPU(), kernel(), fileSystem(b.dir), runtime.Version(), runtime.GOOS, runtime.GOARCH, load(), b.revision())
}

// revision is the commit that is measured. The build's own stamp may be
// switched off.
func (b *bench) revision() string {
	out, _ := exec.CommandContext(b.ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output() // unknown without it
	return known(string(out))
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown kernel"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// known returns the text, or a word for none.
func known(s string) string {
	if s = strings.TrimSpace(s); s != "" {
		return s
	}
	return "unknown"
}
