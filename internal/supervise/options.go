// Package supervise works through an inbox with sessions of Claude Code, one after the other, each
// in its own terminal. It locks the inbox, settles what a dead session left, wires the hook,
// watches the session, and rests before the next one, in that order.
package supervise

import (
	"context"
	"strconv"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/price"
	"heartbeat/internal/notify"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// Mode says when the work is done.
type Mode string

const (
	// Drain ends the session once nothing waits in the inbox.
	Drain Mode = "drain"
	// Persist keeps the session up and idle; each entry wakes it.
	Persist Mode = "persist"
)

// Options say how an inbox is worked through.
type Options struct {
	Inbox string
	Mode  Mode
	// Terminal is how each session is run. Its command is the client's, including the first prompt.
	// An empty ExitSignal means a file beside the inbox. Its timeout covers all sessions together.
	Terminal terminal.Options
	Wiring
	// Settings say what becomes of entries and what they may cost.
	Settings recovery.Settings
	// MaxEntries is how many entries a session answers before a fresh one replaces it, 0 for no limit.
	MaxEntries int
	// Background is how long a draining session waits for tasks that an entry's turn left running
	// in the background, 0 for not at all.
	Background time.Duration
	// Runs are the babysitter runs that the sessions drive, by absolute path. A drained inbox needs them done.
	Runs cli.RunFlags
	Stopping
	Endurance
	// StartTimeout is how long a session may take until its hook reports its start.
	StartTimeout time.Duration
	// AskPatience is how long a session that asks something waits for somebody to attach, where nobody is at its
	// terminal. Then it is ended.
	AskPatience time.Duration
	// Resume continues the conversation of a session that ended too early.
	Resume bool
	// Attended says that a person is at the terminal.
	Attended bool
	// Adopt trusts files beside the inbox that were not written here.
	Adopt bool
	// Shared says that others may write to the inbox or its directory.
	Shared bool
	// Notify says how to notify a person; without a command nobody is notified.
	Notify notify.Options
	// Beside, unless nil, starts work beside the sessions once this launcher holds the inbox. end
	// stops that work and waits for it as long as ctx allows.
	Beside func(ctx context.Context, box *inbox.Inbox) (end func(ctx context.Context), err error)
	// Line gets one line for people about each thing that happens to entries and sessions. It must not block.
	Line func(at time.Time, text string)
}

// Wiring is what each session is started with.
type Wiring struct {
	// Client is the client that the command starts; nil means to choose it by the command's name.
	Client *client.Client
	Hook   string // the path of heartbeat-stop
	Tools  string // the path of heartbeat, "" to give sessions no agent tools
	// SettingsDir holds the settings of the session. Only this user can reach it, and its owner
	// removes it after a kill. "" has one made.
	SettingsDir string
}

// Stopping says how the launcher is told to stop, and what an entry in flight gets then.
type Stopping struct {
	// Warm makes SIGTERM and the end of the timeout an order to stop: delivery ends, and the entry
	// in flight has DrainTimeout to be answered. An entry not answered by then is no orphan.
	Warm bool
	// Stop, once closed, is such an order too; nil for none. Unless Warm is set, whoever closes it
	// also enforces the time limit.
	Stop         <-chan struct{}
	DrainTimeout time.Duration
}

// Endurance says how long the launcher works.
type Endurance struct {
	// UntilDrained starts session after session while entries wait.
	UntilDrained bool
	// Until is when a draining launcher begins no further entry: a whole second, zero for never.
	// The entry in flight may finish. A hold on delivery that ends later is not waited out.
	Until time.Time
	// Patience is how long a draining launcher waits while delivery is held, counted from the last
	// answer: below 0 without limit, 0 for [maxHold] and no pause. Time asleep does not count.
	Patience time.Duration
	// MaxRestarts is how many sessions in a row may fail to answer an entry and still be followed by another.
	MaxRestarts int
}

// Reason is why the work ended.
type Reason string

const (
	Drained        Reason = "drained"   // nothing waits
	Left           Reason = "work left" // the session ended, and none follows
	Busy           Reason = "busy"      // somebody else works on the inbox
	Paused         Reason = "paused"
	BackingOff     Reason = "backing off"    // beyond --patience or --until
	Full           Reason = "disk full"      // no room for a commit or a session
	Trouble        Reason = "trouble"        // a passing trouble keeps sessions from starting
	Exhausted      Reason = "restarts"       // too many sessions in a row ended without an answer
	Authentication Reason = "authentication" // the client's login or key, or the account
	Refused        Reason = "refused"        // by the model's API, until a person fixes the cause
	SetUp          Reason = "set-up"         // only a person can fix it
	RunWaits       Reason = "run waits"      // a run waits for a person, or sleeps for long
	RunStuck       Reason = "run stuck"      // a run cannot continue by itself
	TimedOut       Reason = "timed out"      // after --timeout
	Stopped        Reason = "stopped"        // told to end, warm (SIGTERM)
	Signalled      Reason = "signal"         // another signal
	Quit           Reason = "quit"           // a person at the terminal ended the session
)

// Report says how the work went. It is what --report prints as JSON.
type Report struct {
	Inbox  string `json:"inbox"`
	Mode   Mode   `json:"mode"`
	Exit   int    `json:"exit"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"`

	Answered     int64 `json:"answered"`
	Redelivered  int64 `json:"redelivered"`
	DeadLettered int64 `json:"dead_lettered"`
	Dropped      int64 `json:"dropped"`
	Queued       int64 `json:"queued"` // at the end; -1: not known
	// Fields are what was spent during the work, also outside of entries.
	inbox.Cost

	Sessions   int      `json:"sessions"`
	Restarts   int      `json:"restarts"`              // after sessions that ended too early
	SessionIDs []string `json:"session_ids,omitempty"` // the last 100

	Troubles []see.Trouble `json:"troubles,omitempty"` // at the end

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Wall      float64   `json:"wall_seconds"`

	Signal syscall.Signal `json:"-"` // with Signalled
}

// maxSessionIDs bounds the list for launchers that stay up for years.
const maxSessionIDs = 100

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
	text += ", " + words.Took(time.Duration(r.Wall*float64(time.Second)))
	if cost := price.Of(r.Cost).String(); cost != "" {
		text += ", " + cost
	}
	return text
}

func count(n int64, what string) string { return strconv.FormatInt(n, 10) + " " + what }
