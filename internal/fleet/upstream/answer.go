package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// Answer tells the stream that the claim's entry was answered.
func (u *Upstream) Answer(ctx context.Context, c Claim, a Answer) (fate Fate, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("tell the stream %s that message %s was answered: %w; its answer stays in the inbox, and it will be told again", u.stream, c.name(), u.refused(err))
		}
	}()
	text := a.Reply
	a.Bytes = int64(len(text))
	r := u.record(c, a.Settled, WasAnswered)
	r.ReplyState = NoReply
	if c.Reply != "" {
		r.ReplyState = Sending
	}
	a.Settled = r.Settled
	value, err := json.Marshal(a)
	if err != nil {
		return Fate{}, fmt.Errorf("encode its answer: %w", err)
	}
	if int64(len(value)) > u.most() {
		if a.Object, err = u.keepObject(ctx, message.AnswerKey(c.ID, c.Agent), []byte(text)); err != nil {
			return Fate{}, err
		}
		a.Reply = ""
	}
	return u.conclude(ctx, c, r, a, ackAnswered, func(d *decided) error { return u.reply(ctx, c, a, text, d) })
}

// record returns the decision that a claim's message has this outcome. s has what the claim lacks.
func (u *Upstream) record(c Claim, s Settled, outcome Word) Record {
	s.ID, s.Agent, s.EntryID, s.Again, s.Outcome = c.ID, c.Agent, c.entry(), c.Again, outcome
	return Record{Settled: s, Life: u.life, Stream: c.Stream, Seq: c.Seq, Subject: c.Subject, Copy: c.Copy}
}

// Reply returns the text of an answer, from the stream's object store if it lies there.
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
		return "", fmt.Errorf("read the reply to message %s from the object store %s: %w", words.Brief(a.ID), message.Replies(stream), err)
	}
	return string(text), nil
}

// most limits a value, in bytes. Half of the server's maximum leaves room for headers.
func (u *Upstream) most() int64 { return u.js.Conn().MaxPayload() / 2 }

// keepObject puts text into the object store. The text determines the name, so a second try finds the object. The
// server has every part before it gets the info, so an info vouches for a whole text. The library's own Put does not
// wait, and leaves an info without the parts that were refused.
func (u *Upstream) keepObject(ctx context.Context, prefix string, text []byte) (name string, err error) {
	sum, size := sha256.New(), int(max(1, min(128<<10, u.most()))) // the client's own default, if the server takes that
	_, _ = sum.Write(text)                                         // it never fails
	info := jetstream.ObjectInfo{Bucket: message.Replies(u.stream), NUID: nuid.Next(), Size: uint64(len(text)), Digest: jetstream.GetObjectDigestValue(sum)}
	info.Name = prefix + "." + hex.EncodeToString(sum.Sum(nil)[:8])
	info.Opts = &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)}
	defer func() {
		if err != nil {
			err = fmt.Errorf("put its %d bytes into the object store %s: %w", len(text), info.Bucket, err)
		}
	}()
	brief, cancel := u.within(ctx)
	defer cancel()
	kept, err := u.Replies.GetInfo(brief, info.Name)
	if err == nil && kept.Size == info.Size {
		u.reached("object")
		return info.Name, nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return "", u.unanswered(err)
	}
	for part := range slices.Chunk(text, size) {
		if _, err := u.publish(ctx, &nats.Msg{Subject: "$O." + info.Bucket + ".C." + info.NUID, Data: part}); err != nil {
			return "", err
		}
		info.Chunks++
	}
	m := nats.NewMsg("$O." + info.Bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(info.Name)))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	if m.Data, err = json.Marshal(info); err == nil {
		_, err = u.publish(ctx, m)
	}
	if err != nil {
		return "", err
	}
	u.reached("object")
	return info.Name, nil
}

// cut returns at most n bytes of s, as valid UTF-8.
func cut(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// rewrite stores our decision again with its new state, and then reaches step. A revision that no longer matches is no
// error: somebody removed the key, or an earlier try arrived although its confirmation was lost.
func (u *Upstream) rewrite(ctx context.Context, c Claim, d *decided, step string) error {
	revision, err := u.put(ctx, c.key(), d.Record, d.revision)
	if err != nil && !IsOlder(err) {
		return fmt.Errorf("note its state in the bucket %s: %w", u.Results.Bucket(), err)
	}
	d.revision = revision
	u.reached(step)
	return nil
}

// Headers of a reply, besides [message.HeaderID].
const (
	HeaderAgent = "Heartbeat-Agent"
	HeaderEntry = "Heartbeat-Entry"
	// HeaderObject names the text in [message.Replies] if it is too long for a message. The body is empty then.
	HeaderObject = "Heartbeat-Object"
	HeaderBytes  = "Heartbeat-Bytes" // the text's length
)

// reply sends the answer to whoever asked, at most once over all lives of the agent, and notes what became of it.
func (u *Upstream) reply(ctx context.Context, c Claim, a Answer, text string, d *decided) error {
	if d.ReplyState != Sending {
		return nil
	}
	state, known := u.replies.Load(c.key())
	switch {
	case known:
		d.ReplyState = state.(State)
	case d.Life != u.life:
		d.ReplyState = InDoubt
	default:
		state, err := u.send(ctx, c, a, text)
		if err != nil {
			return err
		}
		d.ReplyState = state
		u.reached("reply")
	}
	return u.rewrite(ctx, c, d, "reply state")
}

// send publishes the reply. From the first try on it is in doubt until the server confirms all that was sent.
func (u *Upstream) send(ctx context.Context, c Claim, a Answer, text string) (State, error) {
	if !u.mayReply(c.Reply) {
		u.replies.Store(c.key(), Refused)
		return Refused, nil
	}
	nc := u.js.Conn()
	if !nc.IsConnected() {
		return "", fmt.Errorf("send its reply: %w", nats.ErrDisconnected)
	}
	m := nats.NewMsg(c.Reply)
	m.Header.Set(message.HeaderID, c.ID)
	m.Header.Set(HeaderAgent, c.Agent)
	m.Header.Set(HeaderEntry, c.entry())
	m.Header.Set(HeaderBytes, strconv.Itoa(len(text)))
	if a.Object != "" {
		m.Header.Set(HeaderObject, a.Object)
	} else {
		m.Data = []byte(text)
	}
	u.replies.Store(c.key(), InDoubt)
	ctx, cancel := u.within(ctx)
	defer cancel()
	if err := nc.PublishMsg(m); err != nil {
		return "", fmt.Errorf("send its reply to %s: %w", c.Reply, err)
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		return "", fmt.Errorf("send its reply to %s: %w; whether it came through is not known, so that it is not sent again", c.Reply, err)
	}
	state := Sent
	// Nobody else publishes to this subject, so a refusal that names it is about this reply.
	if last := nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), strconv.Quote(c.Reply)) {
		state = Refused
	}
	u.replies.Store(c.key(), state)
	return state, nil
}

// mayReply refuses a subject by which a producer would have an agent publish to the server, a bucket or dead letters.
func (u *Upstream) mayReply(subject string) bool {
	if strings.HasPrefix(subject, "_hb.") {
		return message.CanPublish(subject) && strings.HasPrefix(subject, message.ReplySubject(u.stream, ""))
	}
	return message.CanPublish(subject) && !strings.HasPrefix(subject, "$")
}
