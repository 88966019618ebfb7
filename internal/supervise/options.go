// Package supervise works through an inbox with sessions of Claude Code, one after the
// other, each in a terminal of its own. It does what every launcher must, in the right
// order: keep others off, settle what a dead session left, wire the hook, watch the
// session, and rest before the next one.
package supervise

import (
	"context"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	recovery "heartbeat/recover"
)

// Mode says when the work is done.
type Mode string

// The modes.
const (
	// Drain ends the session once nothing waits in the inbox.
	Drain Mode = "drain"
	// Persist keeps it up, idle, and has each entry wake it.
	Persist Mode = "persist"
)

// Options say how an inbox is worked through.
type Options struct {
	Inbox string
	Mode  Mode
	// Terminal is how each session is run: its command is the client's, with the
	// prompt that a session begins with. ExitSignal, if empty, is a file beside the
	// inbox. Its timeout is that of all sessions together.
	Terminal terminal.Options
	// Client is what the command starts; nil stands for the one of its name.
	Client *client.Client
	Hook   string // the path of heartbeat-stop
	Tools  string // the path of heartbeat, "" for sessions without the tools of an agent
	// SettingsDir is a directory that only this user can reach, for the settings of the
	// session, which its owner removes after a kill; "" has one made.
	SettingsDir string
	// Settings say what becomes of entries, and what they may cost.
	Settings recovery.Settings
	// MaxEntries is after how many answered entries a session makes way for a
	// fresh one, 0 for none.
	MaxEntries int
	// Background is how long a session that drains waits for the tasks that an entry's
	// turn left running in the background, 0 for not at all.
	Background time.Duration
	// Runs are the babysitter runs that the sessions drive, with absolute paths. An
	// inbox is drained only once they are done.
	Runs cli.RunFlags
	// Warm has SIGTERM and the end of the time be an order to stop: nothing more is
	// delivered, and the entry in flight has DrainTimeout to be answered. What is not
	// answered by then is no orphan.
	Warm bool
	// Stop is such an order where it is closed, nil for none. Its giver sees to the end of
	// the time, unless Warm is set.
	Stop         <-chan struct{}
	DrainTimeout time.Duration
	// UntilDrained starts session after session while entries wait.
	UntilDrained bool
	// Until is when no further entry of an inbox that is drained is begun, a whole second,
	// zero for never. The one in flight may finish. What holds delivery for longer is not
	// waited for.
	Until time.Time
	// Patience is how long an inbox that is drained is waited for while delivery is held,
	// counted from the last answer: below 0 as long as it takes, 0 for [maxHold] and for no
	// pause. The time that the machine sleeps does not count.
	Patience time.Duration
	// MaxRestarts is how many sessions in a row may follow one that ended without an
	// answered entry.
	MaxRestarts int
	// StartTimeout is how long a session may take until its hook tells that it started.
	StartTimeout time.Duration
	// EndAsking ends a session that waits for a person, unless one is attached; AskPatience
	// is how long one may take to attach.
	EndAsking   bool
	AskPatience time.Duration
	// Resume goes on with the conversation of a session that ended too early.
	Resume bool
	// Attended says that a person is at the terminal.
	Attended bool
	// Adopt trusts the files beside the inbox that were not written here.
	Adopt bool
	// Shared says that others are meant to write to the inbox or its directory.
	Shared bool
	// Notify says how a person is told of what needs one; without a command nobody is.
	Notify notify.Options
	// Beside starts what works beside the sessions, once the inbox is this launcher's; end waits
	// for its end, as long as ctx allows. nil for nothing.
	Beside func(ctx context.Context, box *inbox.Inbox) (end func(ctx context.Context), err error)
	// Line gets, for people, one line for each thing that happens to the entries
	// and the sessions. It must not block.
	Line func(at time.Time, text string)
}
