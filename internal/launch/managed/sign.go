package managed

import (
	"fmt"
	"os"
	"sync"

	"heartbeat/internal/disk"
)

// sign tells others what the launcher is doing, in the file of its lock: its number
// in the first line, and the rest in words in the second.
type sign struct {
	mu   sync.Mutex
	lock *disk.Lock
	said string
}

// say writes what is new: each write is a change in the inbox's directory, which
// wakes who follows that.
func (s *sign) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || text == s.said {
		return
	}
	s.said = text
	_ = s.lock.Sign(fmt.Sprintf("%d\n%s\n", os.Getpid(), text)) // for people alone
}
