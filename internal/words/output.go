package words

import (
	"bytes"
	"sync"
)

// Tail keeps the end of a program's output: the last Most bytes that are written to it. Its methods are concurrent.
type Tail struct {
	Most int

	mu      sync.Mutex
	kept    []byte
	written int
}

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written += len(b)
	t.kept = append(t.kept, b[max(0, len(b)-t.Most):]...)
	if over := len(t.kept) - t.Most; over > t.Most/4 { // rarely, so that a flood costs few copies
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// Kept returns what is kept so far, and how many bytes were written in all.
func (t *Tail) Kept() (end []byte, written int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept[max(0, len(t.kept)-t.Most):]), t.written
}

// String returns what is kept.
func (t *Tail) String() string {
	end, _ := t.Kept()
	return string(end)
}

// Head keeps the beginning of a program's output: the first Most bytes that are written to it. It embeds no buffer: a
// buffer's ReadFrom would bypass the bound.
type Head struct {
	Most int
	Over bool // more was written
	kept []byte
}

func (h *Head) Write(b []byte) (int, error) {
	keep := min(len(b), h.Most-len(h.kept))
	h.Over = h.Over || keep < len(b)
	h.kept = append(h.kept, b[:keep]...)
	return len(b), nil
}

// String returns what is kept.
func (h *Head) String() string { return string(h.kept) }
