package proxy

import (
	"fmt"
	"sync"
	"time"
)

// Stats is what a proxy has seen so far.
type Stats struct {
	Configured int       // tools that the client can list
	Listed     bool      // the client has asked for the list
	Open       int       // requests and streams of the client that are open now
	Calls      int       // calls begun
	Failed     int       // calls that ended in an error
	Running    int       // calls in progress
	Last       time.Time // when a call last began or ended; zero before the first
}

// Warning is a sentence about a client that works without the tools it was given, or
// "". It means something once the client has answered its first prompt.
func (s Stats) Warning() string {
	if s.Listed || s.Configured == 0 {
		return ""
	}
	return fmt.Sprintf("the client never asked for the list of tools: none of the %d configured tools was available to it", s.Configured)
}

// Stats is safe to call at any time, also after Close.
func (p *Proxy) Stats() Stats {
	p.counts.mu.Lock()
	defer p.counts.mu.Unlock()
	stats := p.counts.stats
	stats.Configured = len(p.list)
	return stats
}

// counts guards the figures of Stats.
type counts struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counts) list() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Listed = true
}

// begin is the number of the call, counted from 1.
func (c *counts) begin() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Calls++
	c.stats.Running++
	c.stats.Last = time.Now()
	return c.stats.Calls
}

func (c *counts) end(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Running--
	if failed {
		c.stats.Failed++
	}
	c.stats.Last = time.Now()
}

func (c *counts) open(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Open += change
}

func (c *counts) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats.Calls
}
