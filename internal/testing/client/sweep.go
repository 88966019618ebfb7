package client

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// sweep kills what clients of one workspace left running and waits until it is
// gone. Hooks and shells run in sessions of their own, out of reach of a group
// kill, but they carry the scratch HOME in their environment, which no other
// process on the machine has. Where there is no /proc it finds nothing.
func sweep(t testing.TB, home string) {
	deadline := time.Now().Add(5 * time.Second)
	for killAll(home) > 0 {
		if time.Now().After(deadline) {
			t.Errorf("client: processes with HOME=%s do not end", home)
			return
		}
		time.Sleep(poll)
	}
}

// killAll sends SIGKILL to every process with this HOME and returns how many
// there were.
func killAll(home string) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	found := 0
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if killIfOurs(pid, path, home) {
			found++
		}
	}
	return found
}

// killIfOurs takes a handle on the process before it looks at it, so that a
// process id which changes hands in between cannot hit a stranger.
func killIfOurs(pid int, environ, home string) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	raw, err := os.ReadFile(environ)
	if err != nil || !bytes.Contains(append([]byte{0}, raw...), []byte("\x00HOME="+home+"\x00")) {
		return false
	}
	return process.Kill() == nil
}
