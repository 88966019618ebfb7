// Package upstream keeps the ledger of the messages that an agent holds, and tells the stream what became of their
// entries: an entry is answered, becomes a dead letter, or is given back.
//
// The ledger is the file .nats-agent.json beside the inbox. The lock .nats-lock keeps an inbox to one agent. A
// claim is written and synced before its entry is appended, and dropped once the server knows what became of the
// message. So whatever kills the agent, its next start finds everything that it may owe.
//
// JetStream's acknowledgement is no fence, since the server takes one for a stale copy too. The fence is a
// message's [Lease]: the agent takes it before a turn begins, and decides in one step with its revision.
//
//	taken       lease (compare and set) -> claim in the ledger
//	answered    text, decision (one batch, while the lease is its own) -> reply -> reply_state -> ack
//	dead letter decision, end of the lease (one batch) -> dead letter -> letter_state -> term
//	superseded  it is another agent's: kept under a key of its own, never a reply -> ack, if it is settled
//	given back  lease to nobody -> nak
//
// Any step can be the last before a kill. The agent's next life makes the same call with the [Claim] from its
// ledger, and continues where the last life ended: there is one decision, at most one reply, and one dead letter.
// After an error the step is unconfirmed: keep the claim and call again.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/words"
)

// patience limits one step. A half-open connection looks like a slow server.
const patience = 10 * time.Second

// Upstream tells a stream of outcomes. Calls may run concurrently, but not for the same message.
type Upstream struct {
	*setup.Layout
	// Rest returns for how long at least a message stays with the agent of its lease, although the server has handed
	// out a newer copy. Without Rest, the message goes to whoever has the newest copy.
	Rest func(ctx context.Context, l Lease, copy uint64) (time.Duration, error)

	js       jetstream.JetStream
	stream   string
	life     string
	results  jetstream.Stream // of the bucket of results
	fence    time.Duration    // how long leases are kept, 0 for ever
	keeps    atomic.Int64     // how long all else is kept, in nanoseconds, 0 for as long as leases
	patience time.Duration
	// reached is called after each step: [TestOnlyStep], or a test's own function that ends the call as a kill does.
	reached func(step string)

	replies sync.Map // by key, a State: what became of a reply in this life, until the decision says so
	seen    atomic.Pointer[seen]
}

// Open opens what setup has made for a stream.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (*Upstream, error) {
	l, err := setup.Open(ctx, js, stream)
	if err != nil {
		return nil, err
	}
	results, err := js.Stream(ctx, "KV_"+l.Results.Bucket())
	if err != nil {
		return nil, fmt.Errorf("ask for how long results are kept: %w", err)
	}
	u := &Upstream{Layout: l, js: js, stream: stream, life: nuid.Next(), results: results, patience: patience, reached: TestOnlyStep}
	u.fence = results.CachedInfo().Config.MaxAge
	if keeps, own := setup.ResultsFor(&results.CachedInfo().Config); own {
		u.keeps.Store(int64(keeps))
	}
	return u, nil
}

// decision reads the decision about a message, nil if there is none, and the revision that the next one has to name.
func (u *Upstream) decision(ctx context.Context, id string) (*Record, uint64, error) {
	value, revision, err := u.read(ctx, message.Key(id))
	if value == nil || err != nil {
		return nil, revision, err
	}
	r, err := ParseRecord(value.Data)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: look at the key %s of the bucket %s, and remove it if nothing of ours wrote it", err, message.Key(id), u.Results.Bucket())
	}
	return r, revision, nil
}

// Known returns the decision about a claim's message that still holds, or nil.
func (u *Upstream) Known(ctx context.Context, c Claim) (*Record, error) {
	known, _, err := u.decision(ctx, c.ID)
	if known != nil && !known.holds(c.Again) {
		known = nil
	}
	return known, err
}

// read returns the value of a key of the bucket of results, nil if there is none, and the revision that the next value
// has to name: that of the value or of its removal, or 0.
func (u *Upstream) read(ctx context.Context, key string) (value *jetstream.RawStreamMsg, revision uint64, err error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	m, err := u.results.GetLastMsgForSubject(ctx, keptAt(u.Results.Bucket(), key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("read the key %s of the bucket %s: %w", key, u.Results.Bucket(), u.unanswered(err))
	case m.Header.Get("KV-Operation") != "":
		return nil, m.Sequence, nil
	}
	return m, m.Sequence, nil
}

// whatever makes put overwrite any revision.
const whatever = math.MaxUint64

// put writes a key of the bucket of results if its last revision is last, 0 for none.
func (u *Upstream) put(ctx context.Context, key string, v any, last uint64) (revision uint64, err error) {
	m, err := u.keyed(key, v, last)
	if err != nil {
		return 0, err
	}
	return u.publish(ctx, m)
}

// publish publishes m, and returns the sequence under which the server keeps it.
func (u *Upstream) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	ack, err := u.js.PublishMsg(ctx, m)
	if err != nil {
		return 0, u.unanswered(err)
	}
	return ack.Sequence, nil
}

// keyed returns the message that gives a key of the bucket of results a value.
func (u *Upstream) keyed(key string, v any, last uint64) (*nats.Msg, error) {
	value, err := json.Marshal(v)
	m := &nats.Msg{Subject: KeySubject(u.js, u.Results.Bucket(), key), Data: value, Header: nats.Header{}}
	if last != whatever {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	}
	if _, isLease := v.(Lease); !isLease && u.keeps.Load() > 0 {
		m.Header.Set(jetstream.MsgTTLHeader, time.Duration(u.keeps.Load()).String())
	}
	return m, err
}

// KeySubject returns the subject to publish the value of a key to. A leaf node passes on the keys of another domain
// only below the subjects of its JetStream.
func KeySubject(js jetstream.JetStream, bucket, key string) string {
	api := strings.TrimSuffix(js.Options().APIPrefix, ".") + "."
	if api == "." || api == jetstream.DefaultAPIPrefix {
		api = ""
	}
	return api + keptAt(bucket, key)
}

// keptAt returns the subject under which a bucket's stream keeps the value of a key.
func keptAt(bucket, key string) string { return "$KV." + bucket + "." + key }

// IsOlder reports whether a write failed because its expected revision or sequence is no longer the last.
func IsOlder(err error) bool {
	code := errorCode(err)
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) ||
		code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// errorCode returns the code of a server's refusal, or 0.
func errorCode(err error) jetstream.ErrorCode {
	if refusal, is := errors.AsType[*jetstream.APIError](err); is {
		return refusal.ErrorCode
	}
	return 0
}

// unanswered explains a silence where a part of the layout should answer.
func (u *Upstream) unanswered(err error) error {
	if errorCode(err) == jetstream.ErrorCode(server.JSMessageTTLDisabledErr) {
		u.keeps.Store(0) // the bucket was made anew, and keeps all keys equally long: the next try goes by that
	}
	if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return fmt.Errorf("%w: if it is not there, `%s` makes it", err, setup.Command(u.js, u.stream))
}

func (u *Upstream) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return link.Within(ctx, u.js.Conn(), u.patience)
}

// TestOnlyStep is called after each step, for tests that kill the process there.
var TestOnlyStep = func(string) {}

// refused adds why a server may not have answered: a server reports refusals beside the request.
func (u *Upstream) refused(err error) error {
	isSilent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	last := u.js.Conn().LastError()
	if (isSilent || errorCode(err) == codeIncomplete) && errors.Is(last, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w (the server's last refusal: %s)", err, words.Line(last.Error()))
	}
	if isSilent && u.js.Conn().IsConnected() {
		return fmt.Errorf("%w (the server is connected and did not answer within %v: its log says why, a full disk among other things)", err, u.patience)
	}
	return err
}
