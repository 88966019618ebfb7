package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

type results struct {
	common
	ids        []string // replies in full, instead of the list
	count      int      // 0: all
	isFollowed bool
	superseded bool
	program.Verbatim
	color string

	// Of the list: where and how it is shown, the server's time, and the bucket's last revision.
	d    layout.Output
	t    *layout.Table
	now  time.Time
	last uint64
}

func resultsVerb() cli.Verb {
	return cli.Verb{
		Name:  "results",
		Args:  "[ID...]",
		Short: "show what was answered, or one reply in full",
		Long: `Show the messages that were settled last, one a line: when, which, by which agent,
which attempt it was, and how the reply begins. With --follow it goes on with what
comes, until a signal ends it.

With ID it prints the reply in full. A terminal is shown it without what would
change more than the text; --raw shows that as well. A message that was sent without
an id may be named by its place in the stream, as in WORK:7.

Where two agents answered the same message, the first answer counts. The others
are kept, and shown with --superseded.

With --json a line has id, outcome, agent, entry_id, attempt, at, and reply.

Exit status: 0 shown; 1 not: there is no such message, or no answer yet, and the
sentence says where it is; 3 it became a dead letter; 128+n signal n
ended it.`,
		Example: `heartbeat-nats results job-7
heartbeat-nats results -n 100 --json | jq -r .reply
heartbeat-nats results --follow`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o results
			o.begin(f)
			cli.AddCount(f, &o.count, 20, "show the last `N` (0: all)")
			cli.AddFollow(f, &o.isFollowed)
			f.BoolVar(&o.superseded, "superseded", false, "the answers that were not the first, in place of those that count")
			o.AddRaw(f)
			program.AddColor(f, &o.color)
			return o.action(f, "results", func(args []string) error {
				o.ids = args
				switch {
				case len(args) > 0 && (o.isFollowed || cli.CountGiven(f)):
					return errors.New("-n and --follow are for the list: leave ID out, or wait for a message with heartbeat-nats send --id ID --wait")
				case o.Raw && len(args) == 0:
					return errors.New("--raw is about one reply in full: name the ID")
				}
				return nil
			}, func(ctx context.Context) (err error) {
				if o.kv, err = o.openBucket(ctx, message.Bucket(o.stream)); err != nil {
					return err
				}
				if len(o.ids) > 0 {
					return forEach(o.s, o.ids, func(id string) error { return o.reply(ctx, id) })
				}
				return o.list(ctx)
			})
		},
	}
}

func (o *results) reply(ctx context.Context, id string) error {
	if o.superseded {
		return o.replySuperseded(ctx, id)
	}
	known, _, err := o.decision(ctx, id)
	if err == nil && known == nil && message.IsPlace(o.stream, id) {
		id, known, err = o.findAt(ctx, id)
	}
	switch {
	case err != nil:
		return err
	case known == nil || known.LetterState == upstream.Requeued:
		return fmt.Errorf("the message %q has no answer: heartbeat-nats send --id ID --wait waits for it, if it was sent", id)
	case known.Reason == upstream.Canceled && known.LetterState == "" && !o.json:
		return becameDead(known)
	case known.Outcome == upstream.WasDead && !o.json:
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the message %q became a dead letter: %s: %s shows it", id, words.Line(known.Reason), link.Typed(o.c.NATS, "dead show", "--stream", o.stream, id)))
	}
	out, err := o.answered(ctx, id, known)
	if err != nil {
		return err
	}
	return o.print(out)
}

func (o *results) print(out *outcome) error {
	if o.json {
		return cli.PrintJSON(o.s.Out, out)
	}
	_, err := fmt.Fprintln(o.FullText(o.s.Out), *out.Reply)
	return err
}

// findAt finds the decision about the last message without an id at a place, which is all that its publisher knows. Only
// the decision has the whole id, so findAt reads all decisions.
func (o *results) findAt(ctx context.Context, place string) (id string, known *upstream.Record, err error) {
	found, err := o.readLast(ctx, "*", 0)
	if err != nil {
		return place, nil, err
	}
	id, n := place, 0
	for _, v := range found {
		r, err := upstream.ParseRecord(v.Value())
		if err == nil && message.IsAt(o.stream, place, r.ID) {
			id, known = r.ID, r
			n++
		}
	}
	if n > 1 {
		o.s.Note("%d messages were at %s, since the stream was made anew: this is the last of them, %s", n, place, id)
	}
	return id, known, nil
}

func (o *results) replySuperseded(ctx context.Context, id string) error {
	found, err := o.readLast(ctx, "superseded."+message.Key(id)+".*", 0)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no second answer to the message %q is kept", id)
	}
	for _, v := range found {
		out, err := o.read(ctx, v)
		if err == nil {
			err = o.print(out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *results) list(ctx context.Context) error {
	pattern := "*"
	if o.superseded {
		pattern = "superseded.*.*"
	}
	found, err := o.readLast(ctx, pattern, o.count)
	if err != nil {
		return err
	}
	if len(found) == 0 && !o.json {
		o.s.Note("nothing was settled in the stream %s", o.stream)
	}
	o.d, o.t = layout.For(o.s.Out, o.color), o.table()
	if err := o.show(ctx, found...); err != nil || !o.isFollowed {
		return err
	}
	return o.follow(ctx, pattern, found)
}

// show shows results. It complains about one that cannot be read, and goes on.
func (o *results) show(ctx context.Context, values ...jetstream.KeyValueEntry) error {
	for _, v := range values {
		out, err := o.read(ctx, v)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			o.s.Complain(err)
			continue
		case o.json:
			err = cli.PrintJSON(o.s.Out, out)
		default:
			err = o.add(out)
		}
		if err != nil {
			return err
		}
	}
	if o.t.Len() == 0 {
		return nil
	}
	return o.d.Table(o.t)
}

func (o *results) read(ctx context.Context, v jetstream.KeyValueEntry) (*outcome, error) {
	if !isSuperseded(v) {
		r, err := parsed(v, upstream.ParseRecord)
		if err != nil {
			return nil, err
		}
		return o.answered(ctx, r.ID, r)
	}
	a, err := parsed(v, upstream.ParseAnswer)
	if err != nil {
		return nil, err
	}
	text, err := o.replyOf(ctx, a)
	a.Outcome = upstream.Superseded
	return &outcome{By: a.By, Detail: a.Detail, Reply: &text, Record: upstream.Record{Settled: a.Settled, Stream: o.stream}}, err
}

// follow shows new results until a signal ends it, or nobody reads them any more.
func (o *results) follow(ctx context.Context, pattern string, shown []jetstream.KeyValueEntry) error {
	// Remember the last results shown, to show a decision only once although an agent writes it again with a new state.
	seen, ring, next := map[string]bool{}, make([]string, 10_000), 0
	isNew := func(v jetstream.KeyValueEntry) bool {
		name := v.Key() + " " + v.Created().String()
		if r, err := upstream.ParseRecord(v.Value()); err == nil && !isSuperseded(v) {
			name = fmt.Sprint(v.Key(), " ", r.Outcome, " ", r.Again)
		}
		if seen[name] {
			return false
		}
		delete(seen, ring[next])
		ring[next], seen[name] = name, true
		next = (next + 1) % len(ring)
		return true
	}
	for _, v := range shown {
		isNew(v)
	}
	o.poll = time.Tick(cli.WatchPoll)
	return o.watch(ctx, o.kv, []string{pattern}, func(v jetstream.KeyValueEntry) (bool, error) {
		if v == nil || !isNew(v) { // nil follows the present values
			return false, nil
		}
		return false, o.show(ctx, v)
	}, jetstream.ResumeFromRevision(o.last+1), jetstream.IgnoreDeletes())
}

func (o *results) table() *layout.Table {
	reply := layout.Column{Title: "REPLY", Text: true, Cut: true}
	when := layout.Column{Title: "SETTLED"}
	if o.isFollowed { // later rows may need more room, and an age would become wrong
		reply.Least, when.Least = 20, len("Jan _2 15:04:05")
	}
	return layout.NewTable(
		when, layout.Column{Title: "MESSAGE", Text: true, Cut: true, Most: 24}, layout.Column{Title: "OUTCOME"},
		layout.Column{Title: "AGENT", Text: true, Cut: true, Most: 24}, layout.Column{Title: "ATTEMPT", Right: true}, reply,
	)
}

func (o *results) add(out *outcome) error {
	at := o.d.When(o.now, out.At)
	if o.isFollowed && o.d.ForPeople() {
		at = words.Clock(o.now, out.At)
	}
	text := out.Reason
	if out.Reply != nil {
		text = *out.Reply
	}
	return addRow(o.d, o.t, at, words.Brief(cmp.Or(out.ID, out.EntryID)), string(out.Outcome), out.Agent, strconv.Itoa(out.Attempts), words.Brief(text))
}

// listPart is how many rows of a list are laid out together.
const listPart = 1000

func addRow(d layout.Output, t *layout.Table, cells ...string) error {
	if t.Add(cells...); t.Len() < listPart {
		return nil
	}
	return d.Table(t)
}

func isSuperseded(e jetstream.KeyValueEntry) bool { return strings.HasPrefix(e.Key(), "superseded.") }

// readLast returns the count values that were written last, 0 for all, under keys that match a pattern, the oldest
// first. It begins near the bucket's end, since there may be many results.
func (o *results) readLast(ctx context.Context, pattern string, count int) ([]jetstream.KeyValueEntry, error) {
	bucket, err := o.openStream(ctx, "KV_"+message.Bucket(o.stream))
	if err != nil {
		return nil, err
	}
	info := bucket.CachedInfo()
	o.now, o.last = info.TimeStamp, info.State.LastSeq
	first := info.State.FirstSeq
	for window := uint64(8 * count); ; window *= 4 {
		start := first
		if count > 0 && o.last > first+window {
			start = o.last - window
		}
		values, err := o.readFrom(ctx, start, pattern)
		switch {
		case err != nil:
			return nil, err
		case count == 0:
			return values, nil
		case start == first || len(values) >= count:
			return values[max(0, len(values)-count):], nil
		}
	}
}

// readFrom returns the values from a revision on, under keys that match a pattern.
func (o *results) readFrom(ctx context.Context, start uint64, pattern string) (all []jetstream.KeyValueEntry, err error) {
	last := map[string]uint64{} // by key, which may be written again meanwhile
	err = o.watch(ctx, o.kv, []string{pattern}, func(e jetstream.KeyValueEntry) (bool, error) {
		if e == nil {
			return true, nil
		}
		last[e.Key()] = e.Revision()
		if e.Operation() == jetstream.KeyValuePut {
			all = append(all, e)
		}
		return false, nil
	}, jetstream.ResumeFromRevision(max(start, 1)))
	return slices.DeleteFunc(all, func(e jetstream.KeyValueEntry) bool { return last[e.Key()] != e.Revision() }), err
}
