package terminal

import (
	"io"
	"time"

	"github.com/muesli/cancelreader"
)

const (
	// drainPatience is how long nothing may come out of the terminal after the end
	// of the session, where a process that is not of the session has it open; and
	// drainLimit how long anything may.
	drainPatience = 250 * time.Millisecond
	drainLimit    = 5 * time.Second
)

// readTerminal reads what the command prints, until nobody has the terminal any
// more.
func (s *session) readTerminal() {
	defer close(s.read)
	buf := make([]byte, 64<<10)
	for {
		if s.draining.Load() {
			_ = s.ptmx.SetReadDeadline(time.Now().Add(drainPatience)) // it can be given one
		}
		n, err := s.ptmx.Read(buf)
		if n > 0 {
			s.lastOutput.Store(int64(s.now()))
			if s.Watch != nil {
				s.Watch(buf[:n])
			}
			s.out.Put(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// passKeys has the command get what is typed at the caller's terminal, until stop
// leaves it to whoever reads there next.
func (s *session) passKeys() (stop func()) {
	keys, err := cancelreader.NewReader(s.caller.typing)
	if err != nil { // /dev/tty of macOS: the key after the session is lost
		s.spawn(func() { s.copyKeys(s.caller.typing) })
		return func() {}
	}
	passed := make(chan struct{})
	s.spawn(func() {
		defer close(passed)
		s.copyKeys(keys)
	})
	return func() {
		keys.Cancel()
		_ = s.ptmx.SetWriteDeadline(time.Now()) // nobody is left to take what was typed
		<-passed
		_ = keys.Close() // nothing was written
	}
}

func (s *session) copyKeys(keys io.Reader) {
	buf := make([]byte, 4<<10)
	for {
		n, err := keys.Read(buf)
		if n > 0 {
			if s.Typed != nil {
				s.Typed(buf[:n])
			}
			if _, err := s.ptmx.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// drain passes on what is left in the terminal, once nobody is there to add to
// it: the last one to have it open is this process.
func (s *session) drain() {
	s.draining.Store(true)
	_ = s.ptmx.SetReadDeadline(time.Now().Add(drainPatience)) // of the read that is waiting
	_ = s.tty.Close()                                         // the end of reading
	select {
	case <-s.read:
	case <-time.After(drainLimit):
		_ = s.ptmx.Close() // it ends the reading
		<-s.read           // who watches is told nothing after the end
	}
	s.out.Flush(s.hurried())
}

// hurried is closed by the next signal that asks for the end.
func (s *session) hurried() <-chan struct{} {
	if sig, _ := s.Signals.Signal(); sig != 0 {
		return s.Signals.Second()
	}
	return s.Signals.First()
}
