// Package attach connects other processes to a hosted session: by HTTP on a unix socket in the
// session's folder, which only its owner can open.
//
//	GET /status             the session's record
//	POST /cancel?grace=10s  end the session
//	POST /stop?most=1m      deliver nothing more, and end it once the entry in flight is answered
//	POST /send              append an entry to the session's inbox: {"text":"...","id":"..."}
//
// The session's messages are in the host's database.
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

const SocketName = "sock" // in the session's folder

// MaxText is the longest text in a request, in bytes. Append a longer one to the inbox directly.
const MaxText = 1 << 20

// maxRequest bounds a request's body. JSON may need six bytes for one of a text.
const maxRequest = 6*MaxText + 4096

var (
	// ErrNotRunning means that no host serves the folder: the session has ended, or its host is dead.
	ErrNotRunning = socket.ErrNobody
	// ErrEnded means that the session takes no more entries. A [Backend] returns it.
	ErrEnded = errors.New("the session has ended")
)

type entry struct {
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}

const maxAnswer = 96 << 20 // bytes; a session's state has at most 80 MiB

// Host is a session's host, as other processes reach it by the session's folder.
type Host struct{ Folder string }

// Status decodes the value of the host's [Backend.Status] into another one.
func (h Host) Status(ctx context.Context, into any) error {
	return h.ask(ctx, http.MethodGet, "/status", nil, into)
}

// End is how a session is to end.
type End struct {
	Grace time.Duration // from SIGTERM to SIGKILL of the client; if negative, as at the session's start
	// Warm stops delivery and ends the session once the entry in flight is answered, at the latest after Most.
	Warm bool
	Most time.Duration
}

// Cancel requests the session's end, and returns once the host has accepted the request.
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

// Send appends an entry to the session's inbox. The host refuses texts of more than [MaxText] bytes. The
// error matches [ErrEnded] if the session takes no more entries.
func (h Host) Send(ctx context.Context, id, text string) (receipt inbox.Receipt, err error) {
	body, _ := json.Marshal(entry{id, text}) // strings always have a JSON form
	return receipt, h.ask(ctx, http.MethodPost, "/send", body, &receipt)
}

// ask decodes the answer to a request into into, unless that is nil.
func (h Host) ask(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://session"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return socket.Dial(ctx, h.Folder, SocketName)
		},
	}).RoundTrip(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("reach the session's host: %w", err)
	}
	defer resp.Body.Close() // the connection is not used again
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode != http.StatusOK { // on an error the text read so far will do
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

// Refused is the host's refusal of a request, in a sentence.
type Refused struct {
	sentence string
	kind     error
}

func (e Refused) Error() string { return e.sentence }
func (e Refused) Unwrap() error { return e.kind }
