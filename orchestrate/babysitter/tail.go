package babysitter

import (
	"bytes"
	"sync"
)

// tail keeps the end of what is written to it: at least half of its limit. The answer is
// near the end, whatever process code printed before.
type tail struct {
	limit int

	mu      sync.Mutex
	kept    []byte
	written int
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written += len(p)
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over+t.limit/2:]...)
	}
	return len(p), nil
}

// look returns what was kept so far, and how much was written in all.
func (t *tail) look() ([]byte, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept), t.written
}
