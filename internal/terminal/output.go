package terminal

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// outputLimit is how much waits for stdout at the most, and outputChunk how
	// much is given to it at a time.
	outputLimit = 1 << 20
	outputChunk = 16 << 10
	// outputPatience is how long stdout may take for a chunk before what waits is
	// dropped. A reader that is slower than this would stall the session; one that
	// is faster gets everything, and slows the command down to its own speed.
	outputPatience = 250 * time.Millisecond
	// flushPatience is the same once the session is over, and nobody is held up.
	flushPatience = 2 * time.Second
)

var errSlow = errors.New("it is not being read")

// output brings what the command prints to stdout, without ever stalling the
// command.
type output struct {
	to      io.Writer
	trouble func(error) // told once why something was dropped

	mu      sync.Mutex
	waiting []byte
	closed  bool
	taken   int // chunks that stdout took or refused
	stuckAt int // what taken was when something was dropped last
	said    sync.Once

	more chan struct{} // something waits, or nothing more will
	step chan struct{} // a chunk was taken
	done chan struct{} // everything was
}

func newOutput(to io.Writer, trouble func(error)) *output {
	return &output{
		to: to, trouble: trouble, stuckAt: -1,
		more: make(chan struct{}, 1), step: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// poke has whoever waits look again.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put hands over what the command printed. It blocks as long as stdout takes
// chunk after chunk, and drops what waits once it does not.
func (o *output) put(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting)+len(b) > outputLimit {
		before := o.taken
		if before == o.stuckAt || !o.awaitStep() && o.taken == before {
			o.waiting = o.waiting[:0]
			o.stuckAt = o.taken
			o.drop(errSlow)
		}
	}
	o.waiting = append(o.waiting, b...)
	poke(o.more)
}

// awaitStep waits for a chunk to be taken, without the lock.
func (o *output) awaitStep() bool {
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-o.step:
		return true
	case <-time.After(outputPatience):
		return false
	}
}

func (o *output) drop(why error) { o.said.Do(func() { o.trouble(why) }) }

// write writes until the end.
func (o *output) write() {
	defer close(o.done)
	var taking []byte
	for range o.more {
		o.mu.Lock()
		taking, o.waiting = o.waiting, taking[:0]
		closed := o.closed
		o.mu.Unlock()
		o.writeAll(taking)
		if closed {
			return
		}
	}
}

func (o *output) writeAll(b []byte) {
	for len(b) > 0 {
		chunk := b[:min(outputChunk, len(b))]
		b = b[len(chunk):]
		if _, err := o.to.Write(chunk); err != nil {
			o.drop(reason(err))
		}
		o.mu.Lock()
		o.taken++
		o.mu.Unlock()
		poke(o.step)
	}
}

// reason is what the system says, without the file's name: it is stdout.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, syscall.EPIPE) {
		return errors.New("its reader is gone")
	}
	return err
}

// flush waits for what is left to be taken, as long as any of it is and nobody
// calls it off.
func (o *output) flush(hurry <-chan os.Signal) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	poke(o.more)
	for {
		select {
		case <-o.done:
			return
		case <-o.step:
		case <-time.After(flushPatience):
			o.drop(errSlow)
			return
		case sig := <-hurry:
			if endsSession(sig) {
				return
			}
		}
	}
}
