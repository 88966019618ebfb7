package guild

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"
)

// The steps of a request that a fault can be at.
const (
	AtStart     = "start"   // before the body is read
	WhenRead    = "read"    // the body was read, and nothing was applied
	WhenApplied = "applied" // it was applied, and nothing was answered
	AmidAnswer  = "answer"  // half of the answer was written
)

// Steps are all of them, in their order.
var Steps = []string{AtStart, WhenRead, WhenApplied, AmidAnswer}

// What a fault does.
const (
	Die    = "die"    // SIGKILL to the guild's process
	Reset  = "reset"  // the connection is reset
	Hang   = "hang"   // nothing happens until the client goes away
	Slow   = "slow"   // the request goes on after Delay
	Answer = "answer" // Status is answered, before the body is read if the step is start
)

// Fault makes requests fail.
type Fault struct {
	On     string        `json:"on,omitempty"`   // running, heartbeat, record or tool; empty for all
	Step   string        `json:"step,omitempty"` // empty is the start
	Do     string        `json:"do"`
	Status int           `json:"status,omitempty"`
	Delay  time.Duration `json:"delay,omitempty"`
	Skip   int           `json:"skip,omitempty"`  // requests that pass first
	Times  int           `json:"times,omitempty"` // how often; 0 is once, negative always
}

// Break adds a fault. The first one that fits a request counts.
func (g *Guild) Break(f Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Step == "" {
		f.Step = AtStart
	}
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Do == Answer && f.Step == AmidAnswer {
		f.Step = WhenApplied // an answer has one status
	}
	g.faults = append(g.faults, &f)
}

// Mend takes all faults away.
func (g *Guild) Mend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = nil
}

// fault takes the fault for a step of a request.
func (g *Guild) fault(kind, step string) *Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, f := range g.faults {
		if f.Step != step || f.On != "" && f.On != kind {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				g.faults = slices.Delete(g.faults, i, i+1)
			}
		}
		return f
	}
	return nil
}

// fails does what a fault says, and reports whether the request is over.
func (g *Guild) fails(w http.ResponseWriter, r *http.Request, kind, step string) bool {
	f := g.fault(kind, step)
	if f == nil {
		return false
	}
	if step == AmidAnswer {
		_ = http.NewResponseController(w).Flush() // so that the half arrives
	}
	switch f.Do {
	case Die:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		<-g.closed // never
	case Reset:
		reset(w)
	case Hang:
		select {
		case <-r.Context().Done():
		case <-g.closed:
		}
	case Slow:
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-g.closed:
		}
		return false
	case Answer:
		http.Error(w, fmt.Sprintf(`{"error":"fault %d"}`, f.Status), f.Status)
	}
	return true
}

func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // it cannot be taken over any more: cut it off
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
