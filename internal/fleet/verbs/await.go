package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

const (
	// pollEvery is how often await looks for the decision and the message, although the server announces a decision.
	pollEvery = 5 * time.Second
	// glance limits a request that the role may not permit, and is the time between two tries.
	glance = time.Second
	// mostTries is how often await asks a silent server.
	mostTries = 30
)

// waited is what send --wait prints with --json.
type waited struct {
	ID      string   `json:"id"`
	Stream  string   `json:"stream"`
	Seq     uint64   `json:"seq,omitempty"`
	Outcome string   `json:"outcome"`          // as of "send --wait" above
	Result  *outcome `json:"result,omitempty"` // an outcome
}

// gone is the reason why nobody will settle a message.
type gone struct{ error }

// await waits for the outcome of a message, and prints it. Any outcome but an answer is an error.
func (o *send) await(ctx context.Context, r receipt) error {
	w := waited{ID: r.ID, Stream: r.Stream, Seq: r.Seq}
	known, err := o.awaitDecision(ctx, r)
	if err == nil {
		err = o.patiently(ctx, func() error {
			w.Result, err = o.answered(ctx, r.ID, known)
			return err
		})
	}
	var by cli.EndedBy
	cause := context.Cause(ctx)
	again := "to go on waiting, send it again with --id " + words.Shell(r.ID) + " --wait"
	stays := "it stays in the stream and may be answered yet: " + again
	if !o.c.Connected() {
		o.blind = errors.New("the server is away")
	}
	if o.blind != nil {
		stays = fmt.Sprintf("whether it was answered by now could not be looked up (%v): %s", o.blind, again)
	}
	switch {
	case err == nil && w.Result.Outcome == upstream.WasAnswered:
		w.Outcome = "answered"
	case err == nil:
		w.Outcome, err = "dead-lettered", becameDead(&w.Result.Record)
	case errors.Is(cause, program.ErrTimedOut):
		w.Outcome = "timed out"
		err = cli.Status(cli.ExitTimedOut, fmt.Errorf("the message %q was not answered within %s: %s", r.ID, words.Took(time.Duration(o.timeout)), stays))
	case errors.As(cause, &by):
		w.Outcome = "ended" // a signal ended the waiting
		err = cli.Status(by.Status(), fmt.Errorf("%w: the message %q: %s", by, r.ID, stays))
	case errors.As(err, new(gone)):
		w.Outcome, err = "gone", fmt.Errorf("the message %q is not waited for any more: %w", r.ID, err)
	default:
		w.Outcome = "unknown"
	}
	switch {
	case o.json:
		return errors.Join(cli.PrintJSON(o.s.Out, w), err)
	case err == nil:
		_, err = fmt.Fprintln(o.FullText(o.s.Out), *w.Result.Reply)
	}
	return err
}

func becameDead(r *upstream.Record) error {
	if r.Reason == upstream.Canceled {
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the message %q was canceled", r.ID))
	}
	return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the message %q became a dead letter: %s", r.ID, words.Line(r.Reason)))
}

func (o *send) awaitDecision(ctx context.Context, r receipt) (*upstream.Record, error) {
	var watch jetstream.KeyWatcher
	err := o.patiently(ctx, func() (err error) {
		watch, err = o.kv.Watch(ctx, message.Key(r.ID))
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrStreamNotFound) {
		return nil, o.noBucket()
	}
	if err != nil {
		return nil, fmt.Errorf("watch the bucket %s: %w", o.kv.Bucket(), o.explain(err))
	}
	defer func() { _ = watch.Stop() }() // the connection is about to end
	updates := watch.Updates()
	next := time.NewTimer(0)
	defer next.Stop()
	if r.Sent { // an earlier message may have been lost before
		next.Reset(pollEvery)
	}
	untaken := o.untaken(ctx)
	missed := false
	for {
		var known *upstream.Record
		var err error
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, open := <-updates:
			if !open {
				updates = nil // polling goes on
			}
			if e != nil && e.Operation() == jetstream.KeyValuePut {
				known, err = parsed(e, upstream.ParseRecord)
			}
		case <-next.C:
			next.Reset(pollEvery)
			if o.c.Connected() {
				known, err = o.pollDecision(ctx, r)
			}
			if missed = !missed && errors.As(err, new(gone)); missed { // a server of a cluster may be behind the others
				err = nil
				next.Reset(glance)
			}
		case sentence := <-untaken:
			o.s.Note("%s", sentence)
		}
		if err != nil || known != nil && known.LetterState != upstream.Requeued {
			return known, err
		}
	}
}

// patiently calls do until the server answers or ctx ends. While connected it makes only mostTries calls.
func (o *send) patiently(ctx context.Context, do func() error) error {
	for tries := 0; ; {
		err := do()
		if err == nil || !link.IsAway(err) || ctx.Err() != nil || tries == mostTries {
			return err
		}
		if o.c.Connected() {
			tries++
		}
		select {
		case <-time.After(glance):
		case <-ctx.Done():
		}
	}
}

// pollDecision reads the decision, and whether the message exists. If the server is away, it returns nothing.
func (o *send) pollDecision(ctx context.Context, r receipt) (known *upstream.Record, err error) {
	lost := o.lost(ctx, r) // first, since an agent decides before it takes the message off the stream
	if known, _, o.blind = o.decision(ctx, r.ID); o.blind != nil {
		if _, err = o.c.JS.KeyValue(ctx, o.kv.Bucket()); errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, o.noBucket()
		}
		return nil, nil
	}
	if known == nil || known.LetterState == upstream.Requeued {
		return nil, lost
	}
	return known, nil
}

// noBucket returns the error that nobody can know what becomes of the message.
func (o *send) noBucket() error {
	return gone{o.notFound("the bucket "+o.kv.Bucket(), jetstream.ErrBucketNotFound)}
}

// lost returns an error if the message is certainly not in the stream, of which a producer may read state and messages.
func (o *send) lost(ctx context.Context, r receipt) error {
	if r.Seq == 0 || r.Found == foundAnswered {
		return nil
	}
	found, err := o.c.JS.Stream(ctx, o.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return gone{o.notFound("the stream "+o.stream, err)}
	}
	if err != nil {
		return nil
	}
	state := found.CachedInfo().State
	there := r.Seq >= state.FirstSeq && r.Seq <= state.LastSeq
	if there { // unless the server denies it, or has another message there
		o.c.Quietly(func() {
			ctx, cancel := context.WithTimeout(ctx, glance)
			defer cancel()
			m, err := found.GetMsg(ctx, r.Seq)
			there = !errors.Is(err, jetstream.ErrMsgNotFound)
			if err == nil {
				there = cmp.Or(m.Header.Get(message.HeaderID), m.Header.Get(message.HeaderMsgID)) == r.ID
			}
		})
	}
	if there {
		return nil
	}
	again, why := "send it again if it is still wanted", "so somebody or a limit of the stream deleted it, or the stream was made anew"
	var l upstream.Lease
	if e, err := o.kv.Get(ctx, message.LeaseKey(r.ID)); err == nil && json.Unmarshal(e.Value(), &l) == nil && l.Seq == r.Seq && l.Agent != "" {
		_, wrong := o.kv.Get(ctx, message.AnswerKey(r.ID, l.Agent)) // somebody may have removed only its decision
		if why = "so somebody deleted it; agent " + words.Brief(l.Agent) + " has it, and may answer it all the same"; l.Settled || wrong == nil {
			why = "since " + words.Brief(l.Agent) + " settled it and what came of it is no longer kept"
		}
	}
	switch r.Found {
	case foundStream:
		again += ", under another id or once the duplicate window is over"
	case foundRequeued:
		again += ", under another id"
	}
	return gone{fmt.Errorf("it is neither in the stream %s nor among the results, %s: %s", o.stream, why, again)}
}

// untaken sends a sentence if no consumer takes the subject, and nothing to a user without the right to know.
func (o *send) untaken(ctx context.Context) <-chan string {
	sentence := make(chan string, 1)
	go o.c.Quietly(func() {
		ctx, cancel := context.WithTimeout(ctx, glance)
		defer cancel()
		var filters []string
		_, all, err := setup.Consumers(ctx, o.c.JS, o.stream)
		for _, info := range all {
			filters = append(filters, setup.Filters(&info.Config)...)
		}
		if err == nil && !setup.Takes(filters, o.subject) {
			sentence <- fmt.Sprintf("no consumer of the stream %s takes messages of %s, so no agent gets this one: %s makes one", o.stream, o.subject, setup.Command(o.c.JS, o.stream, "--for", o.forSetup()))
		}
	})
	return sentence
}

// outcome is what became of a message, as --json prints it.
type outcome struct {
	upstream.Record
	Detail string  `json:"detail,omitempty"`
	Reply  *string `json:"reply,omitempty"`
	By     string  `json:"by,omitempty"` // who was first, if superseded
}

// decision returns the decision about a message, or nil, and the revision under which its bucket keeps it.
func (o *common) decision(ctx context.Context, id string) (*upstream.Record, uint64, error) {
	e, err := o.kv.Get(ctx, message.Key(id))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("read what became of the message %q: %w", id, o.explain(err))
	}
	r, err := parsed(e, upstream.ParseRecord)
	return r, e.Revision(), err
}

// parsed parses a value. The error names its key and bucket.
func parsed[T any](e jetstream.KeyValueEntry, parse func([]byte) (T, error)) (T, error) {
	v, err := parse(e.Value())
	if err != nil {
		err = fmt.Errorf("the key %s of the bucket %s: %w", e.Key(), e.Bucket(), err)
	}
	return v, err
}

// answered returns the outcome of a decided message, with the reply if there is one.
func (o *common) answered(ctx context.Context, id string, r *upstream.Record) (*outcome, error) {
	if r.Outcome != upstream.WasAnswered {
		return &outcome{Record: *r}, nil
	}
	e, err := o.kv.Get(ctx, message.AnswerKey(id, r.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("the message %q was answered by %s, and the text of that is no longer kept in the bucket %s", id, r.Agent, o.kv.Bucket())
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer to the message %q: %w", id, o.explain(err))
	}
	a, err := parsed(e, upstream.ParseAnswer)
	if err != nil {
		return nil, err
	}
	text, err := o.replyOf(ctx, a)
	return &outcome{Record: *r, Reply: &text}, err
}

func (o *common) replyOf(ctx context.Context, a upstream.Answer) (text string, err error) {
	text, err = upstream.Reply(ctx, o.c.JS, o.stream, a)
	return text, o.explain(err)
}
