package sharing

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/words"
)

// watcher is somebody who is attached.
type watcher struct {
	conn    *net.UnixConn
	session *Session
	key     string // what detaches
	watches bool   // and never types
	types   atomic.Bool
	changed chan struct{} // there is something to draw
	over    chan struct{}

	mu    sync.Mutex
	is    size
	ended bool
	why   string
}

// maxKey is the longest name of a key that is shown.
const maxKey = 16

func newWatcher(conn *net.UnixConn, h hello) *watcher {
	key := words.Line(h.Key)
	if len(key) > maxKey {
		key = ""
	}
	return &watcher{
		conn: conn, key: key, watches: h.Watch, is: h.size.bounded(),
		changed: make(chan struct{}, 1), over: make(chan struct{}),
	}
}

func (w *watcher) size() size {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.is
}

func (w *watcher) resized(to size) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.is = to
}

// poke has the watcher see what there is now.
func (w *watcher) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// end sends the watcher away. The first reason counts.
func (w *watcher) end(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended, w.why = true, why
		close(w.over)
	}
}

// send sends pictures until the watcher is to go, and then why. One that takes nothing gets
// none meanwhile, and is given up after a while.
func (w *watcher) send() {
	if w.write(func() error { return writeJSON(w.conn, frameHello, hello{Version: version, Session: w.session.Name()}) }) != nil {
		return
	}
	var shown canvas
	for {
		select {
		case <-w.over:
			_ = w.conn.SetWriteDeadline(time.Now().Add(helloPatience))
			_ = writeFrame(w.conn, frameBye, []byte(w.why)) // it is gone, or is told
			return
		case <-w.changed:
		}
		if is := w.size(); is != shown.size {
			shown.resize(is)
		}
		if b := shown.draw(w.session.Screen.Picture(), w.line()); b != nil {
			if w.write(func() error { return writeFrame(w.conn, frameDraw, b) }) != nil {
				return
			}
		}
		select {
		case <-time.After(drawEvery):
		case <-w.over:
		}
	}
}

func (w *watcher) write(send func() error) error {
	_ = w.conn.SetWriteDeadline(time.Now().Add(drawPatience)) // a socket has deadlines
	return send()
}

// line is what stands below the session, with what matters most first.
func (w *watcher) line() string {
	text := " heartbeat: "
	switch {
	case w.types.Load():
		text += "you type"
	case w.watches:
		text += "you watch"
	default:
		text += "somebody else types"
	}
	if w.key != "" {
		text += ", " + w.key + " leaves the session to itself"
	}
	return words.Line(text + " (" + words.Short(w.session.Name()) + ")")
}
