package see

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/book"
	"heartbeat/orchestrate"
)

// Facts are what is known about an inbox and its surroundings.
type Facts struct {
	Now   time.Time
	Inbox string // its path
	Dir   string
	Reach
	Queue
	Workers
	Runs      []Run                // what the runs that the inbox drives wait for, the most pressing first
	Letters   outcomes.LetterCount // the open dead letters
	Consumers []outcomes.Consumer  // those to which results are handed, by name
	Still     Still
	Lock      Lock
	// Spent reads what was spent, also what the next Stop will charge, from transcripts that may be long: at its first
	// call, and once. It is nil if the state is unreadable.
	Spent func() (*book.Prices, error)

	counted  *inbox.Counted // how far Backlog was counted
	outcomes [2]disk.Info   // of the files that Letters were counted in
}

// Reach is whether an inbox can be worked on at all.
type Reach struct {
	// Unreadable is why the state could not be read. Nothing else is known then.
	Unreadable error
	LockedBy   int    // the process that has held the lock for LockedFor, 0 for none
	LockedName string // its program, if known
	LockedFor  time.Duration
	Unwritable error // why this user cannot write to the directory
	Space      int64 // how many bytes the file system has left, -1 if unknown
	Needed     int64 // how many bytes the next commit may need
}

// Full reports whether there is no room for the next commit.
func (r Reach) Full() bool { return r.Space >= 0 && r.Space < r.Needed }

// Queue is what waits, what is in flight, and what keeps the next entry back.
type Queue struct {
	Exists       bool // the queue file
	WrittenAt    time.Time
	Cursor       int64
	Backlog      inbox.Backlog
	Replaced     string            // why the queue file is not the one to which the cursor belongs
	Anew         inbox.Replacement // the last one of the queue file that a commit took up
	InFlight     *inbox.Delivery
	Redeliver    *inbox.Delivery
	Paused       *inbox.Pause
	Backoff      *inbox.Backoff
	DayNear      string // the figures if today's spending is near the limit of a day, else ""
	Scheduled    inbox.Schedule
	Asked        *time.Time  // when the hook last acknowledged an entry, nil for never
	Head         *inbox.Head // the entry that comes next, nil for none
	Totals       inbox.Totals
	Streak       int                // how many failures in a row led to the last back-off
	SelfEnqueued inbox.SelfEnqueued // what agents sent into the inbox while they worked on an entry
	EverAsked    bool               // a session's hook has worked on this inbox before
	// Warnings are sentences about what the next commit will repair, and what cannot be read.
	Warnings []string
}

// Works reports whether an entry is in flight or waits.
func (q Queue) Works() bool { return q.InFlight != nil || q.Redeliver != nil || q.Backlog.Entries > 0 }

// Workers are those who work on an inbox, or could.
type Workers struct {
	Sessions []Session    // the last active one first
	Client   machine.Life // whether the owner of the entry in flight lives
	// Woken: the entry in flight should wake its session. Bound: it did. Interrupted: a person ended its turn.
	Woken, Bound, Interrupted bool
	Prompted                  bool      // the session starts with the entry in flight as its prompt
	Launcher                  *Launcher // the heartbeat-launch that works on the inbox, or nil
	// GaveUp is why the last launcher gave up. It is nil if that launcher did not, or while another one works.
	GaveUp *GaveUp
	Waiter *Waiter // the process that waits in the background to wake its session, or nil
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

// first returns the first session for which is returns true, or nil.
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

// Run is one thing that a run waits for: a run that is not done has at least one.
type Run struct {
	Run string `json:"run"`
	Dir string `json:"run_dir"`
	orchestrate.Wait
}

// NeedsPerson reports whether the run, or a part of it, goes no further without a person.
func (r Run) NeedsPerson() bool {
	return r.State != orchestrate.AtWork && r.State != orchestrate.Asleep
}
