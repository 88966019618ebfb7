package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/command/history"
	"heartbeat/internal/money/book"
	"heartbeat/internal/words"
)

type logFlags struct {
	cli.InboxFlags
	shownFlags
	count  int
	follow bool
	rows   *list // nil with --json
	prices *book.Book
	late   *book.Queue[history.Event] // events that wait for an answer's price
}

var logVerb = cli.Verb{
	Name:  "log",
	Args:  "[ENTRY]",
	IDs:   entryIDs,
	Short: "show what happened, or the life of one entry",
	Long: `Show what happened, one event a line, the oldest first: queued, delivered,
answered, redelivered, dead-lettered, expired, canceled, dropped, scheduled,
requeued, purged, failed, paused, backing off, resumed, replaced, and sessions
that started, ended or asked for a person. A delivery that failed by no fault of the
entry does not count as an attempt. With --follow it continues with new events until a
signal ends it; at a terminal one line shows meanwhile what it waits for.

With ENTRY (its id, its entry_id, or a beginning of one of them that is unique,
four characters at least) it shows all events of that entry.

A line that another program appended has no time: it is shown as queued, without a
time, for an ENTRY and when --follow sees it arrive.

Exit status: 0 shown; 1 not: there is no such entry, or more than one; 128+n signal
n ended it.`,
	Example: `heartbeat log job-7
heartbeat log -n 0 --json | jq -r 'select(.event == "dead-lettered") | .reason'
heartbeat log --follow`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o logFlags
		o.Add(f)
		cli.AddCount(f, &o.count, 50, "show the last `N` (0: all, as for an ENTRY)")
		cli.AddFollow(f, &o.follow)
		o.addColor(f)
		return onInbox("", outcomesOf(&o.InboxFlags), func(args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("%d entries: show one at a time", len(args))
			case len(args) == 1 && !cli.CountGiven(f):
				o.count = 0
			}
			return nil
		}, o.run)
	},
}

func (o *logFlags) run(box *inbox.Inbox, args []string, s cli.Streams) error {
	o.prices = book.New(box)
	o.late = book.QueueOf(o.prices, history.Event.Outcome)
	if !o.JSON {
		entry := layout.Column{Title: "ENTRY", Text: true, Cut: true, Most: 20}
		if o.follow { // later names may need the room
			entry.Least = 12
		}
		o.rows = o.display(s.Out).list(
			layout.Column{Title: "TIME", Least: len(time.Stamp)},
			layout.Column{Title: "EVENT", Least: len(history.DeadLettered), Style: func(event string) layout.Style { return eventStyles[event] }},
			entry,
			layout.Column{Title: "DETAILS", Text: true, Least: 24},
		)
	}
	return wrap("log", o.show(box, args, s))
}

// show opens the log before it looks for the entry, so that it misses no event in between.
func (o *logFlags) show(box *inbox.Inbox, entry []string, s cli.Streams) (err error) {
	news := box.WatchAll(cli.WatchPoll)
	defer func() { _ = news.Close() }() // only read
	count := o.count
	if len(entry) > 0 {
		count = 1
	}
	log, last, err := history.Read(box, count)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	wanted := func(history.Event) bool { return true }
	if len(entry) > 0 {
		found, err := history.Find(box, entry[0])
		if err != nil {
			return err
		}
		s.Warn(found.Notes)
		log.Skip(found.Events)
		last, wanted = found.Last(o.count), found.Is
	} else if s.Warn(log.Notes()); len(last) == 0 {
		noteNothing(&o.InboxFlags, s, "happened", box)
	}
	if o.count > 0 || len(entry) > 0 { // not for all events, which may be many
		o.late.Add(time.Now(), last...)
		last = o.late.Rest()
	}
	if err := o.print(s, last); err != nil || !o.follow {
		return err
	}
	return o.followEvents(box, log, news, wanted, s)
}

func (o *logFlags) followEvents(box *inbox.Inbox, log *history.Log, news *inbox.Watcher, wanted func(history.Event) bool, s cli.Streams) error {
	if layout.Terminal(s.Out) != nil { // a pipe's reader may print on this terminal, so no line then
		line, stop := awaited{box: box, began: time.Now()}.show(context.Background(), s)
		defer stop()
		if o.rows != nil {
			o.rows.Output = o.rows.To(line.Around(words.Raw(s.Out)))
		}
		s.Out, s.Err = line.Around(s.Out), line.Around(s.Err)
	}
	following := follow(news, s, func() error {
		all, err := log.Next()
		s.Warn(log.Notes())
		for _, e := range all {
			if wanted(e) {
				o.late.Add(time.Now(), e)
			}
		}
		return errors.Join(err, o.print(s, o.late.Ready(time.Now())))
	})
	return errors.Join(o.print(s, o.late.Rest()), following)
}

var eventStyles = map[string]layout.Style{history.DeadLettered: layout.Red, string(inbox.EventFailed): layout.Red, history.Answered: layout.Green}

func (o *logFlags) print(s cli.Streams, all []history.Event) error {
	for i, e := range all {
		id, first := e.Outcome()
		all[i].Cost = o.prices.Price(id, first, e.Cost).Cost()
	}
	s.Warn(o.prices.Notes())
	if o.rows != nil {
		for _, e := range all {
			cells := e.Cells()
			if o.rows.ForPeople() {
				cells = e.NarrowCells(o.rows.now)
			}
			if e.Event == history.Queued || e.Event == history.Answered {
				o.rows.AddLine(cells...) // the beginning of a text is enough
			} else {
				o.rows.Add(cells...)
			}
			o.rows.flushPart()
		}
		return o.rows.end()
	}
	return printEach(s.Out, all)
}
