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
	"context"
	"errors"
	"fmt"
	"net"

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
