package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
)

// naks is the value under [message.NakKey] in the bucket of agents: the copies of a message that
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
		return "", fmt.Errorf("count it in the bucket %s: %w", u.Agents.Bucket(), err)
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
	// Somebody may have settled it before it was counted. Where that cannot be found out, a
	// count stays that nobody asks for.
	if known, err := u.Known(ctx, c.ID, c.Again); err == nil && known != nil {
		_ = u.forget(ctx, c)
	}
	return left, u.done(stepSettled)
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
	value, revision, err := u.get(ctx, u.Agents, message.NakKey(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return none, 0, nil
	}
	if err != nil {
		return none, 0, fmt.Errorf("read its count in the bucket %s: %w", u.Agents.Bucket(), err)
	}
	if json.Unmarshal(value, &n) != nil || n.Seq != seq {
		return none, revision, nil
	}
	return n, revision, nil
}

// count notes that the claim's copy was given back, once.
func (u *Upstream) count(ctx context.Context, c Claim) (err error) {
	for range tries {
		var n naks
		var revision uint64
		if n, revision, err = u.given(ctx, c.ID, c.Seq); err != nil || slices.Contains(n.Copies, c.Copy) {
			return err
		}
		n.Copies = append(n.Copies, c.Copy)
		if more := len(n.Copies) - maxCopies; more > 0 {
			n.Copies = slices.Delete(n.Copies, 0, more)
			n.Earlier += more
		}
		if _, err = u.put(ctx, u.Agents, message.NakKey(c.ID), n, revision); !isOlder(err) {
			return err
		}
	}
	return err
}

// forget removes the count of a message that is settled.
func (u *Upstream) forget(ctx context.Context, c Claim) error {
	n, _, err := u.given(ctx, c.ID, c.Seq)
	if err != nil || len(n.Copies) == 0 {
		return err
	}
	if err := u.remove(ctx, u.Agents, message.NakKey(c.ID)); err != nil {
		return fmt.Errorf("remove its count from the bucket %s: %w", u.Agents.Bucket(), err)
	}
	return nil
}
