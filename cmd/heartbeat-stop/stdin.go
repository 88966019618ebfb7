package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/claude"
)

const (
	stdinSilence = time.Second // an open stdin that says nothing
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

// readUntilSilent reads up to the end of stdin, of one whole object (a client may
// leave stdin open behind it), or of its own patience.
func readUntilSilent(fd int) ([]byte, error) {
	b := make([]byte, 0, 4<<10)
	for len(b) < maxInput {
		ready, err := awaitInput(fd, stdinSilence)
		if err != nil || !ready {
			return b, err
		}
		b = slices.Grow(b, max(4<<10, len(b)/2))
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err == unix.EBADF || err == nil && n == 0:
			return b, nil
		case err != nil:
			return nil, err
		}
		b = b[:len(b)+n]
		if bytes.HasSuffix(bytes.TrimRight(b, " \r\n"), []byte("}")) && json.Valid(b) {
			return b, nil
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
