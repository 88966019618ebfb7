// Package attach is how other processes reach a session that is hosted: HTTP on a unix
// socket in the session's folder, which only its owner can open.
//
//	GET /status             what the session is doing
//	POST /cancel?grace=10s  end the session
//	POST /stop?most=1m      deliver nothing more, and end it once the entry in flight is answered
//	POST /send              append an entry to the session's inbox: {"text":"...","id":"..."}
//
// Its messages are read where the host keeps them: in its database.
package attach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine/socket"
)

// SocketName is the name of the socket in the session's folder.
const SocketName = "sock"

// MaxText is the longest text, in bytes, that is sent here. Longer ones go to the inbox
// directly.
const MaxText = 1 << 20

// maxRequest bounds the body of a request. JSON takes up to six bytes for one of a text.
const maxRequest = 6*MaxText + 4096

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotRunning says that no host serves the folder: the session has ended, or its
	// host is dead.
	ErrNotRunning = errors.New("no host serves the session")
	// ErrEnded says that the session takes no more entries. A [Backend] returns it.
	ErrEnded = errors.New("the session has ended")
	// ErrOther says that a release serves the folder that knows no HTTP.
	ErrOther = errors.New("the session's host is that of another release: use its own command")
)

// entry is the body of a request to send.
type entry struct {
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}

// dial connects to the host that serves the folder. The error matches ErrNotRunning if
// there is none.
func dial(ctx context.Context, folder string) (net.Conn, error) {
	conn, err := socket.Dial(ctx, folder, SocketName)
	switch {
	case errors.Is(err, socket.ErrNobody):
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case err != nil:
		return nil, fmt.Errorf("reach the session's host: %w", err)
	}
	return conn, nil
}

// maxAnswer bounds an answer. A session's state has at most 80 MiB.
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
	return h.end(ctx, "/cancel?", grace)
}

// Stop asks the session to deliver nothing more and to end once the entry in flight is
// answered, after most at the latest. grace is as for [Host.Cancel].
func (h Host) Stop(ctx context.Context, most, grace time.Duration) error {
	return h.end(ctx, "/stop?most="+most.String()+"&", grace)
}

func (h Host) end(ctx context.Context, path string, grace time.Duration) error {
	if grace >= 0 {
		path += "grace=" + grace.String()
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
	req, err := http.NewRequestWithContext(ctx, method, "http://session"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, h.Folder) },
	}).RoundTrip(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && strings.Contains(err.Error(), "malformed HTTP"):
		return ErrOther
	case err != nil:
		return err
	}
	defer resp.Body.Close() // the connection is not used again
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusOK { // what came of the sentence will do
		no := hostError{sentence: strings.TrimSpace(string(text))}
		if resp.StatusCode == http.StatusGone {
			no.kind = ErrEnded
		}
		return no
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the answer of the session's host: %w", err)
	}
	return nil
}

// hostError is a sentence of the host's.
type hostError struct {
	sentence string
	kind     error
}

func (e hostError) Error() string { return e.sentence }
func (e hostError) Unwrap() error { return e.kind }
