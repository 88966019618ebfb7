package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/words"
)

// Other is the name that calls of all tools count under that are not configured.
const Other = "(no such tool)"

// began counts a call, and returns its number.
func (p *Proxy) began(name string) int64 {
	return p.count(name, func(s *folder.Tools, of *folder.ToolUse) { s.Calls++; s.Open++; of.Calls++ }).Calls
}

// ended counts the end of a call.
func (p *Proxy) ended(name string, err error) {
	p.count(name, func(s *folder.Tools, of *folder.ToolUse) {
		if s.Open--; err != nil {
			s.Failed++
			of.Failed++
			of.LastError = words.Brief(err.Error())
			s.LastError = of.Name + ": " + of.LastError
		}
	})
}

// count changes the figures of a tool, and returns those of all.
func (p *Proxy) count(name string, change func(*folder.Tools, *folder.ToolUse)) folder.Tools {
	if _, known := p.tools[name]; !known {
		name = Other
	}
	p.counting.Lock()
	defer p.counting.Unlock()
	s, now := &p.stats, time.Now().UTC()
	at, found := slices.BinarySearchFunc(s.Each, name, func(u folder.ToolUse, name string) int { return strings.Compare(u.Name, name) })
	if s.Each = slices.Clone(s.Each); !found { // who has read it may keep it
		s.Each = slices.Insert(s.Each, at, folder.ToolUse{Name: name})
	}
	s.LastAt = &now
	change(s, &s.Each[at])
	return *s
}

// Stats is what the client did so far. It is safe to call at any time, also after Close.
func (p *Proxy) Stats() folder.Tools {
	p.counting.Lock()
	defer p.counting.Unlock()
	return p.stats
}

// listed notes that the client has asked for the list.
func (p *Proxy) listed() {
	p.counting.Lock()
	defer p.counting.Unlock()
	p.stats.Listed = true
}

// Warning is a sentence about a client that works without the tools it was given, or
// "". It means something once the client has answered its first prompt.
func Warning(s folder.Tools) string {
	if s.Listed || s.Configured == 0 {
		return ""
	}
	return fmt.Sprintf("the client never asked for the list of tools: none of the %d configured tools was available to it", s.Configured)
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
