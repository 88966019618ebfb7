package hook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
)

const (
	maxInput = 32 << 20
	// largeInput is the size from which each outgrown buffer is freed at once. Otherwise memory would grow to a
	// multiple of the input.
	largeInput = 1 << 20

	// stdinPatience is how long a hook that no client started waits for more input before it gives up. A client may
	// write late or pause for as long as its machine is busy, so its hook only checks that its parent is still there.
	stdinPatience = 5 * time.Second
)

// readInput reads the hook's input from stdin.
func (h *hook) readInput() (*claude.Input, error) {
	if cli.IsTerminal(h.In) {
		return nil, errors.New("stdin is a terminal")
	}
	b, err := readObject(int(h.In.Fd()), h.awaitInput)
	if err != nil {
		return nil, fmt.Errorf("read the hook's input: %w", err)
	}
	if len(b) == 0 {
		return nil, errors.New("stdin is empty")
	}
	if h.handed != nil && h.handed.inputSize >= 0 {
		b = b[:min(int64(len(b)), h.handed.inputSize)]
	}
	in, err := claude.ParseInput(b)
	if err == nil && h.open == nil {
		h.raw = b
	}
	return in, err
}

// untold ends a hook that could not read whose event this is. It knows of no turn to end, so it does not signal the
// launcher either.
func (h *hook) untold(err error) int {
	h.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
	h.explainToPerson()
	return cli.ExitError
}

// explainToPerson says what this command is, unless a client started it.
func (h *hook) explainToPerson() {
	if h.ofClient() {
		return
	}
	fmt.Fprintln(h.Err, `This is a Stop hook. Claude Code starts it after each turn, and tells it on stdin
whose turn that was.
  heartbeat install       wires it
  heartbeat status        shows an inbox
  heartbeat-stop --help   has the rest, and --no-input for a harness that gives its
                          hooks no input`)
}

// ofClient reports whether a client started this hook.
func (h *hook) ofClient() bool { return h.Launched || claude.IsParent() }

// awaitInput returns when there is something to read, or why there will be nothing: a client that started the hook will
// write, however late. It polls because reading in a goroutine would cost a thread at each turn.
func (h *hook) awaitInput() error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.In.Fd()), Events: unix.POLLIN}}, int(stdinPatience.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil || n > 0:
			return err
		case !h.ofClient():
			return fmt.Errorf("nothing more came on stdin for %v", stdinPatience)
		case os.Getppid() != h.parent:
			return errSessionGone
		}
	}
}

// readObject reads to the end of one whole object, after which a client may leave stdin open, or to the end of stdin.
// White space before the object is dropped, but counts towards maxInput.
func readObject(fd int, await func() error) ([]byte, error) {
	b, blank := make([]byte, 0, 4<<10), 0
	var o objectEnd
	for blank+len(b) < maxInput {
		if err := await(); err != nil {
			return nil, err
		}
		b = withRoom(b)
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
		if o.at == 0 {
			rest := bytes.TrimLeft(b, " \t\r\n")
			blank += len(b) - len(rest)
			b = b[:copy(b, rest)]
		}
		if o.reached(b) {
			return b, nil
		}
	}
	return nil, fmt.Errorf("it is longer than %d bytes", maxInput)
}

// withRoom returns b with room for more. It grows b by half, or reading would take quadratic time.
func withRoom(b []byte) []byte {
	if cap(b)-len(b) >= 4<<10 {
		return b
	}
	b = slices.Grow(b, max(4<<10, len(b)/2))
	if cap(b) > largeInput {
		runtime.GC()
	}
	return b
}

// objectEnd finds the end of a JSON object that comes in pieces, and looks at each byte once. It leaves errors to a
// parser.
type objectEnd struct {
	at                int // everything before was looked at
	depth             int
	inString, escaped bool
}

// reached reports whether b, which has grown since the last call, holds a whole object, or is no object.
func (o *objectEnd) reached(b []byte) bool {
	for ; o.at < len(b); o.at++ {
		switch c := b[o.at]; {
		case o.escaped:
			o.escaped = false
		case o.inString:
			o.escaped, o.inString = c == '\\', c != '"'
		case c == '"':
			o.inString = true
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			o.depth--
		}
		if o.depth <= 0 && (o.at > 0 || b[0] != '{') {
			return true
		}
	}
	return false
}
