package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/words"
)

// patience is how long one step may take: a connection that is half open looks like a
// server that thinks.
const patience = 10 * time.Second

// Upstream is a stream that is told of outcomes. It is safe for concurrent use, but by one
// call at a time for one message.
type Upstream struct {
	js       jetstream.JetStream
	stream   string
	life     string
	patience time.Duration
	// stop ends a call after a step, as a kill does, where a test asks for it.
	stop func(step) error

	mu      sync.Mutex
	buckets map[string]jetstream.KeyValue
	replies map[string]State // by key: what became of a reply in this life, until it is written down
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

// New returns the upstream of a stream. It asks the server nothing.
func New(js jetstream.JetStream, stream string) (*Upstream, error) {
	if err := names.CheckStream(stream); err != nil {
		return nil, err
	}
	return &Upstream{
		js: js, stream: stream, life: nuid.Next(), patience: patience,
		buckets: map[string]jetstream.KeyValue{}, replies: map[string]State{},
	}, nil
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
	kv, err := u.results(ctx)
	if err != nil {
		return Record{}, 0, err
	}
	ctx, cancel := u.within(ctx)
	defer cancel()
	e, err := kv.Get(ctx, names.Key(id))
	if err = u.unanswered(kv.Bucket(), err); err != nil {
		return Record{}, 0, fmt.Errorf("read its decision in the bucket %s: %w", names.Bucket(u.stream), err)
	}
	r, err := ParseRecord(e.Value())
	if err != nil {
		return r, 0, fmt.Errorf("%w: look at the key %s of the bucket %s, and remove it if nothing of ours wrote it", err, names.Key(id), names.Bucket(u.stream))
	}
	return r, e.Revision(), nil
}

func (u *Upstream) results(ctx context.Context) (jetstream.KeyValue, error) {
	return u.bucket(ctx, names.Bucket(u.stream))
}

// bucket looks a bucket up once: its name and subjects do not change.
func (u *Upstream) bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	u.mu.Lock()
	kv := u.buckets[name]
	u.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	ctx, cancel := u.within(ctx)
	defer cancel()
	kv, err := u.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("the bucket %s is not there: `heartbeat-nats setup --stream %s` makes it: %w", name, u.stream, err)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the bucket %s: %w", name, err)
	}
	u.mu.Lock()
	u.buckets[name] = kv
	u.mu.Unlock()
	return kv, nil
}

// unanswered says what a silence means where a bucket should be, and looks the bucket up
// the next time.
func (u *Upstream) unanswered(name string, err error) error {
	if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse) {
		return err
	}
	u.mu.Lock()
	delete(u.buckets, name)
	u.mu.Unlock()
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
