package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heartbeat/internal/fleet/message"
)

// Lease says which agent may work on a message and decide about it. It is the value under [message.LeaseKey] in the
// bucket of results. Its revision is the fence: each change names the revision before it, and an agent decides in
// one step with the revision that it holds.
type Lease struct {
	ID    string `json:"id"`
	Seq   uint64 `json:"seq"`
	Copy  uint64 `json:"copy"`
	Again int    `json:"again,omitempty"`
	// Stored is [message.Message.Stored], zero in a lease of an earlier release.
	Stored time.Time `json:"stored,omitzero"`
	// Agent holds the message. It is "" after a give-back.
	Agent string `json:"agent,omitempty"`
	// Attempt is the agent's attempt, from 1. Without an agent it counts the attempts so far.
	Attempt int `json:"attempt"`
	// Settled says that the same step decided about the message. Where results are kept as long as leases, an answer
	// leaves its lease as it is: the decision takes precedence over the lease.
	Settled bool `json:"settled,omitempty"`
	// Written is when the server took the lease.
	Written time.Time `json:"-"`
}

// tries limits how often a lease is read again while others change it.
const tries = 10

var errChangesHands = errors.New("its lease changes hands all the time")

// Standing is whether an agent holds a message, and who does otherwise.
type Standing struct {
	// Lease is the revision of the message's lease, 0 if the agent does not hold the message.
	Lease   uint64
	Attempt int
	// Known is the decision, or nil if there is none. It has no outcome if the decision is no longer kept.
	Known *Record
	// With is the other agent that holds the message, or "". Rest is how long at least that agent keeps it.
	With string
	Rest time.Duration
	// Twin says that an earlier message with the same id is still open.
	Twin bool
}

// Take takes the lease of a message that came, also from the holder of an older copy.
func (u *Upstream) Take(ctx context.Context, c Claim) (Standing, error) { return u.ask(ctx, c, true) }

// Stand returns whether the agent still holds a message on which it has a claim. If the message is on the stream but
// its lease is no longer kept, Stand makes the lease anew.
func (u *Upstream) Stand(ctx context.Context, c Claim) (Standing, error) { return u.ask(ctx, c, false) }

func (u *Upstream) ask(ctx context.Context, c Claim, takes bool) (s Standing, err error) {
	if s, err = u.stand(ctx, c, takes); err != nil {
		err = fmt.Errorf("ask who holds message %s: %w; it is asked again", c.name(), u.refused(err))
	}
	return s, err
}

func (u *Upstream) stand(ctx context.Context, c Claim, takes bool) (s Standing, err error) {
	for n := range tries {
		var l *Lease
		var revision uint64
		if n > 0 || !takes || c.Copy > 1 { // the first copy of a message has no lease
			if l, revision, err = u.lease(ctx, c.ID); err != nil {
				return s, err
			}
		}
		attempt, found, err := u.judge(ctx, c, l, revision, takes)
		if attempt == 0 || err != nil {
			return found, err
		}
		next := leaseOf(c)
		next.Agent, next.Attempt = c.Agent, attempt
		revision, err = u.put(ctx, message.LeaseKey(c.ID), next, revision)
		switch {
		case err == nil && (l == nil || l.Agent == "") && !u.isRecent(c):
			// The message may have been settled before, and its lease and decision forgotten.
			gone, err := u.Gone(ctx, c, c.Seq)
			if err != nil || !gone {
				return Standing{Lease: revision, Attempt: attempt}, err
			}
			return Standing{Known: new(Record)}, nil
		case err == nil:
			u.reached("lease")
			if l != nil && l.Agent != "" { // that agent may have answered since, which leaves the lease as it was
				if known, err := u.Known(ctx, c); err != nil || known != nil {
					return Standing{Known: known}, err
				}
			}
			return Standing{Lease: revision, Attempt: attempt}, nil
		case !IsOlder(err):
			return s, fmt.Errorf("write its lease to the bucket %s: %w", u.Results.Bucket(), err)
		}
	}
	return s, errChangesHands
}

// judge returns the agent's standing by the message's lease l, which may be nil. attempt is the number under which the
// agent may take the lease, or 0 if it may not or need not.
func (u *Upstream) judge(ctx context.Context, c Claim, l *Lease, revision uint64, takes bool) (attempt int, s Standing, err error) {
	same := l != nil && l.Seq == c.Seq && l.Again == c.Again
	switch {
	case l == nil && takes && c.Copy <= 1:
		return 1, s, nil
	case same && !l.Settled && l.Agent == c.Agent && !takes && !c.Taken.IsZero(): // an older claim may come from a backup
		return 0, Standing{Lease: revision, Attempt: l.Attempt}, nil
	}
	if known, err := u.Known(ctx, c); err != nil || known != nil {
		return 0, Standing{Known: known}, err
	}
	switch {
	case l == nil || l.Settled:
		if same && !c.Stored.IsZero() && l.Stored.Equal(c.Stored) {
			return 0, Standing{Known: &Record{Settled: Settled{Agent: l.Agent}}}, nil // the result is no longer kept
		}
		if !takes || same { // the lease is no longer kept
			if gone, err := u.Gone(ctx, c, c.Seq); err != nil || gone {
				return 0, Standing{Known: new(Record)}, err
			}
		}
		return max(1, c.Attempt), s, nil
	case !same && takes:
		gone, err := u.Gone(ctx, c, l.Seq)
		if err != nil || !gone && l.Seq != c.Seq {
			return 0, Standing{With: l.Agent, Twin: true}, err
		}
		return 1, s, nil
	case same && l.Agent == c.Agent && (!takes || l.Copy >= c.Copy):
		return 0, Standing{Lease: revision, Attempt: l.Attempt}, nil
	case !takes || !same || l.Copy > c.Copy:
		return 0, Standing{With: l.Agent}, nil
	case l.Agent != "" && l.Agent != c.Agent && u.Rest != nil:
		if rest, err := u.Rest(ctx, *l, c.Copy); err != nil || rest > 0 {
			return 0, Standing{With: l.Agent, Rest: rest}, err
		}
	}
	return l.Attempt + 1, s, nil
}

// lease reads the lease of a message, nil if there is none, and the revision that the next lease has to name. An
// unreadable lease counts as settled: the decision, or the message on the stream, shows whether the message is open.
func (u *Upstream) lease(ctx context.Context, id string) (l *Lease, revision uint64, err error) {
	value, revision, err := u.read(ctx, message.LeaseKey(id))
	if value == nil || err != nil {
		return nil, revision, err
	}
	if json.Unmarshal(value.Data, &l) != nil || l == nil {
		l = &Lease{Settled: true}
	}
	l.Written = value.Time
	return l, revision, nil
}

// leaseOf returns the lease of a claim's message, held by nobody.
func leaseOf(c Claim) Lease {
	return Lease{ID: c.ID, Seq: c.Seq, Copy: c.Copy, Again: c.Again, Stored: c.Stored, Attempt: c.Attempt}
}

// isRecent reports whether a message came so recently, sleep counted, that an earlier lease of it is still kept.
func (u *Upstream) isRecent(c Claim) bool {
	return u.fence == 0 || max(time.Since(c.Taken), time.Since(c.Taken.Round(0))) < u.fence
}

// GiveBack returns the claim's message to the stream, which hands it out again after delay. That costs an attempt only
// if the claim's was used. left is a sentence if the stream need not be told, as in [Fate].
func (u *Upstream) GiveBack(ctx context.Context, c Claim, delay time.Duration) (left string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("give message %s back to the stream %s: %w; it will be tried again, and comes back without it once its time is over", c.name(), u.stream, err)
		}
	}()
	if left, err := u.free(ctx, c); err != nil || left != "" {
		return left, err
	}
	u.reached("freed")
	payload := ackNak
	if delay > 0 {
		payload = fmt.Sprintf(`%s {"delay": %d}`, ackNak, delay.Nanoseconds())
	}
	if left, err = u.acknowledge(ctx, c, payload); err == nil {
		u.reached("settled")
	}
	return left, err
}

// free releases the lease for whoever gets the message next. left is a sentence if the message is no longer this
// agent's: to acknowledge this copy would take the message from another agent.
func (u *Upstream) free(ctx context.Context, c Claim) (left string, err error) {
	for range tries {
		if c.Lease == 0 {
			return "", nil
		}
		next := leaseOf(c)
		if !c.Used {
			next.Attempt--
		}
		if _, err = u.put(ctx, message.LeaseKey(c.ID), next, c.Lease); !IsOlder(err) {
			break
		}
		switch s, wrong := u.stand(ctx, c, false); {
		case wrong != nil:
			return "", wrong
		case s.Known != nil:
			return "it was settled meanwhile", nil
		case s.With != "":
			return "it is with agent " + s.With + " by now", nil
		default:
			c.Lease = s.Lease // 0 if an earlier life freed it
		}
	}
	if err != nil {
		return "", fmt.Errorf("write its lease to the bucket %s: %w", u.Results.Bucket(), err)
	}
	return "", nil
}
