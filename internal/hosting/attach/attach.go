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
	"net/url"
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

// End is how a session is to end.
type End struct {
	Grace time.Duration // the client has that long before it is killed; if negative, what the session was started with
	// Warm has nothing more delivered, and the session end once the entry in flight is
	// answered, after Most at the latest.
	Warm bool
	Most time.Duration
}

// Cancel asks the session to end, and returns once the host has taken note.
func (h Host) Cancel(ctx context.Context, e End) error {
	path, how := "/cancel", url.Values{}
	if e.Warm {
		path = "/stop"
		how.Set("most", e.Most.String())
	}
	if e.Grace >= 0 {
		how.Set("grace", e.Grace.String())
	}
	return h.ask(ctx, http.MethodPost, path+"?"+how.Encode(), nil, nil)
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
	case err != nil:
		return err
	}
	defer resp.Body.Close() // the connection is not used again
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusOK { // what came of the sentence will do
		no := Refused{sentence: strings.TrimSpace(string(text))}
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

// Refused is a sentence of the host's: it was reached, and does not do what it was asked.
type Refused struct {
	sentence string
	kind     error
}

func (e Refused) Error() string { return e.sentence }
func (e Refused) Unwrap() error { return e.kind }
