package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// naks is the value under [names.Nak] in the bucket of agents: the copies of a message that
// were given back, which count for no attempt.
type naks struct {
	Seq    uint64   `json:"seq"`
	Copies []uint64 `json:"copies"`
	// Earlier is how many were given back before these.
	Earlier int `json:"earlier,omitempty"`
}

const (
	maxCopies = 100 // that are told apart
	tries     = 10  // against other agents that give back the same message
)

// GiveBack returns the claim's message to the stream, which hands it out again after delay.
// Its copy counts for no attempt. left is as in [Fate].
func (u *Upstream) GiveBack(ctx context.Context, c Claim, delay time.Duration) (left string, err error) {
	if err = c.check(u.stream); err == nil {
		left, err = u.giveBack(ctx, c, delay)
	}
	if err != nil {
		return "", fmt.Errorf("give message %s back to the stream %s: %w; it will be tried again, and comes back without it once its time is over", c.name(), u.stream, err)
	}
	return left, nil
}

func (u *Upstream) giveBack(ctx context.Context, c Claim, delay time.Duration) (string, error) {
	if err := u.count(ctx, c); err != nil {
		return "", err
	}
	if err := u.done(stepCounted); err != nil {
		return "", err
	}
	say := ackNak
	if delay > 0 {
		say = fmt.Sprintf(`%s {"delay": %d}`, ackNak, delay.Nanoseconds())
	}
	left, err := u.acknowledge(ctx, c, say)
	if err != nil {
		return "", err
	}
	u.uncount(ctx, c)
	return left, u.done(stepSettled)
}

// uncount removes the count of a message that somebody settled before it was counted. Where
// that fails, a count stays that nobody asks for.
func (u *Upstream) uncount(ctx context.Context, c Claim) {
	if known, err := u.Known(ctx, c.ID, c.Again); err == nil && known != nil {
		_ = u.forget(ctx, c)
	}
}

// GivenBack is how many copies of a message were given back: its attempts are its copies
// without these. seq is the message's sequence.
func (u *Upstream) GivenBack(ctx context.Context, id string, seq uint64) (int, error) {
	n, _, err := u.given(ctx, id, seq)
	if err != nil {
		return 0, fmt.Errorf("ask how often message %s was given back: %w; it is asked again", Claim{ID: id, Stream: u.stream, Seq: seq}.name(), err)
	}
	return n.Earlier + len(n.Copies), nil
}

// given reads the count of a message, which is not that of one before it with the same id.
func (u *Upstream) given(ctx context.Context, id string, seq uint64) (n naks, revision uint64, err error) {
	none := naks{Seq: seq}
	kv, err := u.bucket(ctx, names.Agents(u.stream))
	if err != nil {
		return none, 0, err
	}
	ctx, cancel := u.within(ctx)
	defer cancel()
	e, err := kv.Get(ctx, names.Nak(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return none, 0, nil
	}
	if err = u.unanswered(kv.Bucket(), err); err != nil {
		return none, 0, fmt.Errorf("read its count in the bucket %s: %w", names.Agents(u.stream), err)
	}
	if json.Unmarshal(e.Value(), &n) != nil || n.Seq != seq {
		return none, e.Revision(), nil
	}
	return n, e.Revision(), nil
}

// count notes that the claim's copy was given back, once.
func (u *Upstream) count(ctx context.Context, c Claim) error {
	var err error
	for range tries {
		if err = u.countOnce(ctx, c); !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("count it in the bucket %s: %w", names.Agents(u.stream), err)
	}
	return nil
}

func (u *Upstream) countOnce(ctx context.Context, c Claim) error {
	n, revision, err := u.given(ctx, c.ID, c.Seq)
	if err != nil || slices.Contains(n.Copies, c.Copy) {
		return err
	}
	n.Copies = append(n.Copies, c.Copy)
	if more := len(n.Copies) - maxCopies; more > 0 {
		n.Copies = slices.Delete(n.Copies, 0, more)
		n.Earlier += more
	}
	value, err := json.Marshal(n)
	if err != nil {
		return err
	}
	kv, err := u.bucket(ctx, names.Agents(u.stream))
	if err != nil {
		return err
	}
	if revision == 0 {
		_, err = u.create(ctx, kv, names.Nak(c.ID), value)
	} else {
		_, err = u.update(ctx, kv, names.Nak(c.ID), value, revision)
	}
	return err
}

// forget removes the count of a message that is settled.
func (u *Upstream) forget(ctx context.Context, c Claim) error {
	n, _, err := u.given(ctx, c.ID, c.Seq)
	if err != nil || len(n.Copies) == 0 {
		return err
	}
	kv, err := u.bucket(ctx, names.Agents(u.stream))
	if err != nil {
		return err
	}
	if err := u.remove(ctx, kv, names.Nak(c.ID)); err != nil {
		return fmt.Errorf("remove its count from the bucket %s: %w", names.Agents(u.stream), err)
	}
	return nil
}
