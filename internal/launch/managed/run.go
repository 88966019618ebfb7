package managed

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/notify"
	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// run is the work of one launcher on one inbox.
type run struct {
	Options
	box     *inbox.Inbox
	report  Report
	before  inbox.Totals
	spent   price.Amount // before
	follow  *follower
	service *service
	tells   *notify.Helper // nil where nobody is told
	private *private
	current atomic.Pointer[session] // nil between two sessions
	sign    sign
	ctx     context.Context // done once this launcher is to end

	deadline time.Time // zero: none
	seq      int64     // the number of the next commit to the inbox, when it was settled last
	last     *session  // the one that has ended and is not settled yet
	resume   string    // the conversation that the next session goes on with
	asleep   time.Time // until when the runs need not be looked at
	pace     pace
}

// inTime returns a context that ends with a signal, or with the time of --timeout.
func (r *run) inTime() (context.Context, context.CancelFunc) {
	if r.deadline.IsZero() {
		return context.WithCancel(r.ctx)
	}
	return context.WithDeadline(r.ctx, r.deadline)
}

// doing tells others what the launcher does, and how many sessions came to nothing.
func (r *run) doing(text string) {
	if r.pace.fruitless > 0 {
		text += fmt.Sprintf(", after %s without an answer", words.Count(r.pace.fruitless, "session", "sessions"))
	}
	r.sign.say(text)
}
