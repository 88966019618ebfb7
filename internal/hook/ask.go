package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
)

const (
	maxInput = 32 << 20

	// stdinPatience is how long a hook that no client started waits for more input. A client may write late or pause for
	// as long as its machine is busy, so its hook only checks that its parent is still there.
	stdinPatience = 5 * time.Second
)

// stdin reads one object at a time, since a client may leave its end open after that.
type stdin struct {
	*json.Decoder
	left *io.LimitedReader
}

func (h *hook) openStdin() {
	left := &io.LimitedReader{R: awaited{h}, N: maxInput}
	h.stdin = stdin{json.NewDecoder(left), left}
}

// next reads the next object, of at most maxInput bytes.
func (s stdin) next(into any) error {
	err := s.Decode(into)
	if err != nil && s.left.N == 0 {
		err = fmt.Errorf("it is longer than %d bytes", maxInput)
	}
	s.left.N = maxInput
	return err
}

// hasMore reports whether anything but white space came behind the last object.
func (s stdin) hasMore() bool {
	rest, err := io.ReadAll(s.Buffered())
	return err != nil || len(bytes.TrimSpace(rest)) > 0
}

// awaited is the hook's stdin. A client that started the hook will write, however late, so Read waits for as long as
// that client lives. It polls, because a goroutine that reads would cost each turn a thread.
type awaited struct{ *hook }

func (h awaited) Read(b []byte) (int, error) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.In.Fd()), Events: unix.POLLIN}}, int(stdinPatience.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n > 0:
			return h.In.Read(b)
		case !h.ofClient():
			return 0, fmt.Errorf("nothing more came on stdin for %v", stdinPatience)
		case os.Getppid() != h.Parent:
			return 0, errSessionGone
		}
	}
}

func (h *hook) readInput() (*claude.Input, error) {
	if cli.IsTerminal(h.In) {
		return nil, errors.New("stdin is a terminal")
	}
	var b json.RawMessage
	err := h.stdin.next(&b)
	switch _, is := errors.AsType[*json.SyntaxError](err); {
	case err == io.EOF:
		return nil, errors.New("stdin is empty")
	case is || err == io.ErrUnexpectedEOF || err == nil && h.stdin.hasMore():
		return nil, errors.New("hook input that is not valid JSON, or cut off")
	case err != nil:
		return nil, fmt.Errorf("read the hook's input: %w", err)
	}
	in, err := claude.ParseInput(b)
	if err != nil {
		return nil, err
	}
	in.FixResumedTranscript()
	if h.open == nil {
		h.raw = b
	}
	return in, nil
}

// explainToPerson prints what this command is, unless a client started it.
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

func (h *hook) ofClient() bool { return h.Launched || claude.IsParent() }
