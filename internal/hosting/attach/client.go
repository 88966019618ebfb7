package attach

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine/socket"
)

// maxMessage bounds a line that a host sends: a message of 64 MiB and what is around it.
const maxMessage = 64<<20 + 1<<16

// maxAnswer bounds any other answer. A session's state has at most 80 MiB.
const maxAnswer = 96 << 20

// Host is the host of the session with this folder, seen from another process.
type Host struct{ Folder string }

// Status asks what the session is doing. The answer is the JSON of the host's
// [Backend].
func (h Host) Status(ctx context.Context) (status json.RawMessage, err error) {
	return status, h.ask(ctx, http.MethodGet, "/status", nil, &status)
}

// Cancel asks the session to end, and returns once the host has taken note. The client
// has that long before it is killed; if grace is negative the session uses its own.
func (h Host) Cancel(ctx context.Context, grace time.Duration) error {
	path := "/cancel"
	if grace >= 0 {
		path += "?grace=" + grace.String()
	}
	return h.ask(ctx, http.MethodPost, path, nil, nil)
}

// Stop asks the session to deliver nothing more and to end once the entry in flight is
// answered, after most at the latest. grace is as for [Host.Cancel].
func (h Host) Stop(ctx context.Context, most, grace time.Duration) error {
	path := "/stop?most=" + most.String()
	if grace >= 0 {
		path += "&grace=" + grace.String()
	}
	return h.ask(ctx, http.MethodPost, path, nil, nil)
}

// Send appends an entry to the session's inbox. A text of more than [MaxText] bytes is
// refused. The error matches ErrEnded if the session takes no more of them.
func (h Host) Send(ctx context.Context, id, text string) (receipt inbox.Receipt, err error) {
	body, err := json.Marshal(entry{id, text})
	if err != nil {
		return receipt, err
	}
	return receipt, h.ask(ctx, http.MethodPost, "/send", body, &receipt)
}

// ask reads the answer to a request into a value, unless that is nil.
func (h Host) ask(ctx context.Context, method, path string, body []byte, into any) error {
	resp, err := h.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // the connection is not used again
	if into == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the answer of the session's host: %w", err)
	}
	return nil
}

// errCutOff says that a connection ended before the answer did.
var errCutOff = errors.New("the host broke the connection off")

// request returns an answer that is no refusal. Closing its body closes the connection.
func (h Host) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://session"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, h.Folder)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	req.Close = true
	// A host that refuses does not read it all: what it says counts, if it says anything.
	unsent := req.Write(conn)
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err == nil {
		resp.Body = answer{resp.Body, conn, stop}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		defer resp.Body.Close()                                     // all was read that is wanted
		why, _ := io.ReadAll(io.LimitReader(resp.Body, maxRequest)) // what came of the sentence will do
		no := hostError{sentence: strings.TrimSpace(string(why))}
		if resp.StatusCode == http.StatusGone {
			no.kind = ErrEnded
		}
		return nil, no
	}
	stop()
	_ = conn.Close() // nothing more comes
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case strings.Contains(err.Error(), "malformed HTTP"):
		return nil, ErrOther
	}
	return nil, fmt.Errorf("%w: %w", errCutOff, errors.Join(err, unsent))
}

// answer is the body of an answer, and the connection that it comes by.
type answer struct {
	io.Reader
	conn net.Conn
	stop func() bool
}

func (a answer) Close() error {
	a.stop()
	return a.conn.Close()
}

// hostError is a sentence of the host's.
type hostError struct {
	sentence string
	kind     error
}

func (e hostError) Error() string { return e.sentence }
func (e hostError) Unwrap() error { return e.kind }

// Messages yields the messages from a number on and then those that come, each once and
// in order, until the session has ended. It connects again where a connection breaks
// off. The one error it yields, as the last, matches ErrNotRunning if the host is gone
// without an end of the stream: what is left is in the database, from the number on that
// follows the last message.
func (h Host) Messages(ctx context.Context, from int64) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		r := &reader{Host: h, next: max(1, from), yield: yield}
		if err := r.follow(ctx); err != nil && !r.done {
			yield(stream.Stored{}, err)
		}
	}
}

// reader follows one session's messages over any number of connections.
type reader struct {
	Host
	next  int64 // the message that is wanted
	yield func(stream.Stored, error) bool
	done  bool // nobody wants more
}

func (r *reader) follow(ctx context.Context) error {
	for pause := time.Duration(0); ; {
		before := r.next
		err := r.read(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.done || !errors.Is(err, errCutOff) {
			return err
		}
		if pause = min(max(10*time.Millisecond, 2*pause), time.Second); r.next > before {
			pause = 0
		}
		if err := socket.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// read yields the messages of one connection. It returns nil at the end of the session,
// and errCutOff if the connection ended before that.
func (r *reader) read(ctx context.Context) error {
	resp, err := r.request(ctx, http.MethodGet, "/messages?"+url.Values{"from": {strconv.FormatInt(r.next, 10)}}.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // the connection is not used again
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	for lines.Scan() {
		var l struct {
			stream.Stored
			failure
		}
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case err != nil && lines.Err() == nil:
			return fmt.Errorf("the host's line is not JSON: %w", err)
		case err != nil:
			continue // a part of a line
		case l.Error != "":
			return errors.New(l.Error)
		}
		r.next = l.N + 1
		if !r.yield(l.Stored, nil) {
			r.done = true
			return nil
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("the host sends a line of more than %d bytes", maxMessage)
	case err != nil:
		return fmt.Errorf("%w: %w", errCutOff, err)
	}
	return nil
}
