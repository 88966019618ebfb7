package verbs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/given"
	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/settle"
	"heartbeat/internal/words"
)

// sendTries is how often a message is published while the server does not answer. It has
// an id, so the server keeps it once.
const sendTries = 3

// receipt is what send prints with --json.
type receipt struct {
	ID      string `json:"id"`
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
	// Seq is the message's place in the stream, if it is there.
	Seq  uint64 `json:"seq,omitempty"`
	Sent bool   `json:"sent"`
	// Found is where the message was already, if nothing was sent: in the stream,
	// answered, or requeued.
	Found string `json:"found,omitempty"`
}

// Where a message may be found.
const (
	foundStream   = "in the stream"
	foundAnswered = "answered"
	foundRequeued = "requeued"
)

func send(o *page.Send, s cli.Streams) error {
	text, err := textOf(o, s)
	if err != nil {
		return err
	}
	m, err := messageOf(o, text)
	if err != nil {
		return err
	}
	var timeout time.Duration
	if o.Wait {
		timeout = o.Timeout
	}
	ctx, stop := untilSignal(timeout)
	defer stop()
	return connected(ctx, &o.Link, "send", s, func(c *link.Conn) error {
		to := &sending{Send: o, c: c}
		var r receipt
		err := c.Again(ctx, func() (err error) {
			if to.kv, err = bucket(ctx, c, o.Stream, names.Bucket(o.Stream)); err == nil {
				r, err = to.send(ctx, m)
			}
			return err
		})
		if err != nil {
			return unsure(ctx, err, m.Header.Get(names.HeaderMsgID))
		}
		if !r.Sent {
			s.Note("the message %q is %s already: nothing was sent", r.ID, r.Found)
		}
		switch {
		case o.Wait:
			return to.await(ctx, r, s)
		case o.JSON:
			return cli.PrintJSON(s.Out, r)
		}
		_, err = fmt.Fprintln(s.Out, r.ID)
		return err
	})
}

// unsure is the error of a message that was perhaps sent: a signal ended the wait for the
// server's word.
func unsure(ctx context.Context, err error, id string) error {
	var by cli.EndedBy
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	return cli.Status(by.Status(), fmt.Errorf("%w: the message %q: whether it is in the stream is not known: send it again with --id %s, and it is there once", by, id, words.Shell(id)))
}

func textOf(o *page.Send, s cli.Streams) (string, error) {
	switch {
	case o.File != "":
		b, err := given.TextOf(disk.ReadGiven(o.File, inbox.MaxLine))
		return string(b), err
	case o.Text != "-":
		return o.Text, nil
	case o.Implied && cli.IsTerminal(s.In):
		return "", cli.Usage(errors.New("no text: give it as TEXT, with --file, or on stdin"))
	}
	b, err := given.TextOf(io.ReadAll(io.LimitReader(s.In, inbox.MaxLine+1)))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if len(b) > inbox.MaxLine {
		return "", fmt.Errorf("stdin has more than %d bytes (%s), the most that an entry has: put the text where the agent can read it and send its name", inbox.MaxLine, words.Size(inbox.MaxLine))
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// messageOf is the message as it is published. A text is its payload, unless there is more
// to say than that, or an agent would take the text for more.
func messageOf(o *page.Send, text string) (*nats.Msg, error) {
	entry := inbox.Message{Text: text, Metadata: o.Meta, Limits: o.Limits}
	if err := entry.Check(); err != nil {
		return nil, err
	}
	m := nats.NewMsg(o.Subject)
	m.Data = []byte(text)
	if len(o.Meta) > 0 || o.Limits.Any() || isObject(text) {
		members := map[string]any{"prompt": text}
		maps.Copy(members, o.Meta)
		if limits := o.Limits.JSON(); limits != nil {
			members["limits"] = json.RawMessage(limits)
		}
		var err error
		if m.Data, err = json.Marshal(members); err != nil {
			return nil, err
		}
	}
	id := o.ID
	if id == "" {
		id = strings.ToLower(rand.Text())
	}
	if strings.TrimSpace(id) != id {
		return nil, fmt.Errorf("--id is %q: it takes no blanks at its ends, since a header has it", id)
	}
	if err := inbox.CheckID(id); err != nil {
		return nil, fmt.Errorf("--id: %w", err)
	}
	if names.IsMessage(o.Stream, id) {
		return nil, fmt.Errorf("--id is %q: that is how messages of the stream %s are named that have no id of their own: choose another", id, o.Stream)
	}
	if len(id) > names.MaxID {
		return nil, fmt.Errorf("--id has %d bytes, and an id may have no more than %d", len(id), names.MaxID)
	}
	m.Header.Set(names.HeaderMsgID, id)
	m.Header.Set(jetstream.ExpectedStreamHeader, o.Stream) // now, so that it counts for the size
	_, err := entryOf(o, id, m.Data)
	return m, err
}

// entryOf is the entry that an agent will make of the message: one that its inbox would
// refuse is not sent.
func entryOf(o *page.Send, id string, data []byte) (inbox.Message, error) {
	w := message.Message{ID: id, Entry: message.EntryID(id, 0), Stream: o.Stream, Subject: o.Subject, Seq: math.MaxUint64, Copy: math.MaxUint32, Data: data}
	return w.InboxMessage()
}

// isObject recognises a text that agents would take for an entry with members of its own.
func isObject(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "{") }

// sending is a send that is under way.
type sending struct {
	*page.Send
	c  *link.Conn
	kv jetstream.KeyValue
}

// send publishes the message, unless what became of its id is known.
func (o *sending) send(ctx context.Context, m *nats.Msg) (receipt, error) {
	r := receipt{ID: m.Header.Get(names.HeaderMsgID), Stream: o.Stream, Subject: o.Subject}
	if o.ID != "" {
		known, err := decision(ctx, o.c, o.kv, r.ID)
		switch {
		case err != nil:
			return r, err
		case known == nil:
		case known.Outcome == settle.WasAnswered:
			r.Seq, r.Found = known.Seq, foundAnswered
			return r, nil
		case known.LetterState == settle.Requeued:
			r.Seq, r.Found = known.Seq, foundRequeued
			return r, nil
		case o.Wait:
			return r, o.becameDead(known)
		default:
			return r, fmt.Errorf("the message %q became a dead letter (%s), and is not sent again under its id: %s does that", r.ID, words.Brief(known.Reason), requeueing(o.Stream, r.ID))
		}
	}
	if size, most := int64(m.Size()-len(m.Subject)), o.c.NATS.MaxPayload(); size > most {
		return r, tooLarge(size, most, "the server "+o.c.Where())
	}
	ack, err := o.publish(ctx, m)
	if err != nil {
		return r, o.refused(ctx, m, err)
	}
	// An id of its own is known only from another try of this one.
	if r.Seq, r.Sent = ack.Sequence, !ack.Duplicate || o.ID == ""; !r.Sent {
		r.Found = foundStream
	}
	return r, nil
}

func (o *sending) publish(ctx context.Context, m *nats.Msg) (ack *jetstream.PubAck, err error) {
	for range sendTries {
		ack, err = o.c.JS.PublishMsg(ctx, m)
		if err == nil || ctx.Err() != nil || !link.IsAway(err) || errors.Is(err, jetstream.ErrNoStreamResponse) {
			break
		}
	}
	return ack, err
}

func tooLarge(size, most int64, who string) error {
	return fmt.Errorf("the message has %d bytes (%s) with its headers, and %s takes no more than %d (%s): put the text where the agent can read it and send its name", size, words.Size(size), who, most, words.Size(most))
}

// codeOtherStream is what a server says where a subject belongs to another stream than the
// one that was expected.
const codeOtherStream jetstream.ErrorCode = 10060

// refused is why a message is not in the stream.
func (o *sending) refused(ctx context.Context, m *nats.Msg, err error) error {
	id := m.Header.Get(names.HeaderMsgID)
	var answer *jetstream.APIError
	isAnswer := errors.As(err, &answer)
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		if _, wrong := o.c.JS.Stream(ctx, o.Stream); link.IsAway(wrong) {
			return said(o.c, wrong)
		}
		return fmt.Errorf("no stream on %s takes the subject %s: heartbeat-nats setup %s--stream %s --subjects SUBJECT makes one, unless this user may not send to it", o.c.Where(), o.Subject, o.c.EmbedFlag(), o.Stream)
	case isAnswer && answer.ErrorCode == codeOtherStream:
		return fmt.Errorf("the subject %s belongs to another stream than %s: name that with --stream", o.Subject, o.Stream)
	case isAnswer && answer.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		if found, wrong := o.c.JS.Stream(ctx, o.Stream); wrong == nil {
			return tooLarge(int64(m.Size()-len(m.Subject)), int64(found.CachedInfo().Config.MaxMsgSize), "the stream "+o.Stream)
		}
	case !isAnswer && !errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("%w; the message may be in the stream all the same: send it again with --id %s, and it is there once", said(o.c, err), words.Shell(id))
	}
	return fmt.Errorf("the stream %s does not take the message: %w", o.Stream, err)
}

// requeueing is the command that sends the message of a dead letter again.
func requeueing(stream, id string) string {
	return words.Shell(page.CommandName, "dead", "requeue", "--stream", stream, id)
}
