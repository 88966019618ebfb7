// Package upstream is what an agent owes the stream: its ledger of the messages that it
// holds, and how it tells what became of their entries: that one was answered, that it became
// a dead letter, or that it was given back.
//
// The ledger is the file .nats-agent.json beside the inbox, and the lock .nats-lock keeps an
// inbox to one agent. A claim is written, and synced, before its entry is appended, and dropped
// once the server was told what became of the message. So whatever kills the agent, its next
// start finds everything that it may owe.
//
// JetStream's acknowledgement is no fence: one of a stale copy is taken, too. Who was first
// is therefore decided before it, by creating one key in the bucket of results. Whoever comes
// back when that key is no longer kept finds the message off the stream, and decides nothing.
//
//	answered     text of the answer -> decision (Create) -> reply -> reply_state -> ack
//	dead letter  decision (Create) -> dead letter -> letter_state -> term
//	superseded   somebody else was first: kept under a key of its own -> ack, never a reply
//	given back   count -> nak
//
// Each step can be the last before a kill. The same call in the next life of the agent, with
// the [Claim] that its ledger kept, goes on where the last one ended: there is one decision,
// at most one reply, and one dead letter. An error means that the step was not confirmed;
// the claim is to be kept and the call made again.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/words"
)

// patience is how long one step may take: a connection that is half open looks like a
// server that thinks.
const patience = 10 * time.Second

// Upstream is a stream that is told of outcomes. It is safe for concurrent use, but by one
// call at a time for one message.
type Upstream struct {
	*setup.Layout
	js       jetstream.JetStream
	stream   string
	life     string
	keeps    time.Duration // for how long a decision is kept, 0 for ever
	patience time.Duration
	// stop ends a call after a step, as a kill does, where a test asks for it.
	stop func(step) error

	replies sync.Map // by key, a State: what became of a reply in this life, until it is written down
}

// step is one that a call may end after.
type step string

const (
	stepObject     step = "object"
	stepText       step = "text"
	stepDecision   step = "decision"
	stepReply      step = "reply"
	stepReplyState step = "reply state"
	stepLetter     step = "letter"
	stepLetterDone step = "letter state"
	stepSuperseded step = "superseded"
	stepCleared    step = "text removed"
	stepCounted    step = "counted"
	stepSettled    step = "settled"
)

// Open opens what setup has made for a stream.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (*Upstream, error) {
	l, err := setup.Open(ctx, js, stream)
	if err != nil {
		return nil, err
	}
	results, err := l.Results.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for how long results are kept: %w", err)
	}
	return &Upstream{Layout: l, js: js, stream: stream, life: nuid.Next(), keeps: results.TTL(), patience: patience}, nil
}

// Known returns the decision about a message, or nil if there is none yet. A decision that
// it is dead does not count for a message that was requeued since: again is [Claim.Again].
func (u *Upstream) Known(ctx context.Context, id string, again int) (*Record, error) {
	r, _, err := u.decision(ctx, id)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask whether message %s was answered elsewhere: %w; it is asked again", Claim{ID: id}.name(), err)
	case !r.holds(again):
		return nil, nil
	}
	return &r, nil
}

// decision reads what was decided about a message.
func (u *Upstream) decision(ctx context.Context, id string) (Record, uint64, error) {
	value, revision, err := u.get(ctx, u.Results, message.Key(id))
	if err != nil {
		return Record{}, 0, fmt.Errorf("read its decision in the bucket %s: %w", u.Results.Bucket(), err)
	}
	r, err := ParseRecord(value)
	if err != nil {
		return r, 0, fmt.Errorf("%w: look at the key %s of the bucket %s, and remove it if nothing of ours wrote it", err, message.Key(id), u.Results.Bucket())
	}
	return r, revision, nil
}

// get is the value of a key.
func (u *Upstream) get(ctx context.Context, in jetstream.KeyValue, key string) ([]byte, uint64, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	e, err := in.Get(ctx, key)
	if err != nil {
		return nil, 0, u.unanswered(err)
	}
	return e.Value(), e.Revision(), nil
}

// whatever is for a value that is written over whatever is there.
const whatever = math.MaxUint64

// put writes the value of a key whose last revision is this one, 0 for none.
func (u *Upstream) put(ctx context.Context, in jetstream.KeyValue, key string, v any, last uint64) (revision uint64, err error) {
	value, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	ctx, cancel := u.within(ctx)
	defer cancel()
	switch last {
	case 0:
		revision, err = in.Create(ctx, key, value)
	case whatever:
		revision, err = in.Put(ctx, key, value)
	default:
		revision, err = in.Update(ctx, key, value, last)
	}
	return revision, u.unanswered(err)
}

// isOlder says that [Upstream.put] was about a revision which is no longer the last.
func isOlder(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// remove leaves a mark in the place of a value. A purge would need rollups, with which one
// message could empty a bucket.
func (u *Upstream) remove(ctx context.Context, in jetstream.KeyValue, key string) error {
	ctx, cancel := u.within(ctx)
	defer cancel()
	return u.unanswered(in.Delete(ctx, key))
}

// unanswered says what a silence means where a part of the layout should be.
func (u *Upstream) unanswered(err error) error {
	if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return fmt.Errorf("%w: if it is not there, `heartbeat-nats setup --stream %s` makes it", err, u.stream)
}

// within bounds one step.
func (u *Upstream) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, u.patience)
}

// TestOnlyStep is called after each step, for tests that kill the process there.
var TestOnlyStep = func(string) {}

func (u *Upstream) done(s step) error {
	TestOnlyStep(string(s))
	if u.stop == nil {
		return nil
	}
	return u.stop(s)
}

// refused adds why a server that did not answer might not have: it says so beside the
// request.
func (u *Upstream) refused(err error) error {
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	if last := u.js.Conn().LastError(); silent && errors.Is(last, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w (the server's last refusal: %s)", err, words.Line(last.Error()))
	}
	if silent && u.js.Conn().IsConnected() {
		return fmt.Errorf("%w (the server is connected and did not answer within %v: its log says why, a full disk among other things)", err, u.patience)
	}
	return err
}
