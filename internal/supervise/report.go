package supervise

import (
	"strconv"
	"syscall"
	"time"

	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// Reason is why the work ended.
type Reason string

// The reasons.
const (
	Drained        Reason = "drained"        // nothing waits
	Left           Reason = "work left"      // the session ended, and none was to follow
	Busy           Reason = "busy"           // somebody else works on the inbox
	Paused         Reason = "paused"         // delivery is paused
	BackingOff     Reason = "backing off"    // for longer than is waited
	Full           Reason = "disk full"      // no room for the next commit or a session
	Trouble        Reason = "trouble"        // a passing trouble keeps sessions from starting
	Exhausted      Reason = "restarts"       // too many sessions in a row ended without an answer
	Authentication Reason = "authentication" // the client's login or key, or the account
	Refused        Reason = "refused"        // by the model's API, until a person fixes the cause
	SetUp          Reason = "set-up"         // only a person can fix it
	RunWaits       Reason = "run waits"      // a run waits for a person, or sleeps for long
	RunStuck       Reason = "run stuck"      // a run cannot continue by itself
	TimedOut       Reason = "timed out"      // the time for all sessions is over
	Stopped        Reason = "stopped"        // told to end, warm (SIGTERM)
	Signalled      Reason = "signal"         // another signal arrived
	Quit           Reason = "quit"           // a person at the terminal ended the session
)

// Report says how the work went. It is what --report prints as JSON.
type Report struct {
	Inbox  string `json:"inbox"`
	Mode   Mode   `json:"mode"`
	Exit   int    `json:"exit"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"` // a sentence on the reason

	Answered     int64 `json:"answered"`
	Redelivered  int64 `json:"redelivered"`
	DeadLettered int64 `json:"dead_lettered"`
	Dropped      int64 `json:"dropped"`
	// Queued is how many entries wait at the end, -1 if unknown.
	Queued int64 `json:"queued"`
	// Fields are what was spent during the work, also outside of entries.
	price.Fields

	Sessions int `json:"sessions"`
	// Restarts counts the sessions that followed one that ended too early.
	Restarts   int      `json:"restarts"`
	SessionIDs []string `json:"session_ids,omitempty"` // the newest maxSessionIDs

	// Troubles are what is wrong at the end, as in status.
	Troubles []see.Trouble `json:"troubles,omitempty"`

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Wall      float64   `json:"wall_seconds"`

	Signal syscall.Signal `json:"-"` // with Signalled
}

// maxSessionIDs bounds the list for launchers that stay up for years.
const maxSessionIDs = 100

func (r *Report) addSession(id string) {
	r.SessionIDs = append(r.SessionIDs, id)
	if extra := len(r.SessionIDs) - maxSessionIDs; extra > 0 {
		r.SessionIDs = r.SessionIDs[extra:]
	}
}

// String is the report as one line.
func (r *Report) String() string {
	text := string(r.Reason) + ": "
	switch {
	case r.Sessions > 0 || r.DeadLettered > 0 || r.Redelivered > 0 || r.Dropped > 0: // entries expire without a session
		text += r.figures()
	case r.Queued > 0:
		text += count(r.Queued, "queued")
	case r.Detail == "":
		return text + "nothing was waiting"
	default:
		return text + r.Detail
	}
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

// figures words the counts that are not zero, the sessions, the time and the price.
func (r *Report) figures() string {
	text := count(r.Answered, "answered")
	for _, f := range []struct {
		n    int64
		what string
	}{
		{r.Redelivered, "redelivered"}, {r.DeadLettered, "dead-lettered"}, {r.Dropped, "dropped"}, {r.Queued, "queued"},
	} {
		if f.n > 0 {
			text += ", " + count(f.n, f.what)
		}
	}
	text += "; " + words.Count(r.Sessions, "session", "sessions")
	if r.Restarts > 0 {
		text += " (" + words.Count(r.Restarts, "restart", "restarts") + ")"
	}
	text += ", " + words.Took(r.EndedAt.Sub(r.StartedAt))
	if cost := r.Price().String(); cost != "" {
		text += ", " + cost
	}
	return text
}

func count(n int64, what string) string { return strconv.FormatInt(n, 10) + " " + what }
