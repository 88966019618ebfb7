package supervise

import (
	"fmt"
	"sync/atomic"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/money/price"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// run is the work of one launcher on one inbox.
type run struct {
	Options
	inTerminal func(terminal.Options) (terminal.Outcome, error)
	box        *inbox.Inbox
	report     Report
	patient    patience
	before     inbox.Totals
	spent      price.Amount // before
	follow     *follower
	service    *service
	tells      *notify.Helper // nil where nobody is told
	private    *private
	resting    *guardian.Guardian      // nil while a session runs
	current    atomic.Pointer[session] // nil between two sessions
	attach     *sharing.Server         // nil where a person is at the terminal
	sign       sign
	stop       windDown

	seq     int64     // the number of the next commit to the inbox, when it was settled last
	last    *session  // the one that has ended and is not settled yet
	resume  string    // the conversation that the next session goes on with
	asleep  time.Time // until when the runs need not be looked at
	pace    pace
	trouble trouble
}

// doing tells others what the launcher does, how many sessions came to nothing, and why.
func (r *run) doing(text string) {
	troubled := ""
	if r.pace.fruitless > 0 {
		troubled = "troubled"
		text += fmt.Sprintf(", after %s without an answer", words.Count(r.pace.fruitless, "session", "sessions"))
	}
	if r.trouble.cause != "" {
		troubled = "troubled"
		text += ": " + r.trouble.cause
	}
	r.sign.say(text, troubled)
}
