package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
)

// Answer tells the stream that the claim's entry was answered.
func (u *Upstream) Answer(ctx context.Context, c Claim, a Answer) (Fate, error) {
	fate, err := u.answer(ctx, c, a)
	if err != nil {
		return Fate{}, fmt.Errorf("tell the stream %s that message %s was answered: %w; its answer stays in the inbox, and it will be told again", u.stream, c.name(), u.refused(err))
	}
	return fate, nil
}

func (u *Upstream) answer(ctx context.Context, c Claim, a Answer) (Fate, error) {
	if err := c.check(u.stream); err != nil {
		return Fate{}, err
	}
	text := a.Reply
	a.Settled = a.of(c, WasAnswered)
	a.Bytes = int64(len(text))
	if err := u.keepText(ctx, c, &a); err != nil {
		return Fate{}, err
	}
	r := u.record(c, a.Settled)
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
	if err := u.reply(ctx, c, a, text, &d); err != nil {
		return Fate{}, err
	}
	return u.finish(ctx, c, ackAnswered, Fate{Outcome: WasAnswered, Decision: d.Record})
}

// of is what an agent says of the entry of a claim.
func (s Settled) of(c Claim, outcome Word) Settled {
	s.ID, s.Agent, s.EntryID, s.Again, s.Outcome = c.ID, c.Agent, c.entry(), c.Again, outcome
	return s
}

func (u *Upstream) record(c Claim, s Settled) Record {
	return Record{Settled: s, Life: u.life, Stream: c.Stream, Seq: c.Seq, Subject: c.Subject, Copy: c.Copy}
}

// keepText writes the text of an outcome down, before anything is decided by it, and does not
// write over the text of what was decided already. An agent may write its texts, and need not
// read them.
func (u *Upstream) keepText(ctx context.Context, c Claim, a *Answer) error {
	key := message.AnswerKey(c.ID, c.Agent)
	value, err := json.Marshal(a)
	if err == nil && int64(len(value)) > u.most() {
		if a.Object, err = u.keepObject(ctx, key, []byte(a.Reply)); err != nil {
			return err
		}
		a.Reply = ""
		value, err = json.Marshal(a)
	}
	if err != nil {
		return fmt.Errorf("encode its answer: %w", err)
	}
	if _, err = u.put(ctx, u.Results, key, json.RawMessage(value), 0); errors.Is(err, jetstream.ErrKeyExists) {
		// A text that nothing was decided by is of a life that was killed before it got there.
		var r Record
		r, _, err = u.decision(ctx, c.ID)
		if err == nil && !r.holds(c.Again) || errors.Is(err, jetstream.ErrKeyNotFound) {
			_, err = u.put(ctx, u.Results, key, json.RawMessage(value), whatever)
		}
	}
	if err != nil {
		return fmt.Errorf("write its answer to the bucket %s: %w", u.Results.Bucket(), err)
	}
	return u.done(stepText)
}

// Reply returns the text of an answer, from the object store of the stream if it is there.
func Reply(ctx context.Context, js jetstream.JetStream, stream string, a Answer) (string, error) {
	if a.Object == "" {
		return a.Reply, nil
	}
	var text []byte
	store, err := js.ObjectStore(ctx, message.Replies(stream))
	if err == nil {
		text, err = store.GetBytes(ctx, a.Object)
	}
	if err != nil {
		return "", fmt.Errorf("read the reply to message %s from the object store %s: %w", Claim{ID: a.ID}.name(), message.Replies(stream), err)
	}
	return string(text), nil
}

// most is how long a value may be: half of what the server takes leaves room for headers.
func (u *Upstream) most() int64 { return u.js.Conn().MaxPayload() / 2 }

const maxChunk = 128 << 10 // the client's own default

// keepObject puts bytes into the object store, under a name that follows from them, so that
// a second try finds them there.
func (u *Upstream) keepObject(ctx context.Context, prefix string, text []byte) (string, error) {
	sum := sha256.Sum256(text)
	name := prefix + "." + hex.EncodeToString(sum[:8])
	err := func() error {
		ctx, cancel := u.within(ctx)
		defer cancel()
		info, err := u.Replies.GetInfo(ctx, name)
		if err == nil && info.Size == uint64(len(text)) {
			return nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
		meta := jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(max(1, min(maxChunk, u.most())))}}
		_, err = u.Replies.Put(ctx, meta, bytes.NewReader(text))
		return err
	}()
	if err != nil {
		return "", fmt.Errorf("put its %d bytes into the object store %s: %w", len(text), message.Replies(u.stream), u.unanswered(err))
	}
	return name, u.done(stepObject)
}

// cut is at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// decided is a decision as the bucket has it.
type decided struct {
	Record
	revision uint64
	ours     bool
}

// decide makes r the decision about the claim's message, or finds the one that is there. Of a
// message that somebody has settled none is made, also where what was decided is no longer kept.
func (u *Upstream) decide(ctx context.Context, c Claim, r Record) (decided, error) {
	if gone, err := u.Gone(ctx, c); err != nil {
		return decided{}, err
	} else if gone {
		_, _, err := u.decision(ctx, c.ID)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return decided{}, nil
		}
	}
	revision, err := u.put(ctx, u.Results, c.key(), r, 0)
	if err == nil {
		return decided{r, revision, true}, u.done(stepDecision)
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return decided{}, fmt.Errorf("create its decision in the bucket %s: %w", u.Results.Bucket(), err)
	}
	there, revision, err := u.decision(ctx, c.ID)
	if err != nil {
		return decided{}, err
	}
	if there.holds(c.Again) {
		own := there.Agent == inJSON(c.Agent) && there.EntryID == inJSON(c.entry()) && there.Again == c.Again && there.Outcome == r.Outcome
		return decided{there, revision, own}, nil
	}
	// It was decided that it is dead, and it was requeued since.
	revision, err = u.put(ctx, u.Results, c.key(), r, revision)
	if err != nil {
		return decided{}, fmt.Errorf("replace the decision in the bucket %s that it is dead: %w", u.Results.Bucket(), err)
	}
	return decided{r, revision, true}, u.done(stepDecision)
}

// write puts a decision of ours down again, with another state. Who removed the key, or
// wrote the same before an answer of the server was lost, had the last word.
func (u *Upstream) write(ctx context.Context, c Claim, d *decided) error {
	revision, err := u.put(ctx, u.Results, c.key(), d.Record, d.revision)
	if err != nil && !isOlder(err) {
		return fmt.Errorf("note its state in the bucket %s: %w", u.Results.Bucket(), err)
	}
	d.revision = revision
	return nil
}

// superseded keeps what came second, where people see it.
func (u *Upstream) superseded(ctx context.Context, c Claim, a Answer, d decided) (Fate, error) {
	a.By = d.Agent
	if _, err := u.put(ctx, u.Results, message.SupersededKey(c.ID, c.Agent), a, whatever); err != nil {
		return Fate{}, fmt.Errorf("keep it as superseded by that of %s: %w", d.By(), err)
	}
	if err := u.done(stepSuperseded); err != nil {
		return Fate{}, err
	}
	// Its text counts for an answer until it is gone, unless it is that of the decision,
	// which this agent made about another entry.
	if d.Agent != inJSON(c.Agent) || d.Outcome != WasAnswered {
		if err := u.remove(ctx, u.Results, message.AnswerKey(c.ID, c.Agent)); err != nil {
			return Fate{}, fmt.Errorf("remove the text of what came second: %w", err)
		}
	}
	if err := u.done(stepCleared); err != nil {
		return Fate{}, err
	}
	return u.finish(ctx, c, ackAnswered, Fate{Outcome: Superseded, Decision: d.Record})
}

// finish takes the message off the stream, and forgets what is known of it.
func (u *Upstream) finish(ctx context.Context, c Claim, say string, f Fate) (_ Fate, err error) {
	if c.Copy > 1 {
		if err := u.forget(ctx, c); err != nil {
			return Fate{}, err
		}
	}
	if f.Left, err = u.acknowledge(ctx, c, say); err != nil {
		return Fate{}, err
	}
	u.replies.Delete(c.key())
	return f, u.done(stepSettled)
}
