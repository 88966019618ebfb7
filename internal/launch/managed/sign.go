package managed

import (
	"fmt"
	"os"
	"sync"

	"heartbeat/internal/disk"
)

// sign tells others what the launcher is doing, in the file of its lock: the number of
// its process in the first line, a text for people in the second.
type sign struct {
	mu   sync.Mutex
	lock *disk.Lock
	said string
}

// say writes the file only if the text is new: each write changes the inbox's directory,
// which wakes everybody who follows it.
func (s *sign) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || text == s.said {
		return
	}
	s.said = text
	_ = s.lock.Sign(fmt.Sprintf("%d\n%s\n", os.Getpid(), text)) // only people read it
}
