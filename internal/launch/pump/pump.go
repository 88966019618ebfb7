// Package pump brings bytes to where they may not be taken, without ever stalling
// whom they come from.
package pump

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// limit is how much waits at the most, and chunkSize how much is given to the
	// writer at a time.
	limit     = 1 << 20
	chunkSize = 16 << 10
	// patience is how long the writer may take for a chunk before what waits is
	// dropped. One that is slower than this would stall the source; one that is
	// faster gets everything, and slows the source down to its own speed.
	patience = 250 * time.Millisecond
	// flushPatience is the same once all has come, and nobody is held up.
	flushPatience = 2 * time.Second
)

var errSlow = errors.New("it is not being read")

// Pump holds what waits for its writer: 1 MiB at the most. When that is full and
// the writer takes no 16 KiB in a quarter of a second, all of it is dropped.
type Pump struct {
	to      io.Writer
	trouble func(error) // told once why something was dropped

	mu      sync.Mutex
	waiting []byte
	closed  bool
	taken   int // chunks that the writer took or refused
	stuckAt int // what taken was when something was dropped last
	said    sync.Once

	more chan struct{} // something waits, or nothing more will
	step chan struct{} // a chunk was taken
	done chan struct{} // everything was
}

// New is a pump to a writer. trouble is told once, with the reason, that
// something was dropped.
func New(to io.Writer, trouble func(error)) *Pump {
	return &Pump{
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

// Put hands over what is to be written; b may be used again. It blocks as long as
// the writer takes chunk after chunk, and drops what waits once it does not: whole
// pieces of those that were put, unless the writer refuses a chunk.
func (p *Pump) Put(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting)+len(b) > limit {
		before := p.taken
		if before == p.stuckAt || !p.awaitStep() && p.taken == before {
			p.waiting = p.waiting[:0]
			p.stuckAt = p.taken
			p.drop(errSlow)
		}
	}
	p.waiting = append(p.waiting, b...)
	poke(p.more)
}

// awaitStep waits for a chunk to be taken, without the lock.
func (p *Pump) awaitStep() bool {
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-p.step:
		return true
	case <-time.After(patience):
		return false
	}
}

func (p *Pump) drop(why error) { p.said.Do(func() { p.trouble(why) }) }

// Run writes, until [Pump.Flush] is called and nothing waits.
func (p *Pump) Run() {
	defer close(p.done)
	var taking []byte
	for range p.more {
		p.mu.Lock()
		taking, p.waiting = p.waiting, taking[:0]
		closed := p.closed
		p.mu.Unlock()
		p.writeAll(taking)
		if closed {
			return
		}
	}
}

func (p *Pump) writeAll(b []byte) {
	for len(b) > 0 {
		chunk := b[:min(chunkSize, len(b))]
		b = b[len(chunk):]
		if _, err := p.to.Write(chunk); err != nil {
			p.drop(reason(err))
		}
		p.mu.Lock()
		p.taken++
		p.mu.Unlock()
		poke(p.step)
	}
}

// reason is what the system says, without the file's name, which the caller knows.
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

// Flush waits for what is left to be written, as long as any of it is taken within
// two seconds and hurry is not closed, and reports whether the writer is done
// with. Nothing may be put after it.
func (p *Pump) Flush(hurry <-chan struct{}) bool {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	poke(p.more)
	for {
		select {
		case <-p.done:
			return true
		case <-p.step:
		case <-time.After(flushPatience):
			p.drop(errSlow)
			return false
		case <-hurry:
			return false
		}
	}
}
