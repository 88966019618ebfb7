// Package attach is how other processes reach a session that is hosted: a unix socket
// in the session's folder, which only its owner can open.
//
// A connection carries one request, a JSON object on a line of its own, and the
// answer, which is one line too, or for attach one line a message:
//
//	{"op":"attach","from":1}              the messages from that number on, as they come
//	{"op":"status"}                       what the session is doing
//	{"op":"cancel","grace":"10s"}         end the session
//	{"op":"send","text":"...","id":"..."} append an entry to the session's inbox
//
// A reader that takes nothing for a while is disconnected, and goes on from the number
// it is told. No reader holds up the session: each has a goroutine of its own, which
// reads from the transcript store.
package attach

import (
	"encoding/json"
	"errors"
	"time"
)

// SocketName is the name of the socket in the session's folder.
const SocketName = "sock"

// MaxText is the longest text, in bytes, that a send request carries. Longer ones go to
// the inbox directly.
const MaxText = 1 << 20

// maxRequest bounds the line of a request. JSON takes up to six bytes for one of a text.
const maxRequest = 6*MaxText + 4096

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotRunning says that no host serves the folder: the session has ended, or its
	// host is dead.
	ErrNotRunning = errors.New("no host serves the session")
	// ErrRunning says that a host serves the folder already.
	ErrRunning = errors.New("another host serves the session")
	// ErrEnded says that the session takes no more entries. A [Backend] returns it.
	ErrEnded = errors.New("the session has ended")
)

// Message is one line of the client's stream.
type Message struct {
	N    int64           `json:"n"` // from 1
	At   time.Time       `json:"at"`
	Type string          `json:"type"`
	Raw  json.RawMessage `json:"content"` // compact
}

// The operations of requests.
const (
	opAttach = "attach"
	opStatus = "status"
	opCancel = "cancel"
	opSend   = "send"
)

// request is the line that a client sends.
type request struct {
	Op    string `json:"op"`
	From  int64  `json:"from,omitempty"`  // attach; 0 is 1
	Grace string `json:"grace,omitempty"` // cancel; a Go duration, "" for the session's own
	Text  string `json:"text,omitempty"`  // send
	ID    string `json:"id,omitempty"`    // send
}

// closing is the last line of a stream of messages.
type closing struct {
	// End says that the session has ended and that there are no more messages.
	End bool `json:"end,omitempty"`
	// Slow says that the reader took nothing for too long.
	Slow bool `json:"slow,omitempty"`
	// Next is the number to go on from.
	Next int64 `json:"next"`
}

// refusal is an answer, or the last line of a stream, that says what went wrong.
type refusal struct {
	Error string `json:"error"`
	// Ended says that it is [ErrEnded].
	Ended bool `json:"ended,omitempty"`
	// Busy says that there are too many connections, or that the request came late: try
	// again.
	Busy bool `json:"busy,omitempty"`
}
