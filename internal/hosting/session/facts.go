package session

import (
	"time"

	"heartbeat/internal/hosting/folder"
)

// What ended the client, as reports spell it.
const (
	endedItself    = "exit"
	endedByCancel  = "cancel"
	endedByTimeout = "timeout"
	endedByStall   = "stall"
	endedByLimit   = "limit"
	endedLingering = "exit-deadline" // it had finished and did not exit
)

// Facts are what is known of a session at its end. The state is decided from nothing
// else, by its host or by who finishes for a dead one.
type Facts struct {
	// Broken is the host's own error that kept the session from starting or going on.
	Broken string
	// HostDied says that the host was killed, and somebody else finishes.
	HostDied bool
	// Cancelled says who asked for the end before the client had ended.
	Cancelled string
	// Ended is what ended the client, and After the limit that it had passed.
	Ended string
	After time.Duration
	// RateLimit is the rate limit that the client met, if it met one.
	RateLimit *folder.RateLimit
	// Result is the client's last result line, nil before the first. ErrorText is what
	// it says of an error.
	Result    *folder.Result
	ErrorText string
	// MemoryMax is the limit of the client's memory in bytes, 0 for none.
	MemoryMax int64
	// Exit is how the last client ended, nil if none was started or nobody saw its end.
	Exit *folder.Exit
	// Entries are the fates of the session's entries.
	Entries folder.Entries
}

func (f Facts) unanswered() int {
	return f.Entries.Queued + f.Entries.InFlight + f.Entries.DeadLettered
}

// answered reports whether every entry was.
func (f Facts) answered() bool { return f.Entries.Answered > 0 && f.unanswered() == 0 }
