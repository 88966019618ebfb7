package session

import "time"

// Facts are what is known of a session at its end. The state is decided from nothing
// else, by its host or by who finishes for a dead one.
type Facts struct {
	// Broken is the host's own error that kept the session from starting or going on.
	Broken string `json:"broken,omitempty"`
	// HostDied says that the host was killed, and somebody else finishes.
	HostDied bool `json:"host_died,omitempty"`
	// Cancelled says who asked for the end before the client had ended.
	Cancelled string `json:"cancelled,omitempty"`
	// TimedOut and Stalled are why the host ended the client: after which time in all,
	// or after which time without progress.
	TimedOut time.Duration `json:"timed_out,omitempty"`
	Stalled  time.Duration `json:"stalled,omitempty"`
	// Lingered says that the client did not exit within the time after its result, and
	// was ended.
	Lingered time.Duration `json:"lingered,omitempty"`
	// RateLimit is what the client said about a rate limit, "" if it met none.
	RateLimit string    `json:"rate_limit,omitempty"`
	ResetsAt  time.Time `json:"resets_at,omitzero"`
	// Result is the client's last result line, nil before the first.
	Result *Result `json:"result,omitempty"`
	// Exit is how the last client ended, nil if none was started or nobody saw it end.
	Exit *Exit `json:"exit,omitempty"`
	// Entries are the fates of the session's entries.
	Entries Entries `json:"entries"`
}

// Result is what a result line says.
type Result struct {
	Subtype string `json:"subtype,omitempty"`
	IsError bool   `json:"is_error"`
	Text    string `json:"text,omitempty"` // of an error
}

// Exit is how a process ended: with a status, or by a signal.
type Exit struct {
	Code   int    `json:"code"`             // -1 after a signal
	Signal string `json:"signal,omitempty"` // such as SIGKILL
}

// Entries count the entries of a session by what became of them.
type Entries struct {
	Answered     int `json:"answered"`
	Queued       int `json:"queued"`
	InFlight     int `json:"in_flight"`
	DeadLettered int `json:"dead_lettered"`
	Dropped      int `json:"dropped,omitempty"`
}

// Total counts all entries.
func (e Entries) Total() int { return e.Answered + e.Unanswered() }

// Unanswered counts the entries that nobody answered.
func (e Entries) Unanswered() int { return e.Queued + e.InFlight + e.DeadLettered + e.Dropped }
