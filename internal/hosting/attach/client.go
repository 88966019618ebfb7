package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"time"

	"heartbeat/inbox"
)

// maxMessage bounds a line that a host sends: a message of 64 MiB and what is around it.
const maxMessage = 64<<20 + 1<<16

// Host is the host of the session with this folder, seen from another process.
type Host struct{ Folder string }

// Status asks what the session is doing. The answer is the JSON of the host's
// [Backend].
func (h Host) Status(ctx context.Context) (json.RawMessage, error) {
	answer, err := h.ask(ctx, request{Op: opStatus})
	var s struct{ Status json.RawMessage }
	if err == nil {
		err = json.Unmarshal(answer, &s)
	}
	return s.Status, err
}

// Cancel asks the session to end, and returns once the host has taken note. The client
// has that long before it is killed; if grace is negative the session uses its own.
func (h Host) Cancel(ctx context.Context, grace time.Duration) error {
	r := request{Op: opCancel}
	if grace >= 0 {
		r.Grace = grace.String()
	}
	_, err := h.ask(ctx, r)
	return err
}

// Send appends an entry to the session's inbox. A text of more than [MaxText] bytes is
// refused. The error matches ErrEnded if the session takes no more of them.
func (h Host) Send(ctx context.Context, id, text string) (receipt inbox.Receipt, err error) {
	answer, err := h.ask(ctx, request{Op: opSend, ID: id, Text: text})
	if err == nil {
		err = json.Unmarshal(answer, &receipt)
	}
	return receipt, err
}

// ask sends a request and returns the answer.
func (h Host) ask(ctx context.Context, r request) (answer json.RawMessage, err error) {
	err = h.retry(ctx, func() error {
		return h.exchange(ctx, r, func(lines *bufio.Reader) error {
			answer, err = readAnswer(lines)
			return err
		})
	})
	return answer, err
}

// errBusy says that the host has too many connections, or is too busy to see a request
// in time.
var errBusy = errors.New("the session's host is too busy to answer")

// retry calls f until the host is not too busy.
func (h Host) retry(ctx context.Context, f func() error) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f()
		if !errors.Is(err, errBusy) {
			return err
		}
		if sleep(ctx, pause) != nil {
			return err
		}
	}
}

// exchange sends a request and hands what the host answers to f. Once ctx ends, reading
// does.
func (h Host) exchange(ctx context.Context, r request, f func(*bufio.Reader) error) error {
	conn, err := dial(ctx, h.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // all was read that is wanted
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// A host that refuses a connection does not read: what it says counts, if it says
	// anything.
	_, unsent := conn.Write(append(line, '\n'))
	err = f(bufio.NewReaderSize(conn, 64<<10))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errCutOff) && unsent != nil:
		return fmt.Errorf("%w: %w", errCutOff, unsent)
	}
	return err
}

// errCutOff says that a connection ended before the last line.
var errCutOff = errors.New("the host broke the connection off")

// readAnswer reads a line that may be a refusal.
func readAnswer(lines *bufio.Reader) (json.RawMessage, error) {
	line, err := readMessageLine(lines)
	if err != nil {
		return nil, err
	}
	var no refusal
	if err := json.Unmarshal(line, &no); err != nil {
		return nil, fmt.Errorf("the host's answer is not JSON: %w", err)
	}
	return line, no.err()
}

func (r refusal) err() error {
	switch {
	case r.Error == "":
		return nil
	case r.Busy:
		return errBusy
	case r.Ended:
		return hostError{r.Error, ErrEnded}
	}
	return errors.New(r.Error)
}

// hostError is a sentence of the host's.
type hostError struct {
	sentence string
	kind     error
}

func (e hostError) Error() string { return e.sentence }
func (e hostError) Unwrap() error { return e.kind }

// readMessageLine reads a line without its newline. Without one it is not whole.
func readMessageLine(lines *bufio.Reader) (line []byte, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, errors.Join(errCutOff, ignoreEnd(err))
		case len(line) > maxMessage:
			return nil, fmt.Errorf("the host sends a line of more than %d bytes", maxMessage)
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Messages yields the messages from a number on and then those that come, each once and
// in order, until the session has ended. It connects again where a connection breaks
// off. The one error it yields, as the last, matches ErrNotRunning if the host is gone
// without an end of the stream: what is left is in the database, from the number on that
// follows the last message.
func (h Host) Messages(ctx context.Context, from int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r := &reader{Host: h, next: max(1, from), yield: yield}
		if err := r.follow(ctx); err != nil && !r.done {
			yield(Message{}, err)
		}
	}
}

// reader follows one session's messages over any number of connections.
type reader struct {
	Host
	next  int64 // the message that is wanted
	yield func(Message, error) bool
	done  bool // nobody wants more
}

func (r *reader) follow(ctx context.Context) error {
	for pause := time.Duration(0); ; {
		before := r.next
		err := r.retry(ctx, func() error {
			return r.exchange(ctx, request{Op: opAttach, From: r.next}, r.read)
		})
		if r.done || !errors.Is(err, errCutOff) {
			return err
		}
		if pause = min(max(10*time.Millisecond, 2*pause), time.Second); r.next > before {
			pause = 0
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// streamed is any line of a stream.
type streamed struct {
	Message
	closing
	refusal
}

// read yields the messages of one connection. It returns nil at the end of the session,
// and errCutOff if the connection ended before that.
func (r *reader) read(lines *bufio.Reader) error {
	for {
		line, err := readMessageLine(lines)
		if err != nil {
			return err
		}
		var l streamed
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("the host's line is not JSON: %w", err)
		}
		switch {
		case l.Error != "":
			return l.err()
		case l.End:
			return nil
		case l.Slow:
			return errCutOff
		case l.N < r.next: // it came by the connection before
			continue
		}
		r.next = l.N + 1
		if !r.yield(l.Message, nil) {
			r.done = true
			return nil
		}
	}
}
