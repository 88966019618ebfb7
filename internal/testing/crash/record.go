package crash

import (
	"slices"
	"sync"
	"testing"

	"heartbeat/internal/disk"
)

// Recorder keeps a copy of every call that its Observe method gets.
type Recorder struct {
	mu       sync.Mutex
	ops      []disk.Op
	promises []promise
}

// promise is something that must hold once made calls were made.
type promise struct {
	made int
	text string
}

// Observe is a [disk.Observer].
func (r *Recorder) Observe(op disk.Op) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Data = slices.Clone(op.Data)
	r.ops = append(r.ops, op)
	return nil
}

// Ops returns the calls so far.
func (r *Recorder) Ops() []disk.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

func (r *Recorder) promise(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promises = append(r.promises, promise{len(r.ops), text})
}

// Recording is what one run did to a directory.
type Recording struct {
	Before, After *Image
	Ops           []disk.Op
	promises      []promise
}

// Promised returns the texts that were given to [Promise] before call number made+1:
// what must hold if the machine stops there.
func (r *Recording) Promised(made int) []string {
	var texts []string
	for _, p := range r.promises {
		if p.made <= made {
			texts = append(texts, p.text)
		}
	}
	return texts
}

// Record runs run in this process and keeps the calls that it makes. All of
// them must be inside dir.
func Record(t testing.TB, dir string, run func()) *Recording {
	t.Helper()
	r := &Recorder{}
	before := Snapshot(t, dir)
	stop := Observe(t, r.Observe)
	setPromise(r.promise)
	run()
	setPromise(nil)
	stop()
	return &Recording{Before: before, After: Snapshot(t, dir), Ops: r.ops, promises: r.promises}
}

var (
	promiseMu sync.Mutex
	onPromise func(text string)
)

func setPromise(f func(string)) {
	promiseMu.Lock()
	defer promiseMu.Unlock()
	onPromise = f
}

// Promise records that text must hold from here on, whatever happens. A run calls it
// when the code under test has returned, and a check finds it in [Crash.Promised]. It
// does nothing outside a recorded run or a child.
func Promise(text string) {
	promiseMu.Lock()
	defer promiseMu.Unlock()
	if onPromise != nil {
		onPromise(text)
	}
}
