package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/settle"
	"heartbeat/internal/words"
)

const (
	// lookEvery is how often a decision is asked for that the server announces anyway, and
	// whether the message is there still.
	lookEvery = 5 * time.Second
	// glanceEvery is how often is seen whether the connection is back: what was announced
	// while it was away may be lost.
	glanceEvery = time.Second
	// whyEvery is how often a person who waits at a terminal is told what for.
	whyEvery = 30 * time.Second
	// mostTries is how often is asked who does not answer.
	mostTries = 30
)

// Outcomes of a message that was waited for.
const (
	outcomeAnswered = "answered"
	outcomeDead     = "dead-lettered"
	outcomeTimedOut = "timed out"
	outcomeEnded    = "ended" // the waiting, by a signal
	outcomeGone     = "gone"
	outcomeUnknown  = "unknown"
)

// waited is what send --wait prints with --json.
type waited struct {
	ID      string `json:"id"`
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq,omitempty"`
	Outcome string `json:"outcome"`
	// Result tells the outcome, if there is one.
	Result *outcome `json:"result,omitempty"`
}

// gone says that nobody will settle a message, and why.
type gone struct{ error }

// await waits for the outcome of a message, and prints it.
func (o *sending) await(ctx context.Context, r receipt, s cli.Streams) error {
	w := waited{ID: r.ID, Stream: r.Stream, Seq: r.Seq}
	known, err := o.decided(ctx, r, s)
	if err == nil {
		err = o.patiently(ctx, func() error {
			w.Result, err = answered(ctx, o.c, o.kv, r.ID, *known)
			return err
		})
	}
	err = o.judge(ctx, &w, err)
	switch {
	case o.JSON:
		return errors.Join(cli.PrintJSON(s.Out, w), err)
	case err == nil:
		_, err = fmt.Fprintln(fullText(s.Out, o.Raw), *w.Result.Reply)
	}
	return err
}

// judge names the outcome, and returns an error unless it is an answer.
func (o *sending) judge(ctx context.Context, w *waited, err error) error {
	var by cli.EndedBy
	cause := context.Cause(ctx)
	switch {
	case err == nil && w.Result.Outcome == settle.WasAnswered:
		w.Outcome = outcomeAnswered
		return nil
	case err == nil:
		w.Outcome = outcomeDead
		return o.becameDead(&w.Result.Record)
	case errors.Is(cause, errTimedOut):
		w.Outcome = outcomeTimedOut
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("the message %q was not answered within %s: %s", w.ID, words.Took(o.Timeout), stays(w.ID)))
	case errors.As(cause, &by):
		w.Outcome = outcomeEnded
		return cli.Status(by.Status(), fmt.Errorf("%w: the message %q: %s", by, w.ID, stays(w.ID)))
	case errors.As(err, new(gone)):
		w.Outcome = outcomeGone
		return fmt.Errorf("the message %q is not waited for any more: %w", w.ID, err)
	}
	w.Outcome = outcomeUnknown
	return err
}

func stays(id string) string {
	return fmt.Sprintf("it stays in the stream and may be answered yet: to go on waiting, send it again with --id %s --wait", words.Shell(id))
}

func (o *sending) becameDead(r *settle.Record) error {
	return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the message %q became a dead letter: %s", r.ID, words.Line(r.Reason)))
}

// decided waits for the decision about a message.
func (o *sending) decided(ctx context.Context, r receipt, s cli.Streams) (*settle.Record, error) {
	var watch jetstream.KeyWatcher
	err := o.patiently(ctx, func() (err error) {
		watch, err = o.kv.Watch(ctx, names.Key(r.ID))
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrStreamNotFound) {
		return nil, o.noBucket()
	}
	if err != nil {
		return nil, fmt.Errorf("watch the bucket %s: %w", o.kv.Bucket(), said(o.c, err))
	}
	defer func() { _ = watch.Stop() }() // the connection is about to end
	updates := watch.Updates()
	glance := time.NewTicker(glanceEvery)
	defer glance.Stop()
	var why <-chan time.Time
	if colour.Terminal(s.Err) != nil {
		tick := time.NewTicker(whyEvery)
		defer tick.Stop()
		why = tick.C
	}
	due := o.looks(r)
	untaken := o.untaken(ctx)
	for {
		var known *settle.Record
		var err error
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, open := <-updates:
			if !open {
				updates = nil // the looks go on
			}
			if e != nil && e.Operation() == jetstream.KeyValuePut {
				known, err = parsed(e)
			}
		case now := <-glance.C:
			if due(now) {
				known, err = o.look(ctx, r)
			}
		case sentence := <-untaken:
			s.Note("%s", sentence)
		case <-why:
			if !o.tellWhy(ctx, s) {
				why = nil
			}
		}
		if err != nil || known != nil && known.LetterState != settle.Requeued {
			return known, err
		}
	}
}

// patiently calls do until the server answers, or the waiting ends. A server that is there
// and does not answer is asked no more than a few times.
func (o *sending) patiently(ctx context.Context, do func() error) error {
	for tries := 0; ; {
		err := do()
		if err == nil || !link.IsAway(err) || ctx.Err() != nil || tries == mostTries {
			return err
		}
		if o.c.State().Connected {
			tries++
		}
		select {
		case <-time.After(glanceEvery):
		case <-ctx.Done():
		}
	}
}

// looks returns what says whether to look now: every lookEvery, once the connection is
// back, and first of all for a message that was sent before.
func (o *sending) looks(r receipt) func(time.Time) bool {
	next, wasAway := time.Now(), false
	if r.Sent {
		next = next.Add(lookEvery)
	}
	return func(now time.Time) bool {
		isAway := !o.c.State().Connected
		due := !isAway && (wasAway || now.After(next))
		if wasAway = isAway; due {
			next = now.Add(lookEvery)
		}
		return due
	}
}

// look asks for the decision, and whether the message is there at all. A server that is
// away will be asked again.
func (o *sending) look(ctx context.Context, r receipt) (*settle.Record, error) {
	where := o.lost(ctx, r) // asked first: who settles a message decides, and then acknowledges
	known, err := decision(ctx, o.c, o.kv, r.ID)
	if err != nil {
		_, err = o.c.JS.KeyValue(ctx, o.kv.Bucket())
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, o.noBucket()
		}
		return nil, nil
	}
	if known == nil || known.LetterState == settle.Requeued {
		return nil, where
	}
	return known, nil
}

// noBucket says that nobody can tell what becomes of the message.
func (o *sending) noBucket() error {
	return gone{notFound(o.c, "the bucket "+o.kv.Bucket(), "--stream "+o.Stream, jetstream.ErrBucketNotFound)}
}

// lost is an error if the message is surely not in the stream. A producer may ask for what
// the stream says of itself, and for a message by its number.
func (o *sending) lost(ctx context.Context, r receipt) error {
	if r.Seq == 0 || r.Found == foundAnswered {
		return nil
	}
	found, err := o.c.JS.Stream(ctx, o.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return gone{notFound(o.c, "the stream "+o.Stream, "--stream "+o.Stream, err)}
	}
	if err != nil {
		return nil
	}
	state := found.CachedInfo().State
	there := r.Seq >= state.FirstSeq && r.Seq <= state.LastSeq
	if there {
		o.c.Quietly(func() { there = holds(ctx, found, r) })
	}
	if there {
		return nil
	}
	again := "send it again if it is still wanted"
	switch r.Found {
	case foundStream:
		again += ", under another id or once the duplicate window is over"
	case foundRequeued:
		again += ", under another id"
	}
	return gone{fmt.Errorf("it is neither in the stream %s nor among the results, so somebody deleted it or made the stream anew: %s", o.Stream, again)}
}

// holds reports whether a message may be where it was put. Only an answer that it is not,
// or that another one is, counts.
func holds(ctx context.Context, found jetstream.Stream, r receipt) bool {
	ctx, cancel := context.WithTimeout(ctx, glanceEvery)
	defer cancel()
	m, err := found.GetMsg(ctx, r.Seq)
	if err != nil {
		return !errors.Is(err, jetstream.ErrMsgNotFound)
	}
	return idOf(m.Header) == r.ID
}

// idOf is the id of a message that was sent with one.
func idOf(h nats.Header) string {
	if id := h.Get(names.HeaderID); id != "" {
		return id
	}
	return h.Get(names.HeaderMsgID)
}

// untaken gets a sentence if no consumer takes the subject. A user who may not know that
// is not told.
func (o *sending) untaken(ctx context.Context) <-chan string {
	said := make(chan string, 1)
	go o.c.Quietly(func() {
		ctx, cancel := context.WithTimeout(ctx, glanceEvery)
		defer cancel()
		if subjects, err := takenBy(ctx, o.c, o.Stream); err == nil && !slices.ContainsFunc(subjects, func(filter string) bool { return matches(filter, o.Subject) }) {
			said <- fmt.Sprintf("no consumer of the stream %s takes messages of %s, so no agent gets this one: %s makes one", o.Stream, o.Subject, words.Shell(page.CommandName, "setup", "--stream", o.Stream, "--for", o.Subject))
		}
	})
	return said
}

// takenBy are the subjects of a stream's consumers.
func takenBy(ctx context.Context, c *link.Conn, name string) (all []string, err error) {
	found, err := stream(ctx, c, name)
	if err != nil {
		return nil, err
	}
	list := found.ListConsumers(ctx)
	for info := range list.Info() {
		all = append(all, filters(info)...)
	}
	return all, list.Err()
}

// tellWhy says what the message waits for, and reports whether that may be asked.
func (o *sending) tellWhy(ctx context.Context, s cli.Streams) bool {
	seen, err := gather(ctx, o.c, o.Stream)
	if err == nil {
		s.Note("still waiting: %s", seen.Why)
	}
	return err == nil || link.IsAway(err)
}
