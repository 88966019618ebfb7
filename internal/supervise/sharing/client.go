package sharing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// Watch says how a person's terminal is attached.
type Watch struct {
	In, Out *os.File // the terminal
	Detach  Key
	Only    bool // type nothing
	Take    bool // take over from the person who types
}

// errAway says that the person has detached.
var errAway = errors.New("detached")

// Attach shows the session at the terminal and passes on what is typed there, until the person detaches, the session is
// over or ctx ends; why says which. It restores the terminal. After an error it has shown nothing.
func Attach(ctx context.Context, conn *net.UnixConn, w Watch) (why string, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close() // nothing is left to send
	session, err := w.greet(conn)
	if err != nil {
		return "", err
	}
	found, _ := guardian.TerminalOf(w.In)                 // if it fails, nobody restores the terminal after a kill
	guard, _ := guardian.Post("", found, guardian.Then{}) // likewise
	defer guard.Dismiss()
	state, err := term.MakeRaw(int(w.In.Fd()))
	if err != nil {
		return "", fmt.Errorf("set the terminal to raw: %w", err)
	}
	guard.Undo([]byte(leaveScreen))
	defer func() { _ = term.Restore(int(w.In.Fd()), state) }() // fails if the terminal is gone
	defer func() { _, _ = w.Out.WriteString(leaveScreen) }()   // likewise
	if _, err := w.Out.WriteString(enterScreen); err != nil {
		return "", fmt.Errorf("draw at the terminal: %w", err)
	}
	over, shown := make(chan error, 2), make(chan struct{})
	defer func() { _ = conn.Close(); <-shown }() // nothing is drawn after this
	go func() {
		defer close(shown)
		over <- w.show(conn)
	}()
	defer w.passKeys(conn, over)()
	defer w.passSize(conn)()
	err = <-over
	name := strings.TrimSpace("session " + words.Short(session)) // it may have no name yet
	var bye bye
	switch {
	case ctx.Err() != nil || errors.Is(err, errAway):
		return "detached: " + name + " goes on", nil
	case errors.As(err, &bye):
		return name + ": " + words.Line(string(bye)), nil
	}
	return name + ": its launcher is gone", nil
}

// bye is why the launcher ended the attachment.
type bye string

func (b bye) Error() string { return words.Line(string(b)) }

// greetPatience is how long a launcher may take for its hello: a stopped launcher never sends one. The tests change it.
var greetPatience = drawPatience

// greet introduces the watcher and learns the session's name.
func (w Watch) greet(conn *net.UnixConn) (session string, err error) {
	h := hello{Version: version, size: w.size(), Watch: w.Only, Take: w.Take, Key: w.Detach.Name}
	if err := writeJSON(conn, frameHello, h); err != nil && !errors.Is(err, syscall.EPIPE) { // its answer says why
		return "", fmt.Errorf("write to the launcher: %w", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(greetPatience)) // sockets have deadlines
	kind, text, err := readFrame(conn, maxSent)
	_ = conn.SetReadDeadline(time.Time{}) // likewise
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", fmt.Errorf("the launcher has sent nothing for %v: if it is stopped, let it continue (kill -CONT)", greetPatience)
	case err != nil:
		return "", fmt.Errorf("the launcher sent nothing: %w", err)
	case kind == frameBye:
		return "", bye(text)
	case kind != frameHello || json.Unmarshal(text, &h) != nil || h.Version != version:
		return "", errors.New("the launcher is of another release: use its own command")
	}
	return h.Session, nil
}

func (w Watch) size() size {
	rows, cols, _ := pty.Getsize(w.Out) // both 0 if it fails
	return size{rows, cols}.bounded()
}

// show draws what the launcher sends, until the end.
func (w Watch) show(conn io.Reader) error {
	for {
		kind, what, err := readFrame(conn, maxDrawn)
		switch {
		case err != nil:
			return err
		case kind == frameBye:
			return bye(what)
		case kind == frameDraw:
			if _, err := w.Out.Write(what); err != nil {
				return errAway // the terminal is gone
			}
		}
	}
}

// interrupt is ctrl-c, which also detaches a watcher that types nothing.
const interrupt = 3

// passKeys passes on what is typed until stop. over gets an error when the person detaches.
func (w Watch) passKeys(conn io.Writer, over chan<- error) (stop func()) {
	stop, _ = terminal.ReadKeys(w.In, func(keys []byte) (goOn bool) {
		typed, _, away := bytes.Cut(keys, []byte{w.Detach.code})
		if away = away || keys == nil || w.Only && bytes.ContainsRune(typed, interrupt); away {
			defer func() { over <- errAway }()
		}
		if len(typed) > 0 && !w.Only {
			_ = writeFrame(conn, frameKeys, typed) // show meets the same error
		}
		return !away
	})
	return stop
}

// passSize reports each change of the terminal's size until stop.
func (w Watch) passSize(conn io.Writer) (stop func()) {
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	changed <- syscall.SIGWINCH // the size may have changed since the hello
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-changed:
				_ = writeJSON(conn, frameSize, w.size()) // likewise
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(changed); close(done) }
}

// Key is a key with ctrl, and a flag's value.
type Key struct {
	Name string
	code byte
}

// DetachKey is a key that no client uses.
var DetachKey = Key{`ctrl-\`, 0x1c}

// Set parses a name such as ctrl-x.
func (k *Key) Set(name string) error {
	letter, ctrl := strings.CutPrefix(strings.ToLower(name), "ctrl-")
	if ctrl && len(letter) == 1 && strings.Contains(`abcdefghklnopqrstuvwxyz\]^_`, letter) { // i, j, m are other keys
		*k = Key{name, letter[0] & 0x1f}
		return nil
	}
	return errors.New(`it takes a key with ctrl, such as ctrl-\ or ctrl-x`)
}

func (k *Key) String() string { return k.Name }

func (k *Key) Type() string { return "key" }
