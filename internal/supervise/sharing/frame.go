// Package sharing gives people a terminal on an unattended session: the launcher listens on a unix socket in its
// private folder, and shows each watcher what the emulator of the session's terminal shows. A watcher gets pictures,
// drawn with a handful of sequences, never the session's raw output. So a slow watcher misses pictures and holds nobody
// up, and its terminal is left as it was, whatever the session sets.
//
// # Protocol
//
// Both sides send frames: a byte for the kind, four for the length of what follows, most
// significant first. The watcher begins.
//
//	h  watcher: {"v":1,"rows":24,"cols":80,"watch":false,"take":false,"key":"ctrl-\\"}
//	h  launcher: {"v":1,"session":"30e2a723-..."}
//	k  watcher: what was typed
//	s  watcher: {"rows":24,"cols":80}, when its terminal has another size
//	d  launcher: what to write to the terminal
//	b  launcher: a sentence on why it is over, the last frame
package sharing

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// SocketName is the socket's name in the launcher's private folder.
const SocketName = "attach"

const version = 1

// The kinds of frames.
const (
	frameHello = 'h'
	frameKeys  = 'k'
	frameSize  = 's'
	frameDraw  = 'd'
	frameBye   = 'b'
)

// The largest contents of a frame, to the launcher and from it, in bytes.
const (
	maxSent  = 64 << 10
	maxDrawn = 32 << 20
)

// hello is the first frame of each side.
type hello struct {
	Version int    `json:"v"`
	Session string `json:"session,omitempty"` // sent by the launcher
	size           // this and the rest are sent by the watcher
	Watch   bool   `json:"watch,omitempty"`
	Take    bool   `json:"take,omitempty"`
	Key     string `json:"key,omitempty"` // the name of the key that detaches
}

type size struct {
	Rows int `json:"rows,omitempty"`
	Cols int `json:"cols,omitempty"`
}

// The largest terminal that is drawn for, and the size of a watcher without one.
const (
	maxRows, maxCols         = 500, 1000
	defaultRows, defaultCols = 24, 80
)

// bounded returns the size to draw for.
func (s size) bounded() size {
	if s.Rows <= 0 || s.Cols <= 0 {
		return size{defaultRows, defaultCols}
	}
	return size{min(s.Rows, maxRows), min(s.Cols, maxCols)}
}

// writeFrame writes a frame in one call.
func writeFrame(w io.Writer, kind byte, what []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(what))), what...))
	return err
}

func writeJSON(w io.Writer, kind byte, what any) error {
	text, _ := json.Marshal(what) // of strings, numbers and flags: cannot fail
	return writeFrame(w, kind, text)
}

// readFrame reads a frame of at most most bytes.
func readFrame(r io.Reader, most int) (kind byte, what []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if int64(n) > int64(most) {
		return 0, nil, fmt.Errorf("a frame of %d bytes, and it may have %d", n, most)
	}
	what = make([]byte, n)
	_, err = io.ReadFull(r, what)
	return head[0], what, err
}
