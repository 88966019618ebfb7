package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/settle"
	"heartbeat/internal/words"
)

// rememberShown is how many results --follow remembers, so that one whose state changes
// is not shown a second time.
const rememberShown = 10_000

func results(o *page.Results, s cli.Streams) error {
	ctx, stop := untilSignal(0)
	defer stop()
	return connected(ctx, &o.Link, "results", s, func(c *link.Conn) error {
		var kv jetstream.KeyValue
		err := c.Again(ctx, func() (err error) {
			kv, err = bucket(ctx, c, o.Stream, names.Bucket(o.Stream))
			return err
		})
		if err != nil {
			return ended(ctx, err)
		}
		r := &reading{Results: o, c: c, kv: kv, s: s}
		if len(o.IDs) > 0 {
			return each(o.IDs, s, func(id string) error { return ended(ctx, r.reply(ctx, id)) })
		}
		return ended(ctx, r.list(ctx))
	})
}

// reading is a look at the bucket of results.
type reading struct {
	*page.Results
	c  *link.Conn
	kv jetstream.KeyValue
	s  cli.Streams
}

// reply prints one reply in full.
func (o *reading) reply(ctx context.Context, id string) error {
	if o.Superseded {
		return o.second(ctx, id)
	}
	known, err := decision(ctx, o.c, o.kv, id)
	if err == nil && known == nil && names.IsPlace(o.Stream, id) {
		id, known, err = o.at(ctx, id)
	}
	if err != nil {
		return err
	}
	switch {
	case known == nil || known.LetterState == settle.Requeued:
		return fmt.Errorf("the message %q has no answer: heartbeat-nats send --id ID --wait waits for it, if it was sent", id)
	case known.Outcome == settle.WasDead && !o.JSON:
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the message %q became a dead letter: %s: %s shows it", id, words.Line(known.Reason), words.Shell(page.CommandName, "dead", "show", "--stream", o.Stream, id)))
	}
	out, err := answered(ctx, o.c, o.kv, id, *known)
	if err != nil {
		return err
	}
	if o.JSON {
		return cli.PrintJSON(o.s.Out, out)
	}
	_, err = fmt.Fprintln(fullText(o.s.Out, o.Raw), *out.Reply)
	return err
}

// at finds the last message without an id that was at a place, which is what a program knows
// that published it. Only its decision says when that was stored, so that all are read.
func (o *reading) at(ctx context.Context, place string) (id string, known *settle.Record, err error) {
	found, err := o.last(ctx, "*", 0)
	if err != nil {
		return place, nil, err
	}
	id, n := place, 0
	for _, v := range found.values {
		r, err := settle.ParseRecord(v.data)
		if err == nil && names.IsAt(o.Stream, place, r.ID) {
			id, known = r.ID, &r
			n++
		}
	}
	if n > 1 {
		o.s.Note("%d messages were at %s, since the stream was made anew: this is the last of them, %s", n, place, id)
	}
	return id, known, nil
}

// second prints the answers to one message that were not the first.
func (o *reading) second(ctx context.Context, id string) error {
	found, err := o.last(ctx, "superseded."+names.Key(id)+".*", 0)
	if err != nil {
		return err
	}
	if len(found.values) == 0 {
		return fmt.Errorf("no second answer to the message %q is kept", id)
	}
	for _, v := range found.values {
		out, err := o.read(ctx, v)
		switch {
		case err != nil:
			return err
		case o.JSON:
			err = cli.PrintJSON(o.s.Out, out)
		default:
			_, err = fmt.Fprintln(fullText(o.s.Out, o.Raw), *out.Reply)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list shows those that were settled last, and goes on with what comes if asked.
func (o *reading) list(ctx context.Context) error {
	pattern := "*"
	if o.Superseded {
		pattern = "superseded.*.*"
	}
	found, err := o.last(ctx, pattern, o.Count)
	if err != nil {
		return err
	}
	show := o.printer(found)
	for _, v := range found.values {
		if err := o.one(ctx, v, show); err != nil {
			return err
		}
	}
	if len(found.values) == 0 && !o.JSON {
		o.s.Note("nothing was settled in the stream %s", o.Stream)
	}
	if err := show(nil); err != nil || !o.Follow {
		return err
	}
	return o.follow(ctx, pattern, found, show)
}

// one shows a result. One that cannot be read is complained about.
func (o *reading) one(ctx context.Context, v value, show func(*outcome) error) error {
	out, err := o.read(ctx, v)
	if err != nil {
		if ctx.Err() == nil {
			o.s.Complain(err)
		}
		return ctx.Err()
	}
	return show(out)
}

// read reads a value of the bucket, with its text.
func (o *reading) read(ctx context.Context, v value) (*outcome, error) {
	if !v.isSecond() {
		r, err := settle.ParseRecord(v.data)
		if err != nil {
			return nil, fmt.Errorf("the key %s of the bucket %s: %w", v.key, o.kv.Bucket(), err)
		}
		return answered(ctx, o.c, o.kv, r.ID, r)
	}
	a, err := settle.ParseAnswer(v.data)
	if err != nil {
		return nil, fmt.Errorf("the key %s of the bucket %s: %w", v.key, o.kv.Bucket(), err)
	}
	text, err := replyOf(ctx, o.c, o.Stream, a)
	return &outcome{By: a.By, Detail: a.Detail, Reply: &text, Record: settle.Record{
		ID: a.ID, Agent: a.Agent, EntryID: a.EntryID, Stream: o.Stream, Again: a.Again, Outcome: settle.Superseded,
		Reason: a.Reason, Bytes: a.Bytes, Attempts: a.Attempts, SessionID: a.SessionID, At: a.At, Fields: a.Fields,
	}}, err
}

// follow shows what comes, until a signal ends it.
func (o *reading) follow(ctx context.Context, pattern string, found kept, show func(*outcome) error) error {
	seen := newShown(rememberShown)
	for _, v := range found.values {
		seen.add(v.mark())
	}
	watch, err := o.kv.Watch(ctx, pattern, jetstream.ResumeFromRevision(found.last+1), jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("watch the bucket %s: %w", o.kv.Bucket(), said(o.c, err))
	}
	defer func() { _ = watch.Stop() }() // the connection is about to end
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-watch.Updates():
			switch {
			case !open:
				return errors.Join(ctx.Err(), errors.New("the bucket is no longer watched: the server or somebody ended that: start again"))
			case e == nil: // those that were there have come
				continue
			}
			v := value{key: e.Key(), data: e.Value(), at: e.Created()}
			if !seen.add(v.mark()) {
				continue
			}
			if err := o.one(ctx, v, show); err != nil {
				return err
			}
			if err := show(nil); err != nil {
				return err
			}
		}
	}
}

// printer returns what shows a result; nil shows what is held back.
func (o *reading) printer(found kept) func(*outcome) error {
	if o.JSON {
		return func(out *outcome) error {
			if out == nil {
				return nil
			}
			return cli.PrintJSON(o.s.Out, out)
		}
	}
	d := on(o.s.Out, o.Color, found.now)
	reply := layout.Column{Title: "REPLY", Text: true, Cut: true}
	when := layout.Column{Title: "SETTLED"}
	if o.Follow { // later rows are not known yet, and an age would become wrong
		reply.Least, when.Least = 20, len("Jan _2 15:04:05")
	}
	t := layout.NewTable(
		when, layout.Column{Title: "MESSAGE", Text: true, Cut: true, Most: 24}, layout.Column{Title: "OUTCOME"},
		layout.Column{Title: "AGENT", Text: true, Cut: true, Most: 24}, layout.Column{Title: "ATTEMPT", Right: true}, reply,
	)
	return func(out *outcome) error {
		if out == nil {
			if t.Empty() {
				return nil
			}
			return d.Table(t)
		}
		at := d.when(out.At)
		if o.Follow && d.ForPeople() {
			at = words.Clock(d.now, out.At)
		}
		text := out.Reason
		if out.Reply != nil {
			text = *out.Reply
		}
		t.Add(at, words.Brief(cmp.Or(out.ID, out.EntryID)), string(out.Outcome), out.Agent, strconv.Itoa(out.Attempts), words.Brief(text))
		if t.Len() < listPart {
			return nil
		}
		return d.Table(t)
	}
}

// listPart is how many rows of a list are laid out together.
const listPart = 1000
