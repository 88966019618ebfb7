package crash

import (
	"bytes"
	"sync"
)

// output keeps what a child writes, and returns it line by line to one reader.
type output struct {
	mu     sync.Mutex
	more   *sync.Cond
	all    bytes.Buffer
	read   int
	closed bool
}

func newOutput() *output {
	o := &output{}
	o.more = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.more.Broadcast()
	return o.all.Write(b)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Broadcast()
}

// line waits for the next complete line. false means that none will come.
func (o *output) line() (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		rest := o.all.Bytes()[o.read:]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			o.read += i + 1
			return string(rest[:i]), true
		}
		if o.closed {
			return "", false
		}
		o.more.Wait()
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}
