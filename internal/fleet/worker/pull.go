package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// asking is the retry of a request for a message.
const asking = "ask"

// pulled is the end of a request for a message. msg is nil if none came.
type pulled struct {
	asked time.Time
	msg   jetstream.Msg
	err   error
}

func (a *Agent) pull(ctx context.Context) {
	a.heldUp = a.holdsUp()
	mayTry := a.heldUp == "" && a.due(asking) && a.due(taking)
	if r := a.retries[taking]; a.heldUp == "" && r.tries > 0 {
		a.heldUp = "it cannot take messages: " + r.why
	}
	if r := a.retries[asking]; a.heldUp == "" && a.pulling == nil && r.tries > 2 { // it is not a server that restarts
		a.heldUp = r.why
	}
	if a.pulling != nil || a.ending != nil || a.draining || !mayTry || !a.hasRoom() {
		return
	}
	ctx, a.pulling = context.WithTimeout(ctx, pullWait)
	go func(c jetstream.Consumer, done context.CancelFunc) {
		defer done()
		p := pulled{asked: time.Now()}
		p.msg, p.err = c.Next(jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(heartbeat))
		a.pulled <- p
	}(a.consumer, a.pulling)
}

// stopPulling cancels a request. Its end still arrives in pulled.
func (a *Agent) stopPulling() {
	if a.pulling != nil {
		a.pulling()
	}
}

func (a *Agent) hasRoom() bool {
	in := int(a.facts.Backlog.Entries)
	if a.facts.InFlight != nil {
		in++
	}
	return a.ledger.Len() < a.o.Slots && in < a.o.QueueDepth
}

// holdsUp says why no message is taken although there may be room: a sentence or "".
func (a *Agent) holdsUp() string {
	f := &a.facts
	switch {
	case !a.conn.Connected():
		return "the server is away"
	case a.doubtful:
		return "what it holds is not looked up yet"
	case a.untold() != "":
		return "it cannot tell what came of its messages: " + a.untold()
	case f.Unreadable != nil:
		return "its inbox cannot be read: " + f.Unreadable.Error()
	case f.Paused != nil, f.Backoff != nil:
		_, sentence := f.Explain()
		return sentence
	case f.Space >= 0 && f.Space < f.Needed:
		return "its disk is full"
	case a.keep.stalled.Load():
		_, sentence := f.Explain()
		return "nothing moves: " + sentence
	case a.failures >= failing:
		return fmt.Sprintf("its last %d launchers ended without an answer", a.failures)
	}
	return ""
}

// untold says why an outcome could not be told in two tries, or "".
func (a *Agent) untold() string {
	for _, c := range a.ledger.All() {
		if r := a.retries[settling+c.Entry]; r.tries > 1 {
			return r.why
		}
	}
	return ""
}

func (a *Agent) pullFailed(ctx context.Context, err error) {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		a.try(asking, nil)
	case !a.conn.Connected():
		a.retries[asking] = retry{at: time.Now().Add(backOff(1))}
	default:
		// The consumer or the stream may have been removed or made anew.
		if wrong := a.conn.Try(func() error { return a.bind(ctx) }); wrong != nil {
			err = wrong
		}
		a.try(asking, fmt.Errorf("no message can be asked for: %w; it is tried again", err))
	}
}
