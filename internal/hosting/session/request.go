package session

import (
	"sync"
	"time"
)

// request is the request to end the session, which may come at any time, from anybody,
// more than once.
type request struct {
	mu    sync.Mutex
	by    string
	at    time.Time
	grace time.Duration
	made  chan struct{} // closed by the first one
	again chan struct{} // gets the others
}

func newRequest() *request {
	return &request{made: make(chan struct{}), again: make(chan struct{}, 1)}
}

// make asks for the end. A second request can only shorten the grace.
func (r *request) make(by string, grace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == "" {
		r.by, r.at, r.grace = by, time.Now(), grace
		close(r.made)
		return
	}
	if left := time.Until(r.at.Add(r.grace)); grace < left {
		r.grace = time.Since(r.at) + grace
	}
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// left is how much time the client has left.
func (r *request) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.at.Add(r.grace)))
}

// next is closed by, or gets, the next request, whether or not there was one before.
func (r *request) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == "" {
		return r.made
	}
	select {
	case <-r.again: // it asked for the end of the client
	default:
	}
	return r.again
}
