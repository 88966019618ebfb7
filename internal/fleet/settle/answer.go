package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
)

// Answer tells the stream that the claim's entry was answered.
func (u *Upstream) Answer(ctx context.Context, c Claim, o Outcome) (Fate, error) {
	fate, err := u.answer(ctx, c, o)
	if err != nil {
		return Fate{}, fmt.Errorf("tell the stream %s that message %s was answered: %w; its answer stays in the inbox, and it will be told again", u.stream, c.name(), u.refused(err))
	}
	return fate, nil
}

func (u *Upstream) answer(ctx context.Context, c Claim, o Outcome) (Fate, error) {
	if err := c.check(u.stream); err != nil {
		return Fate{}, err
	}
	a, err := u.keepText(ctx, c, o)
	if err != nil {
		return Fate{}, err
	}
	r := u.record(c, o, WasAnswered)
	r.ReplyState = NoReply
	if c.Reply != "" {
		r.ReplyState = Sending
	}
	d, err := u.decide(ctx, c, r)
	if err != nil {
		return Fate{}, err
	}
	if !d.ours {
		return u.superseded(ctx, c, a, d)
	}
	if err := u.reply(ctx, c, a, o.Reply, &d); err != nil {
		return Fate{}, err
	}
	return u.finish(ctx, c, ackAnswered, Fate{Outcome: WasAnswered, Decision: d.Record})
}

func (u *Upstream) record(c Claim, o Outcome, outcome Word) Record {
	return Record{
		ID: c.ID, Agent: c.Agent, EntryID: c.EntryID, Life: u.life,
		Stream: c.Stream, Seq: c.Seq, Subject: c.Subject, Again: c.Again, Copy: c.Copy,
		Outcome: outcome, Reason: o.Reason, Bytes: int64(len(o.Reply)),
		Attempts: o.Attempts, SessionID: o.SessionID, At: o.At, Fields: o.Fields,
	}
}

// decided is a decision as the bucket has it.
type decided struct {
	Record
	revision uint64
	ours     bool
}

// decide makes r the decision about the claim's message, or finds the one that is there.
func (u *Upstream) decide(ctx context.Context, c Claim, r Record) (decided, error) {
	kv, err := u.results(ctx)
	if err != nil {
		return decided{}, err
	}
	value, err := json.Marshal(r)
	if err != nil {
		return decided{}, fmt.Errorf("encode its decision: %w", err)
	}
	revision, err := u.create(ctx, kv, c.key(), value)
	if err == nil {
		return decided{r, revision, true}, u.done(stepDecision)
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return decided{}, fmt.Errorf("create its decision in the bucket %s: %w", names.Bucket(u.stream), err)
	}
	there, revision, err := u.decision(ctx, c.ID)
	if err != nil {
		return decided{}, err
	}
	if there.holds(c.Again) {
		return decided{there, revision, there.of(c, r.Outcome)}, nil
	}
	// It was decided that it is dead, and it was requeued since.
	revision, err = u.update(ctx, kv, c.key(), value, revision)
	if err != nil {
		return decided{}, fmt.Errorf("replace the decision in the bucket %s that it is dead: %w", names.Bucket(u.stream), err)
	}
	return decided{r, revision, true}, u.done(stepDecision)
}

func (u *Upstream) create(ctx context.Context, kv jetstream.KeyValue, key string, value []byte) (uint64, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	revision, err := kv.Create(ctx, key, value)
	return revision, u.unanswered(kv.Bucket(), err)
}

func (u *Upstream) update(ctx context.Context, kv jetstream.KeyValue, key string, value []byte, revision uint64) (uint64, error) {
	ctx, cancel := u.within(ctx)
	defer cancel()
	revision, err := kv.Update(ctx, key, value, revision)
	return revision, u.unanswered(kv.Bucket(), err)
}

// write puts a decision of ours down again, with another state. Who removed the key, or
// wrote the same before an answer of the server was lost, had the last word.
func (u *Upstream) write(ctx context.Context, c Claim, d *decided) error {
	kv, err := u.results(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(d.Record)
	if err != nil {
		return fmt.Errorf("encode its decision: %w", err)
	}
	revision, err := u.update(ctx, kv, c.key(), value, d.revision)
	if err != nil && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) && !errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("note its state in the bucket %s: %w", names.Bucket(u.stream), err)
	}
	d.revision = revision
	return nil
}

// superseded keeps what came second, where people see it.
func (u *Upstream) superseded(ctx context.Context, c Claim, a Answer, d decided) (Fate, error) {
	kv, err := u.results(ctx)
	if err != nil {
		return Fate{}, err
	}
	a.By = d.Agent
	if err := u.put(ctx, kv, names.Superseded(c.ID, c.Agent), a); err != nil {
		return Fate{}, fmt.Errorf("keep it as superseded by that of %s: %w", d.Agent, err)
	}
	if err := u.done(stepSuperseded); err != nil {
		return Fate{}, err
	}
	// Its text counts for an answer until it is gone, unless it is that of the decision,
	// which this agent made about another entry.
	if d.Agent != inJSON(c.Agent) || d.Outcome != WasAnswered {
		if err := u.remove(ctx, kv, names.Answer(c.ID, c.Agent)); err != nil {
			return Fate{}, fmt.Errorf("remove the text of what came second: %w", err)
		}
	}
	if err := u.done(stepCleared); err != nil {
		return Fate{}, err
	}
	return u.finish(ctx, c, ackAnswered, Fate{Outcome: Superseded, Decision: d.Record})
}

// finish takes the message off the stream, and forgets what is known of it.
func (u *Upstream) finish(ctx context.Context, c Claim, say string, f Fate) (Fate, error) {
	if c.Copy > 1 {
		if err := u.forget(ctx, c); err != nil {
			return Fate{}, err
		}
	}
	left, err := u.acknowledge(ctx, c, say)
	if err != nil {
		return Fate{}, err
	}
	f.Left = left
	u.mu.Lock()
	delete(u.replies, c.key())
	u.mu.Unlock()
	return f, u.done(stepSettled)
}
