package see

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
)

// Facts are what is known about an inbox and its surroundings.
type Facts struct {
	Now   time.Time
	Inbox string // its path
	Dir   string
	Reach
	Queue
	Workers
	Held []Question // questions of the runs that the inbox drives, oldest first
	// Letters are the open dead letters.
	Letters outcomes.LetterCount
	// Consumers are those that results are handed to, by name.
	Consumers []outcomes.Consumer
	// Still says since when nothing has moved although something should.
	Still Still
	Lock  Lock

	counted  *inbox.Counted // how far Backlog was counted
	outcomes [2]disk.Info   // of the files that Letters were counted in
}

// Reach is whether an inbox can be worked on at all.
type Reach struct {
	// Unreadable is why the state could not be read. Nothing else is known then.
	Unreadable error
	// LockedBy is the process that has held the lock for a while, 0 for none.
	LockedBy   int
	LockedName string // its program, if known
	LockedFor  time.Duration
	// Unwritable is why this user cannot write to the directory.
	Unwritable error
	// Space is how many bytes the file system has left, -1 if unknown.
	Space int64
	// Needed is how many bytes the next commit may need.
	Needed int64
}

// Full reports whether there is no room for the next commit.
func (r Reach) Full() bool { return r.Space >= 0 && r.Space < r.Needed }

// Queue is what waits, what is in flight, and what keeps the next entry back.
type Queue struct {
	Exists    bool // the queue file
	WrittenAt time.Time
	Cursor    int64
	Backlog   inbox.Backlog
	// Replaced says why the queue file is not the one that the cursor belongs to.
	Replaced string
	// Anew is the last time that the queue file was replaced and the new one taken up.
	Anew      inbox.Replacement
	InFlight  *inbox.Delivery
	Redeliver *inbox.Delivery
	Paused    *inbox.Pause
	Backoff   *inbox.Backoff
	// DayNear says that today's spending is near the limit of a day, or is "".
	DayNear   string
	Scheduled inbox.Schedule
	// Asked is when the hook last acknowledged an entry, nil for never.
	Asked *time.Time
	// Head is the entry that comes next, nil for none.
	Head   *inbox.Head
	Totals inbox.Totals
	Streak int // how many failures in a row led to the last back-off
	// SelfEnqueued is what agents sent into the inbox while they worked on an entry.
	SelfEnqueued inbox.SelfEnqueued
	// EverAsked says that a session's hook has worked on this inbox before.
	EverAsked bool
	// Warnings are sentences about what the next step will repair, and about limits that do not hold.
	Warnings []string
}

// Works reports whether an entry is in flight or waits.
func (q Queue) Works() bool { return q.InFlight != nil || q.Redeliver != nil || q.Backlog.Entries > 0 }

// Workers are those who work on an inbox, or could.
type Workers struct {
	Sessions []Session // the one heard of last comes first
	// Client is whether the owner of the entry in flight lives.
	Client machine.Life
	// Woken: the entry in flight should wake its session. Bound: it did. Interrupted: a person ended its turn.
	Woken, Bound, Interrupted bool
	// Prompted says that the session starts with the entry in flight as its prompt.
	Prompted bool
	// Launcher is the heartbeat-launch that works on the inbox, or nil.
	Launcher *Launcher
	// GaveUp is why the last launcher gave up. It is nil if that one did not, or while another works.
	GaveUp *GaveUp
	// Waiter is the process that waits in the background to wake its session, or nil.
	Waiter *Waiter
}

// Launcher is a heartbeat-launch that works on an inbox, and what it is doing.
type Launcher struct {
	PID      int    `json:"pid"` // -1: not known
	Doing    string `json:"doing,omitempty"`
	Socket   string `json:"socket,omitempty"`   // to attach at
	Waits    bool   `json:"waits,omitempty"`    // for somebody to attach
	Troubled bool   `json:"troubled,omitempty"` // "doing" names what keeps sessions from working
}

// GaveUp is why the last launcher gave up.
type GaveUp struct {
	At   time.Time
	Text string
}

// Session is a session, and whether its process lives.
type Session struct {
	inbox.Session
	Life machine.Life
}

// Waiter is the process that waits in the background, and whether it lives.
type Waiter struct {
	inbox.Waiter
	Life    machine.Life
	Stopped bool // alive, but stopped by a signal
}

// String returns running, stopped, gone or unknown.
func (w *Waiter) String() string {
	if w.Stopped {
		return "stopped"
	}
	return w.Life.String()
}

func (f Facts) session(id string) *Session {
	return f.first(func(s *Session) bool { return s.ID == id })
}

// first returns the first session that is like that, or nil.
func (f Facts) first(is func(*Session) bool) *Session {
	for i := range f.Sessions {
		if is(&f.Sessions[i]) {
			return &f.Sessions[i]
		}
	}
	return nil
}

// Current returns the session that will most likely ask next, or nil.
func (f Facts) Current() *Session {
	for _, life := range []machine.Life{machine.Alive, machine.Unknown} {
		if s := f.first(func(s *Session) bool { return s.EndedAt == nil && s.Life == life }); s != nil {
			return s
		}
	}
	return f.first(func(*Session) bool { return true })
}

// Question is what a run asks a person.
type Question struct {
	Run, Effect, Question string // Effect is empty if the run rests until its code is accepted, or is stuck
	Stuck                 bool   // the run can take no step, and Question says why
	Stopped               bool   // it could, but goes no further by itself, and Question says what helps
	Dir                   string // the run's directory
	Since                 time.Time
}
