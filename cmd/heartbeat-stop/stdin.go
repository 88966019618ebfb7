package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/claude"
)

const (
	stdinSilence = time.Second           // an open stdin that says nothing
	stdinPause   = 20 * time.Millisecond // a client that leaves stdin open behind its object
	maxInput     = 256 << 20
)

var errNoStdin = errors.New("no hook input")

// readInput reads the hook's input. A stdin that is closed, empty, silent or a
// terminal gives errNoStdin: the hook was not started by a client.
func readInput(stdin *os.File) (*claude.Input, error) {
	fd := int(stdin.Fd())
	if _, err := unix.IoctlGetTermios(fd, termiosRequest); err == nil {
		return nil, errNoStdin
	}
	b, err := readUntilSilent(fd)
	if err != nil {
		return nil, fmt.Errorf("read hook input: %w", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errNoStdin
	}
	return claude.ParseInput(b)
}

func readUntilSilent(fd int) ([]byte, error) {
	var b []byte
	chunk := make([]byte, 4<<10)
	for len(b) < maxInput {
		wait := stdinSilence
		if bytes.HasSuffix(bytes.TrimRight(b, " \r\n"), []byte("}")) {
			wait = stdinPause
		}
		ready, err := awaitInput(fd, wait)
		if err != nil {
			return nil, err
		}
		if !ready {
			if wait == stdinSilence || json.Valid(b) {
				return b, nil
			}
			if ready, err = awaitInput(fd, stdinSilence); err != nil || !ready {
				return b, err
			}
		}
		n, err := unix.Read(fd, chunk)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err == unix.EBADF || err == nil && n == 0:
			return b, nil
		case err != nil:
			return nil, err
		}
		b = append(b, chunk[:n]...)
		if n == len(chunk) && len(chunk) < 1<<20 {
			chunk = make([]byte, 1<<20)
		}
	}
	return nil, fmt.Errorf("it is longer than %d bytes", maxInput)
}

// awaitInput polls instead of reading in a goroutine, which would cost a thread
// at each turn.
func awaitInput(fd int, wait time.Duration) (bool, error) {
	deadline := time.Now().Add(wait)
	for {
		rest := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(rest.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		return n > 0, err
	}
}
