package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/history"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

type resultsFlags struct {
	cli.InboxFlags
	shownFlags
	count  int
	follow bool
	program.Verbatim
	exec execFlags
}

var resultsVerb = cli.Verb{
	Name:  "results",
	Args:  "[ENTRY...]",
	IDs:   entryIDs,
	Short: "show what was answered, or one reply in full",
	Long: `Show the entries that were answered last, one a line: when, which, how long it
took, which attempt it was, and how the prompt and the reply begin. With --follow
it continues with new results, also when the file is rotated or trimmed, until a
signal ends it.

With ENTRY (its id, its entry_id, or a beginning of one of them that is unique,
four characters at least) it prints the reply in full: the last one, if there
are several. A terminal gets it without control sequences; --raw shows those as well.

An entry's cost is what is known now, over all its attempts. "+" means that it cost
more: nobody knows the price of a model that was used. The last request may be counted a
moment after the answer: with --follow a line waits up to three seconds for that. With
--json it prints lines of .results.jsonl as they stand there, with the price that is known
now.

With --exec each result and each dead letter is handed to a command, in the order in
which they were committed. After status 0 the next one follows; after any other status
the same one is tried again, after a second and then at longer intervals. How far the
consumer has come is kept under the name of --as: after a kill the one in hand is handed
over once more, with the same HEARTBEAT_KEY. Neither rotation nor compact loses what was
not handed over. --forget removes a name.

Exit status: 0 shown, or handed over; 1 not: there is no such entry, or no answer yet,
and the sentence says where it is, or the command failed for --patience; 3 it
became a dead letter; 128+n signal n ended it.`,
	Example: `heartbeat results job-7
heartbeat results -n 100 --json | jq -r .reply
heartbeat results --follow
heartbeat results --follow --exec '/opt/heartbeat/results/mail.sh me@example.com' --as mail`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o resultsFlags
		o.Add(f)
		cli.AddCount(f, &o.count, 20, "show the last `N` (0: all)")
		cli.AddFollow(f, &o.follow)
		o.AddRaw(f)
		o.addColor(f)
		o.exec.add(f)
		consume := onInbox("", changing(&o.InboxFlags), cli.NoArgs, func(box *inbox.Inbox, _ []string, s cli.Streams) error { return o.exec.run(box, &o, s) })
		show := onInbox("", outcomesOf(&o.InboxFlags), func(args []string) error {
			switch {
			case len(args) > 0 && (o.follow || cli.CountGiven(f)):
				return errors.New("-n and --follow are for the list: leave ENTRY out, or wait for an entry with heartbeat send --id ID --wait")
			case o.Raw && len(args) == 0:
				return errors.New("--raw is about one reply in full: name the ENTRY")
			}
			return nil
		}, o.run)
		return func(args []string, s cli.Streams) error {
			if consumes, err := o.exec.consumes(f, len(args) > 0 || cli.CountGiven(f) || o.JSON || o.Raw); err != nil {
				return cli.Usage(err)
			} else if consumes {
				return consume(args, s)
			}
			return show(args, s)
		}
	},
}

func (o *resultsFlags) run(box *inbox.Inbox, entries []string, s cli.Streams) error {
	if len(entries) == 0 {
		return o.list(box, s)
	}
	var first error
	for _, entry := range entries {
		err := o.reply(box, entry, s)
		if first == nil {
			first = err
		} else if err != nil {
			s.Complain(err)
		}
	}
	return first
}

// outcomesOf opens the inbox for reading, and notes if its files lack what the last commit brought.
func outcomesOf(i *cli.InboxFlags) opener {
	return func(s cli.Streams) (*inbox.Inbox, error) {
		box, err := i.OpenRead(s)
		if err != nil {
			return nil, err
		}
		if v, err := box.SettledView(); err == nil {
			if v.Settling() && box.Lock() == 0 {
				s.Note("what the last commit brought is missing here: a kill or a full disk kept it from the files beside %s, and the next hook or heartbeat recover writes it there", box.Path())
			}
			_ = v.Close() // only read
		}
		return box, nil
	}
}

func (o *resultsFlags) list(box *inbox.Inbox, s cli.Streams) (err error) {
	news := box.WatchOutcomes(cli.WatchPoll)
	defer func() { _ = news.Close() }() // only read
	contested, err := history.Contested(box)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	shown := o.answers(box, s, contested)
	there := false
	each := shown.print // one by one: all of them may be many
	if o.count > 0 {
		each = shown.add
	}
	read, err := history.Results(box).Last(o.count, func(r inbox.Result, line []byte) {
		there = true
		each(r, line)
	})
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	defer func() { err = errors.Join(err, read.Close()) }()
	s.Warn(read.Notes())
	if !there {
		noteNothing(&o.InboxFlags, s, "was answered", box)
	}
	if err := shown.show(shown.Rest()); err != nil || !o.follow {
		return err
	}
	defer func() { err = errors.Join(err, shown.show(shown.Rest())) }()
	return follow(news, s, func() error {
		_, err := read.Next(shown.add)
		s.Warn(read.Notes())
		return errors.Join(err, shown.show(shown.Ready(time.Now())))
	})
}

// answers shows results once they have their price, each as a line of JSON, or as a row.
type answers struct {
	*book.Queue[answer] // those that wait for a price
	cli.Streams
	prices    *book.Book
	contested map[string]string // by entry_id
	follows   bool
	lines     *bufio.Writer // with --json
	rows      *list         // otherwise
}

type answer struct {
	inbox.Result
	line []byte
}

func (o *resultsFlags) answers(box *inbox.Inbox, s cli.Streams, contested map[string]string) *answers {
	a := &answers{Streams: s, prices: book.New(box), contested: contested, follows: o.follow}
	a.Queue = book.QueueOf(a.prices, func(r answer) (string, int64) { return r.EntryID, r.FirstSeq })
	if o.JSON {
		a.lines = bufio.NewWriter(s.Out)
		return a
	}
	text := layout.Column{Text: true, Cut: true}
	when, cost := layout.Column{Title: "ANSWERED"}, costColumn()
	if o.follow { // later rows are unknown, and an age would become wrong
		text.Least, when.Least, cost.Least = 20, len(time.Stamp), len("12.34+")
	}
	prompt, reply := text, text
	prompt.Title, reply.Title = "PROMPT", "REPLY"
	d := o.display(s.Out)
	columns := []layout.Column{
		when, {Title: "ENTRY", Text: true, Cut: true, Most: 24}, {Title: "TOOK"}, {Title: "ATTEMPT", Right: true, IfAny: true}, prompt, reply,
	}
	if d.ForPeople() { // programs count columns, and get it with --json
		columns = slices.Insert(columns, 4, layout.Column{Title: "CHECK", IfAny: true})
	}
	a.rows = d.list(costlyOrder(d, columns, cost)...)
	return a
}

func (a *answers) add(r inbox.Result, line []byte) {
	if a.lines != nil {
		line = bytes.Clone(line)
	}
	a.Add(time.Now(), answer{r, line})
}

// show prints answers, and returns the first error so far.
func (a *answers) show(all []answer) error {
	for _, r := range all {
		a.print(r.Result, r.line)
	}
	a.Warn(a.prices.Notes())
	if a.lines != nil {
		return a.lines.Flush()
	}
	return a.rows.end()
}

func (a *answers) print(r inbox.Result, line []byte) {
	objection := a.contested[r.EntryID]
	if a.lines != nil {
		_, line = a.prices.Result(r, line)
		if objection != "" {
			line = withObjection(line, objection)
		}
		_, _ = fmt.Fprintf(a.lines, "%s\n", line) // Flush returns the error
		return
	}
	r, _ = a.prices.Result(r, nil)
	l, reply := a.rows, r.Answer()
	if objection != "" {
		reply = "contested: " + reply
	}
	when, attempt, checked := l.when(r.AcknowledgedAt), strconv.Itoa(r.Attempt), ""
	if a.follows && l.ForPeople() {
		when = words.Clock(l.now, r.AcknowledgedAt)
	}
	if r.Attempt <= 1 && l.ForPeople() {
		attempt = ""
	}
	if r.Check != nil {
		checked = string(r.Check.Status)
	}
	cells := []string{when, words.Name(r.ID, r.EntryID), words.Took(r.AcknowledgedAt.Sub(r.DeliveredAt)), attempt, words.Brief(r.Prompt), words.Brief(reply)}
	if l.ForPeople() {
		cells = slices.Insert(cells, 4, checked)
	}
	l.row(costlyOrder(l.display, cells, price.Of(r.Cost).Cell())...)
}

// withObjection adds another hook's objection to a result's line. A line that cannot be parsed stays as it is.
func withObjection(line []byte, objection string) []byte {
	m, err := flat.Parse(line)
	if err != nil {
		return line
	}
	var o flat.Object
	m.Without([]string{"contested"}, o.Raw)
	o.String("contested", objection)
	return o.End()
}

// follow calls update whenever something may have changed, until a signal comes or nobody reads s.Out any more.
func follow(news *inbox.Watcher, s cli.Streams, update func() error) error {
	ctx, cancel := program.UntilSignal(0)
	defer cancel()
	for {
		if err := errors.Join(update(), s.ReaderGone()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-news.C:
		}
	}
}

// costColumn returns a column for cells of [price.Price.Cell].
func costColumn() layout.Column {
	return layout.Column{Title: "COST", Right: true, IfAny: true, Late: true}
}

// costlyOrder puts a cost before the last two columns, which people read last, and for programs, which count, last.
func costlyOrder[T any](d display, columns []T, cost T) []T {
	if !d.ForPeople() {
		return append(columns, cost)
	}
	return slices.Insert(columns, len(columns)-2, cost)
}

func (o *resultsFlags) reply(box *inbox.Inbox, entry string, s cli.Streams) error {
	f, err := history.Find(box, entry)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	s.Warn(f.Notes)
	objection := ""
	for _, e := range f.Events {
		if e.Event == string(inbox.EventContested) {
			objection = e.Reason
		}
	}
	if objection != "" && !o.JSON {
		s.Note("the reply is contested: another Stop hook had the turn go on after the entry was settled: %s", objection)
	}
	switch {
	case f.Result != nil && f.Letter == nil && o.JSON:
		prices := book.New(box)
		prices.Want(f.EntryID)
		_, line := prices.Result(f.Answered, f.Result)
		if objection != "" {
			line = withObjection(line, objection)
		}
		s.Warn(prices.Notes())
		_, err = fmt.Fprintf(s.Out, "%s\n", line)
		return err
	case f.Result != nil && f.Letter == nil:
		_, err = fmt.Fprintln(o.FullText(s.Out), f.Answered.Answer())
		return err
	case f.Where == inbox.FoundScheduled:
		return fmt.Errorf("results: the entry %q is scheduled, and was not answered yet: heartbeat log %s shows its time", f.Name(), words.Shell(f.Name()))
	case f.Where != "":
		return fmt.Errorf("results: the entry %q is %s, and was not answered yet: heartbeat send --id ID --wait waits for it", f.Name(), f.Where)
	case f.Letter != nil:
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the entry %q became a dead letter: %s", f.Name(), f.Letter.Reason.Why(f.Letter.Failure)))
	}
	last := f.Events[len(f.Events)-1]
	return fmt.Errorf("results: the entry %q has no reply: its last event is %q", f.Name(), last)
}
