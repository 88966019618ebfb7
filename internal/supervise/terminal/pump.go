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
	// limit is how many bytes may wait; chunkSize is how many the writer gets at a time.
	limit     = 1 << 20
	chunkSize = 16 << 10
	// patience is how long the writer may take for a chunk before the waiting bytes are dropped. A slower writer would
	// stall the source; a faster one gets everything, and slows the source down to its own speed.
	patience = 250 * time.Millisecond
	// flushPatience is the patience at the end, when no source is held up.
	flushPatience = 2 * time.Second
)

var errSlow = errors.New("it is not being read")

// Pump buffers at most 1 MiB for its writer. If the buffer is full and the writer takes less than
// 16 KiB in a quarter of a second, the Pump drops the buffer.
type Pump struct {
	// Last, if set, is called from the writing goroutine after the last write, before [Pump.Flush] returns.
	Last func()

	to      io.Writer
	trouble func(error) // called once, with why bytes were dropped

	mu      sync.Mutex
	waiting []byte
	closed  bool
	hurried bool // waiting bytes are dropped
	taken   int  // how many chunks the writer took or refused
	stuckAt int  // the value of taken at the last drop
	warned  sync.Once

	patience, flushPatience time.Duration // the constants; tests choose others

	more chan struct{} // something waits, or the pump was closed
	step chan struct{} // a chunk was taken
	done chan struct{} // everything was taken
}

// NewPump returns a pump to a writer. It calls trouble once, with the reason, when it drops bytes.
func NewPump(to io.Writer, trouble func(error)) *Pump {
	return &Pump{
		to: to, trouble: trouble, stuckAt: -1, patience: patience, flushPatience: flushPatience,
		more: make(chan struct{}, 1), step: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// poke sends v unless the channel is full.
func poke[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default:
	}
}

// Put adds bytes to be written. The caller may reuse b. If the buffer is full, Put blocks while the
// writer takes chunk after chunk; if the writer stalls, Put drops the buffer, in whole pieces as
// they were put. A chunk that the writer refuses is dropped too.
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
	poke(p.more, struct{}{})
}

// awaitStep waits, without the lock, until the writer takes a chunk. It reports false after the patience.
func (p *Pump) awaitStep() bool {
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-p.step:
		return true
	case <-time.After(p.patience):
		return false
	}
}

func (p *Pump) drop(why error) { p.warned.Do(func() { p.trouble(why) }) }

// Run writes until [Pump.Flush] was called and nothing waits.
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
			if p.Last != nil {
				p.Last()
			}
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
		hurried := p.hurried
		p.mu.Unlock()
		poke(p.step, struct{}{})
		if hurried {
			return
		}
	}
}

// reason returns the system's error without the file's name, which the caller knows.
func reason(err error) error {
	if path, is := errors.AsType[*os.PathError](err); is {
		err = path.Err
	}
	if errors.Is(err, syscall.EPIPE) {
		return errors.New("its reader is gone")
	}
	return err
}

// Flush waits until everything is written, and reports whether it was. It gives up when the writer
// takes nothing for two seconds; closing hurry drops what waits. Do not call Put afterwards.
func (p *Pump) Flush(hurry <-chan struct{}) bool {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	poke(p.more, struct{}{})
	for patience, whole := p.flushPatience, true; ; {
		select {
		case <-p.done:
			return whole
		case <-p.step:
		case <-time.After(patience):
			p.drop(errSlow)
			return false
		case <-hurry:
			p.mu.Lock()
			p.hurried, p.waiting = true, nil
			p.mu.Unlock()
			hurry, whole, patience = nil, false, p.patience
		}
	}
}
