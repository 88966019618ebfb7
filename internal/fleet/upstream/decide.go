package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
)

// decided is the decision that counts about a message.
type decided struct {
	Record
	revision uint64
	ours     bool
	isOpen   bool // no decision yet: another agent holds the message
}

// conclude decides that r, with the text a, is what became of the claim's message. If this decision counts, conclude
// calls then, which does what the agent owes because of it, and takes the message off the stream with payload. If
// another agent was first, conclude keeps the outcome for people.
func (u *Upstream) conclude(ctx context.Context, c Claim, r Record, a Answer, payload string, then func(*decided) error) (Fate, error) {
	var text *Answer
	if r.Outcome == WasAnswered { // a dead letter has its text in a stream of its own
		text = &a
	}
	d, err := u.decide(ctx, c, r, text)
	if err != nil {
		return Fate{}, err
	}
	outcome := r.Outcome
	if d.ours {
		if err := then(&d); err != nil {
			return Fate{}, err
		}
	} else {
		outcome, a.By, payload = Superseded, d.Agent, ackAnswered
		if _, err := u.put(ctx, message.SupersededKey(c.ID, c.Agent), a, whatever); err != nil {
			return Fate{}, fmt.Errorf("keep it as superseded by that of %s: %w", d.By(), err)
		}
		u.reached("superseded")
	}
	left := ""
	if !d.isOpen { // an open message stays on the stream for the agent that holds it
		if left, err = u.acknowledge(ctx, c, payload); err != nil {
			return Fate{}, err
		}
		u.replies.Delete(c.key())
	}
	u.reached("settled")
	return Fate{Outcome: outcome, Decision: d.Record, Left: left}, nil
}

// decide writes r, with its text if any, as the decision about the claim's message, or returns an existing decision.
// An agent that no longer holds the message decides nothing.
func (u *Upstream) decide(ctx context.Context, c Claim, r Record, text *Answer) (decided, error) {
	var last uint64 // the revision of a decision that no longer holds, since its message was requeued
	for range tries {
		if c.Lease == 0 {
			s, err := u.stand(ctx, c, false)
			switch {
			case err != nil:
				return decided{}, err
			case s.Known != nil && s.Known.Outcome == "":
				return decided{Record: *s.Known}, nil
			case s.Known == nil && s.Lease == 0:
				return decided{Record: Record{Settled: Settled{Agent: s.With}}, isOpen: true}, nil
			}
			c.Lease = s.Lease // 0 if there is a decision, which is read below
		}
		if c.Lease > 0 {
			revision, err := u.commit(ctx, c, r, last, text)
			if err == nil {
				u.reached("decision")
				return decided{Record: r, revision: revision, ours: true}, nil
			}
			if !IsOlder(err) {
				return decided{}, fmt.Errorf("write its decision to the bucket %s: %w", u.Results.Bucket(), err)
			}
		}
		there, revision, err := u.decision(ctx, c.ID)
		switch {
		case err != nil:
			return decided{}, err
		case there != nil && there.holds(c.Again):
			own := there.Agent == c.Agent && there.EntryID == c.entry() && there.Again == c.Again && there.Outcome == r.Outcome
			return decided{Record: *there, revision: revision, ours: own}, nil
		}
		last, c.Lease = revision, 0
	}
	return decided{}, errChangesHands
}

// Canceled is the reason of a message that a person canceled.
const Canceled = "canceled"

// byPerson stands for the agent in a person's decision.
const byPerson = "heartbeat-nats cancel"

// Held returns a claim for the message that the lease or the decision of this id names, and whether one does.
func (u *Upstream) Held(ctx context.Context, id string) (c Claim, isNamed bool, err error) {
	l, _, err := u.lease(ctx, id)
	if err != nil {
		return c, false, err
	}
	known, _, err := u.decision(ctx, id)
	switch {
	case err != nil:
	case l != nil && !l.Settled && (known == nil || !known.holds(l.Again)):
		c.Message, isNamed = message.Message{ID: id, Seq: l.Seq, Stored: l.Stored, Again: l.Again}, true
	case known != nil && known.LetterState != Requeued:
		c.Message, isNamed = message.Message{ID: id, Seq: known.Seq, Again: known.Again}, true
	}
	return c, isNamed, err
}

// Cancel decides that a message is dead. known is an earlier decision, or nil, and with the agent that held it, or "".
func (u *Upstream) Cancel(ctx context.Context, c Claim) (known *Record, with string, err error) {
	c.Stream, c.Agent = u.stream, byPerson
	for range tries {
		l, revision, err := u.lease(ctx, c.ID)
		if err != nil {
			return nil, "", err
		}
		c.Lease = revision
		there, last, err := u.decision(ctx, c.ID)
		switch {
		case err != nil:
			return nil, "", err
		case there == nil:
		case there.LetterState == Requeued:
			c.Again = max(c.Again, there.Again+1)
		case there.holds(c.Again):
			return there, "", nil
		}
		r := u.record(c, Settled{At: time.Now().UTC(), Reason: Canceled}, WasDead)
		_, err = u.commit(ctx, c, r, last, nil)
		switch {
		case err == nil && (l == nil || l.Settled):
			return nil, "", nil
		case err == nil:
			return nil, l.Agent, nil
		case !IsOlder(err):
			return nil, "", fmt.Errorf("cancel the message %q: write that to the bucket %s: %w", c.ID, u.Results.Bucket(), err)
		}
	}
	return nil, "", fmt.Errorf("cancel the message %q: %w: try again", c.ID, errChangesHands)
}

// commit writes a decision, with its text or the end of the lease. It writes all or nothing: all if lease and decision
// still have these revisions. An answer ends the lease too if that is kept longer than the decision.
func (u *Upstream) commit(ctx context.Context, c Claim, r Record, last uint64, text *Answer) (revision uint64, err error) {
	var batch []*nats.Msg
	add := func(key string, v any, last uint64) {
		m, wrong := u.keyed(key, v, last)
		batch, err = append(batch, m), errors.Join(err, wrong)
	}
	ends := text == nil || u.keeps.Load() > 0
	if ends {
		lease := leaseOf(c)
		lease.Agent, lease.Settled = c.Agent, true
		add(message.LeaseKey(c.ID), lease, c.Lease)
	}
	if text != nil {
		add(message.AnswerKey(c.ID, c.Agent), text, whatever)
		if !ends {
			batch[0].Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(c.Lease, 10))
			batch[0].Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, keptAt(u.Results.Bucket(), message.LeaseKey(c.ID)))
		}
	}
	add(c.key(), r, last)
	if err != nil {
		return 0, fmt.Errorf("encode it: %w", err)
	}
	return u.publishBatch(ctx, batch)
}

// Headers of a batch, which a server accepts whole or not at all.
const (
	headerBatch    = "Nats-Batch-Id"
	headerSequence = "Nats-Batch-Sequence"
	headerCommit   = "Nats-Batch-Commit"
)

// codeIncomplete is the code of a server that could not store a part of a batch.
const codeIncomplete = jetstream.ErrorCode(server.JSAtomicPublishIncompleteBatchErr)

// publishBatch publishes a batch, and returns the sequence of its last message, with which the server accepts all.
func (u *Upstream) publishBatch(ctx context.Context, batch []*nats.Msg) (sequence uint64, err error) {
	id, last := nuid.Next(), batch[len(batch)-1]
	last.Header.Set(headerCommit, "1")
	for i, m := range batch {
		m.Header.Set(headerBatch, id)
		m.Header.Set(headerSequence, strconv.Itoa(i+1))
		if m == last {
			sequence, err = u.publish(ctx, m)
		} else if err := u.js.Conn().PublishMsg(m); err != nil {
			return 0, err
		}
	}
	refusal, _ := errors.AsType[*jetstream.APIError](err)
	switch errorCode(err) {
	case jetstream.ErrorCode(server.JSAtomicPublishDisabledErr):
		err = fmt.Errorf("it takes one key at a time: `%s` changes that: %w", setup.Command(u.js, u.stream), refusal)
	case codeIncomplete:
		err = fmt.Errorf("the server did not take a part of it, as with a full disk, a limit of the account or a right that is missing: %w", refusal)
	}
	return sequence, err
}
