package proxy

import (
	"fmt"
	"strings"
	"sync"

	"heartbeat/internal/words"
)

// logger passes on one line at a time, and none after stop.
type logger struct {
	mu      sync.Mutex
	to      func(string)
	stopped bool
}

// printf keeps to one line: names and messages come from the client and the guild.
func (l *logger) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil || l.stopped {
		return
	}
	l.to(words.Sentence(fmt.Sprintf(format, args...)))
}

// Write takes what the HTTP server has to say.
func (l *logger) Write(line []byte) (int, error) {
	l.printf("mcp-proxy: %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

func (l *logger) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}
