package verbs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// sendTries is how often send publishes a message to a silent server. Its id keeps it from being there twice.
const sendTries = 3

// receipt is what send prints with --json.
type receipt struct {
	ID      string `json:"id"`
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq,omitempty"`
	Sent    bool   `json:"sent"`
	Found   string `json:"found,omitempty"` // where it was already: "in the stream", "answered" or "requeued"
}

const (
	foundStream   = "in the stream"
	foundAnswered = "answered"
	foundRequeued = "requeued"
)

type send struct {
	common
	subject string
	args    []string // the text, unless it is in the file or on stdin
	file    string
	id      string
	key     string // "" for none
	meta    map[string]any
	limits  price.Limits
	wait    bool
	program.Verbatim

	m *nats.Msg

	blind error // why the last poll for the outcome failed, or nil
}

func sendVerb() cli.Verb {
	return cli.Verb{
		Name:  "send",
		Args:  "[TEXT | -]",
		Short: "send a message to the agents, and wait for the answer if asked",
		Long: `Send one message and print its id. The text is the argument, the content of
--file, or stdin (with -, or without a TEXT). The message is on the server's disk
when send returns. It goes to one agent that takes its subject.

With --id, sending again is safe: an id that was answered is not sent again, and
neither is one that the server knows from within its duplicate window. Whoever
sends a text twice under one id gets one answer, also after that window: the first
one counts. An id whose dead letter is kept is refused.

With --key, messages of one key are answered in the order in which they were sent,
one at a time, whichever agent has them; those of other keys go on beside them. The
key becomes the last word of the subject, which the stream and a consumer have to
take, as work.> does.

With --wait the reply is printed in place of the id, once the message was
answered. Waiting holds nothing up and may be given up: the message stays where it
is, and waiting for it goes on with the same --id.

A message that is larger than the server takes is refused, with both sizes.

Exit status: 0 the message is (or was) in the stream, with --wait: it was
answered; 1 it is not, or, with --wait, somebody deleted it; with --wait: 3 it
became a dead letter, 124 the timeout passed, and 128+n signal n ended
it (the message stays where it is).`,
		Example: `heartbeat-nats send --subject work.review "review the last commit"
git log -1 -p | heartbeat-nats send --subject work.review --id "review-$SHA" -
heartbeat-nats send --subject work.review --wait --timeout 10m "is it ready?"`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o send
			var meta []string
			o.begin(f)
			f.StringVar(&o.subject, "subject", "", "`subject` that an agent takes, such as work.review")
			f.Var(cli.Named(&o.file, "name a file, or leave the flag out"), "file", "read the text from this `file`")
			f.Var(cli.Named(&o.id, "name the message, or leave the flag out"), "id", "give the message this `id`, and send it only once")
			f.Var(cli.Named(&o.key, "name what is to be done in order, or leave the flag out"), "key", "have it answered after those sent before it with this `key`")
			f.StringArrayVar(&meta, "meta", nil, "metadata `key=value`, kept with the entry's result (may be repeated)")
			cli.AddEntryLimits(f, &o.limits, cli.EntryCost)
			f.BoolVar(&o.wait, "wait", false, "wait for the answer, and print it")
			f.Var(&o.timeout, "timeout", "give up waiting after this time (seconds or a duration; 0: never)")
			o.AddRaw(f)
			o.first = func(s cli.Streams) error {
				text, err := program.ReadText(o.args, o.file, inbox.MaxLine, s)
				if err == nil {
					o.m, err = o.message(text)
				}
				return err
			}
			return o.action(f, "send", func(args []string) (err error) {
				if err := o.check(f, args); err != nil {
					return err
				}
				o.meta, err = program.Metadata(meta, reserved)
				return err
			}, o.run)
		},
	}
}

// reserved are the members of an entry that are not metadata.
const reserved = " id prompt sent_at not_before expires_at limits nats "

func (o *send) check(f *pflag.FlagSet, args []string) error {
	switch {
	case o.subject == "":
		return errors.New("no subject: name it with --subject, such as work.review")
	case !message.CanPublish(o.subject):
		return fmt.Errorf("--subject is %q: a message has one subject, of words with dots between them, without wildcards and blanks", o.subject)
	case f.Changed("timeout") && !o.wait:
		return errors.New("--timeout is about waiting: add --wait")
	case o.Raw && !o.wait:
		return errors.New("--raw is about the reply that is waited for: add --wait")
	}
	if o.key != "" {
		o.subject += "." + message.Key(o.key)
	}
	o.args = args
	return nil
}

func (o *send) run(ctx context.Context) error {
	var r receipt
	var err error
	if o.kv, err = o.openBucket(ctx, message.Bucket(o.stream)); err == nil {
		r, err = o.send(ctx)
	}
	var by cli.EndedBy
	switch {
	case err != nil && errors.As(context.Cause(ctx), &by): // it may have been sent
		id := o.m.Header.Get(message.HeaderMsgID)
		return cli.Status(by.Status(), fmt.Errorf("%w: the message %q: whether it is in the stream is not known: send it again with --id %s, and it is there once", by, id, words.Shell(id)))
	case err != nil:
		return err
	case !r.Sent:
		o.s.Note("the message %q is %s already: nothing was sent", r.ID, r.Found)
	}
	switch {
	case o.wait:
		return o.await(ctx, r)
	case o.json:
		return cli.PrintJSON(o.s.Out, r)
	}
	return o.s.Print(r.ID + "\n")
}

// message returns the message to publish. Its payload is the plain text, unless there is metadata or limits, or an
// agent would read the text as a JSON entry.
func (o *send) message(text string) (*nats.Msg, error) {
	entry := inbox.Message{Text: text, Metadata: o.meta, Limits: o.limits.JSON()}
	if err := entry.Check(); err != nil {
		return nil, err
	}
	m := nats.NewMsg(o.subject)
	m.Data = []byte(text)
	if o.key != "" {
		m.Header.Set(message.HeaderAfter, strconv.FormatUint(math.MaxUint64, 10)) // counts for the size
	}
	if len(o.meta) > 0 || o.limits.Any() || strings.HasPrefix(strings.TrimSpace(text), "{") {
		members := map[string]any{"prompt": text}
		maps.Copy(members, o.meta)
		if limits := o.limits.JSON(); limits != nil {
			members["limits"] = json.RawMessage(limits)
		}
		var err error
		if m.Data, err = json.Marshal(members); err != nil {
			return nil, err
		}
	}
	id := cmp.Or(o.id, strings.ToLower(rand.Text()))
	switch wrong := inbox.CheckID(id); {
	case strings.TrimSpace(id) != id:
		return nil, fmt.Errorf("--id is %q: it takes no blanks at its ends, since a header has it", id)
	case wrong != nil:
		return nil, fmt.Errorf("--id: %w", wrong)
	case message.IsUnnamed(o.stream, id):
		return nil, fmt.Errorf("--id is %q: that is how messages of the stream %s are named that have no id of their own: choose another", id, o.stream)
	case len(id) > message.MaxID:
		return nil, fmt.Errorf("--id has %d bytes, and an id may have no more than %d", len(id), message.MaxID)
	}
	m.Header.Set(message.HeaderMsgID, id)
	m.Header.Set(jetstream.ExpectedStreamHeader, o.stream) // now, so that it counts for the size
	// Build the entry as an agent will, so that a message that its inbox would refuse is not sent.
	w := message.Message{ID: id, Entry: message.EntryID(id, 0), Stream: o.stream, Subject: o.subject, Seq: math.MaxUint64, Copy: math.MaxUint32, Data: m.Data}
	_, err := w.InboxMessage()
	return m, err
}

// send publishes the message, unless its id is known to be settled or requeued.
func (o *send) send(ctx context.Context) (receipt, error) {
	m := o.m
	r := receipt{ID: m.Header.Get(message.HeaderMsgID), Stream: o.stream, Subject: o.subject}
	if o.id != "" {
		known, _, err := o.decision(ctx, r.ID)
		switch {
		case err != nil:
			return r, err
		case known == nil:
		case known.Outcome == upstream.WasAnswered:
			r.Seq, r.Found = known.Seq, foundAnswered
			return r, nil
		case known.LetterState == upstream.Requeued:
			r.Seq, r.Found = known.Seq, foundRequeued
			return r, nil
		case o.wait, known.Reason == upstream.Canceled && known.LetterState == "": // a cancel leaves no letter
			return r, becameDead(known)
		default:
			return r, fmt.Errorf("the message %q became a dead letter (%s), and is not sent again under its id: %s does that", r.ID, words.Brief(known.Reason), link.Typed(o.c.NATS, "dead requeue", "--stream", o.stream, r.ID))
		}
	}
	if size, most := int64(m.Size()-len(m.Subject)), o.c.NATS.MaxPayload(); size > most {
		return r, tooLarge(size, most, "the server "+o.c.Where())
	}
	var ack *jetstream.PubAck
	var err error
	for range sendTries {
		ack, err = o.publish(ctx, m)
		if err == nil || ctx.Err() != nil || !link.IsAway(err) || errors.Is(err, jetstream.ErrNoStreamResponse) {
			break
		}
	}
	if err != nil {
		return r, o.refusal(ctx, err)
	}
	// If this call made the id up, the duplicate is an earlier try of its own.
	if r.Seq, r.Sent = ack.Sequence, !ack.Duplicate || o.id == ""; !r.Sent {
		r.Found = foundStream
	}
	return r, nil
}

// publish sends a message. A message with a key names the last one of its subject in the stream as the one before it.
func (o *common) publish(ctx context.Context, m *nats.Msg) (ack *jetstream.PubAck, err error) {
	if m.Header.Get(message.HeaderAfter) == "" {
		return o.c.JS.PublishMsg(ctx, m)
	}
	s, err := o.openStream(ctx, o.stream)
	if err != nil {
		return nil, err
	}
	for range orderTries {
		after := "0"
		switch last, err := s.GetLastMsgForSubject(ctx, m.Subject); {
		case err == nil:
			after = strconv.FormatUint(last.Sequence, 10)
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, fmt.Errorf("look for the last message with its key: %w", o.explain(err))
		}
		m.Header.Set(message.HeaderAfter, after)
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, after)
		if ack, err = o.c.JS.PublishMsg(ctx, m); !upstream.IsOlder(err) {
			return ack, err
		}
	}
	return nil, fmt.Errorf("others send messages with its key all the time: %w", err)
}

// orderTries is how often publish tries to put a message behind the last of its key while others send.
const orderTries = 20

func tooLarge(size, most int64, who string) error {
	return fmt.Errorf("the message has %d bytes (%s) with its headers, and %s takes no more than %d (%s): put the text where the agent can read it and send its name", size, words.Size(size), who, most, words.Size(most))
}

// forSetup returns the subject for setup: with a key, that of all keys.
func (o *send) forSetup() string {
	if o.key == "" {
		return o.subject
	}
	return allKeys(o.subject)
}

// allKeys replaces the key in a subject by all keys.
func allKeys(subject string) string { return subject[:strings.LastIndexByte(subject, '.')+1] + "*" }

// refusal explains why a message is not in the stream.
func (o *send) refusal(ctx context.Context, err error) error {
	m := o.m
	id := m.Header.Get(message.HeaderMsgID)
	var answer *jetstream.APIError
	isAnswer := errors.As(err, &answer)
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		if explained := o.explain(err); errors.Is(explained, link.ErrNoQuorum) {
			return explained
		}
		found, wrong := o.c.JS.Stream(ctx, o.stream)
		switch {
		case link.IsAway(wrong):
			return o.explain(wrong)
		case errors.Is(wrong, jetstream.ErrStreamNotFound): // the subjects that it took are unknown
			return o.notFound("the stream "+o.stream, wrong)
		}
		if wrong == nil && setup.Takes(found.CachedInfo().Config.Subjects, o.subject) && o.c.Refusal() == nil {
			return fmt.Errorf("the stream %s on %s does not answer: this user may not send to it, or its server is gone and another one has not taken its place yet: send the message again with --id %s, and it is there once", o.stream, o.c.Where(), words.Shell(id))
		}
		subjects := []string{o.forSetup()}
		if wrong == nil { // setup leaves a stream only the subjects that it is given
			subjects = append(found.CachedInfo().Config.Subjects, subjects...)
		}
		return fmt.Errorf("no stream on %s takes the subject %s: %s changes that, unless this user may not send to it", o.c.Where(), o.subject, setup.Command(o.c.JS, o.stream, setup.SubjectsFlags(subjects)...))
	case isAnswer && answer.ErrorCode == jetstream.ErrorCode(server.JSStreamNotMatchErr):
		return fmt.Errorf("the subject %s belongs to another stream than %s: name that with --stream", o.subject, o.stream)
	case isAnswer && answer.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		if found, wrong := o.c.JS.Stream(ctx, o.stream); wrong == nil {
			return tooLarge(int64(m.Size()-len(m.Subject)), int64(found.CachedInfo().Config.MaxMsgSize), "the stream "+o.stream)
		}
	case !isAnswer:
		if err = o.explain(err); !errors.Is(err, nats.ErrPermissionViolation) {
			return fmt.Errorf("%w; the message may be in the stream all the same: send it again with --id %s, and it is there once", err, words.Shell(id))
		}
	}
	return fmt.Errorf("the stream %s does not take the message: %w", o.stream, err)
}
