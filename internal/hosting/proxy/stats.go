package proxy

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"heartbeat/internal/words"
)

// Stats is what a proxy has seen so far.
type Stats struct {
	Configured int       // tools that the client can list
	Listed     bool      // the client has asked for the list
	Calls      int       // calls begun
	Failed     int       // calls that ended in an error
	Running    int       // calls in progress
	Last       time.Time // when a call last began or ended; zero before the first
	// LastError is how the last call that failed did, with the tool's name.
	LastError string
	// Tools are the calls of each tool that was called, by its name.
	Tools map[string]Calls
}

// Calls are those of one tool.
type Calls struct {
	Calls, Failed int
	LastError     string // of the last call that failed
}

// Other is the name that calls of all tools count under that are not configured.
const Other = "(no such tool)"

// began counts a call, and returns its number.
func (p *Proxy) began(name string, at time.Time) int {
	return p.count(func(s *Stats) {
		s.Calls, s.Running, s.Last = s.Calls+1, s.Running+1, at
		of := s.Tools[p.counted(name)]
		of.Calls++
		s.Tools[p.counted(name)] = of
	}).Calls
}

// ended counts the end of a call.
func (p *Proxy) ended(name string, err error) {
	p.count(func(s *Stats) {
		if s.Running, s.Last = s.Running-1, time.Now(); err == nil {
			return
		}
		of := s.Tools[p.counted(name)]
		of.Failed++
		of.LastError = words.Brief(err.Error())
		s.Failed, s.LastError = s.Failed+1, p.counted(name)+": "+of.LastError
		s.Tools[p.counted(name)] = of
	})
}

// counted is the name that a tool's calls count under.
func (p *Proxy) counted(name string) string {
	if _, known := p.tools[name]; known {
		return name
	}
	return Other
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
func (p *Proxy) Stats() Stats { return p.count(func(*Stats) {}) }

// count changes the figures, and returns them.
func (p *Proxy) count(change func(*Stats)) Stats {
	p.counting.Lock()
	defer p.counting.Unlock()
	change(&p.stats)
	now := p.stats
	now.Tools = maps.Clone(now.Tools)
	return now
}

// printf logs on one line: names and messages come from the client and the guild.
func (p *Proxy) printf(format string, args ...any) {
	if p.options.Log != nil {
		p.options.Log(words.Sentence(fmt.Sprintf(format, args...)))
	}
}

// Write takes what the HTTP server has to say.
func (p *Proxy) Write(line []byte) (int, error) {
	p.printf("mcp-proxy: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}
