package terminal

import (
	"time"
)

const (
	// After the session's end a process outside it may still have the terminal open.
	// Reading stops after drainPatience without output, and after drainLimit in any
	// case.
	drainPatience = 250 * time.Millisecond
	drainLimit    = 5 * time.Second
)

// readTerminal reads what the command prints, until nobody has the terminal open.
func (s *session) readTerminal() {
	defer close(s.read)
	buf := make([]byte, 64<<10)
	for {
		if s.draining.Load() {
			_ = s.ptmx.SetReadDeadline(time.Now().Add(drainPatience)) // cannot fail: see pollable
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

// drain passes on what is left in the terminal when nobody can add to it: by then
// this process should be the only one that has it open.
func (s *session) drain() {
	s.draining.Store(true)
	_ = s.ptmx.SetReadDeadline(time.Now().Add(drainPatience)) // also for a read that is already blocked
	_ = s.tty.Close()                                         // with no other end open, reading ends
	select {
	case <-s.read:
	case <-time.After(drainLimit):
		_ = s.ptmx.Close() // ends the reading
		<-s.read           // Watch must not be called after the end
	}
	s.out.Flush(s.hurried())
}

// hurried is closed by the next signal.
func (s *session) hurried() <-chan struct{} {
	if sig, _ := s.Signals.Signal(); sig != 0 {
		return s.Signals.Second()
	}
	return s.Signals.First()
}
