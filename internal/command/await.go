package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/money/book"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// Outcomes of waiting for an entry.
const (
	outcomeAnswered = "answered"
	outcomeDead     = "dead-lettered"
	outcomeTimedOut = "timed out"
	outcomeEnded    = "ended" // a signal ended the waiting
	outcomeGone     = "gone"
	outcomeUnknown  = "unknown"
)

// waited is what send --wait prints with --json.
type waited struct {
	ID         string            `json:"id"`
	EntryID    string            `json:"entry_id"`
	Outcome    string            `json:"outcome"` // "answered", "dead-lettered", "timed out", "ended" by a signal, "gone", or "unknown" after another error
	Result     *inbox.Result     `json:"result,omitempty"`
	DeadLetter *inbox.DeadLetter `json:"dead_letter,omitempty"`
	Found      string            `json:"found,omitempty"` // where it is, if not answered in time
}

// price sets the price that is known now. Nobody waits for the rest of it, which `results` shows a moment later.
func (w *waited) price(box *inbox.Inbox) {
	prices := book.New(box)
	prices.Want(w.EntryID)
	if w.Result != nil {
		priced, _ := prices.Result(*w.Result, nil)
		w.Result = &priced
	}
	if w.DeadLetter != nil {
		prices.Letter(w.DeadLetter)
	}
}

// await waits for the entries in order, all within the timeout, and returns the error of the first without an answer.
func (o *sendFlags) await(box *inbox.Inbox, receipts []inbox.Receipt, s cli.Streams) error {
	ctx, stop := program.UntilSignal(time.Duration(o.timeout))
	defer stop()
	var first error
	for _, r := range receipts {
		w := waited{ID: r.ID, EntryID: r.EntryID}
		_, hide := awaited{box, &r, time.Now()}.show(ctx, s)
		outcome, err := outcomes.Await(ctx, box, r, cli.WatchPoll)
		hide()
		w.Result, w.DeadLetter = outcome.Result, outcome.DeadLetter
		w.price(box)
		ended := o.judge(box, &w, err)
		if first == nil {
			first = ended
		} else if ended != nil {
			s.Complain(ended)
		}
		if err := o.printWaited(s, w, len(receipts) > 1); err != nil {
			return err
		}
	}
	return first
}

// waitsForItself returns an error if this command runs in the turn of the entry in flight. That turn waits for the
// command, and nothing else is delivered before it ends. what would wait, and instead is what to do.
func waitsForItself(box *inbox.Inbox, what, instead string) error {
	v, err := box.View()
	if err != nil {
		return err
	}
	defer func() { _ = v.Close() }() // only read
	d := v.InFlight()
	if d == nil {
		return nil
	}
	all, err := v.Sessions()
	if err != nil || recovery.MaySpeak(os.Getpid(), d, all, false) != nil {
		return err
	}
	return fmt.Errorf("%s would wait for its own end: this runs in the turn of the entry %s, and nothing is delivered before that turn ends: %s, or add --timeout; nothing was sent", what, words.Name(d.ID(), d.EntryID), instead)
}

// judge sets the outcome, and returns an error unless it is an answer.
func (o *sendFlags) judge(box *inbox.Inbox, w *waited, err error) error {
	var by cli.EndedBy
	switch {
	case err == nil && w.Result != nil:
		w.Outcome = outcomeAnswered
		return nil
	case err == nil:
		w.Outcome = outcomeDead
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the entry %q became a dead letter: %s", w.ID, w.DeadLetter.Reason.Why(w.DeadLetter.Failure)))
	case errors.Is(err, program.ErrTimedOut):
		w.Outcome = outcomeTimedOut
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("the entry %q was not answered within %s: it %s", w.ID, words.Took(time.Duration(o.timeout)), w.stays(box)))
	case errors.As(err, &by):
		w.Outcome = outcomeEnded
		return fmt.Errorf("%w: the entry %q %s", by, w.ID, w.stays(box))
	case errors.Is(err, outcomes.ErrGone):
		w.Outcome = outcomeGone
		return fmt.Errorf("the entry %q is gone: it was dropped, its result was taken away, or the inbox was truncated or replaced", w.ID)
	}
	w.Outcome = outcomeUnknown
	return err
}

// stays describes where the entry is, and how to go on waiting for it.
func (w *waited) stays(box *inbox.Inbox) string {
	w.Found = whereIs(box, w.ID)
	return fmt.Sprintf("stays %s and may be answered yet: to go on waiting, send it again with --id %s --wait", w.Found, words.Shell(w.ID))
}

func whereIs(box *inbox.Inbox, id string) string {
	v, err := box.View()
	if err != nil {
		return inbox.FoundQueued // it was there when it was sent
	}
	defer func() { _ = v.Close() }() // only read
	where, _ := v.Find(id)
	return cmp.Or(where[id], inbox.FoundQueued)
}

func (o *sendFlags) printWaited(s cli.Streams, w waited, many bool) error {
	switch {
	case o.JSON:
		return cli.PrintJSON(s.Out, w)
	case many && w.Result != nil:
		_, err := fmt.Fprintf(s.Out, "%s\t%s\t%s\n", w.ID, w.Outcome, words.Line(firstLine(w.Result.Answer())))
		return err
	case many:
		_, err := fmt.Fprintf(s.Out, "%s\t%s\n", w.ID, w.Outcome)
		return err
	case w.Result != nil:
		_, err := fmt.Fprintln(o.FullText(s.Out), w.Result.Answer())
		return err
	}
	return nil
}

const (
	lineEvery = time.Second // how often the line at a terminal is updated
	// maxAhead bounds the bytes of a queue that each update reads. The line gives no count of a longer queue.
	maxAhead = 1 << 20
)

// awaited is what a verb waits for, shown on a line of the terminal.
type awaited struct {
	box   *inbox.Inbox
	entry *inbox.Receipt // nil for whatever comes
	began time.Time
}

// show shows what is waited for on a line of the terminal, until hide is called. Other output must go around the
// line, which is nil without a terminal.
func (a awaited) show(ctx context.Context, s cli.Streams) (line *layout.ProgressLine, hide func()) {
	if line = layout.StartLine(s.Err, ""); line == nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var updating sync.WaitGroup
	updating.Go(func() { a.update(ctx, line) })
	return line, func() {
		cancel()
		updating.Wait()
		line.Stop()
	}
}

func (a awaited) update(ctx context.Context, line *layout.ProgressLine) {
	news := a.box.WatchAll(cli.WatchPoll)
	defer func() { _ = news.Close() }() // only read
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	for {
		line.Say(a.describe(ctx))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-news.C:
		}
	}
}

// describe returns what is waited for, and since when, or "" if the inbox cannot be read: the verb reports that.
func (a awaited) describe(ctx context.Context) (what string, since time.Time) {
	v, err := a.box.View()
	if err != nil {
		return "", a.began
	}
	defer func() { _ = v.Close() }() // only read
	d := v.InFlight()
	switch {
	case d != nil && (a.entry == nil || d.EntryID == a.entry.EntryID):
		what, since = a.flying(d), d.DeliveredAt
	case a.entry == nil:
		what, since = "nothing is in flight", a.began
	case a.entry.NotBefore != nil && a.entry.NotBefore.After(time.Now()):
		return words.Name(a.entry.ID, a.entry.EntryID) + " is scheduled for " + words.Stamp(*a.entry.NotBefore), a.began
	default:
		return words.Name(a.entry.ID, a.entry.EntryID) + " is queued" + a.behind(ctx, v, d), a.began
	}
	if a.entry == nil {
		if n, err := v.Ahead(ctx, v.Size(), maxAhead); err == nil && n >= 0 {
			what += fmt.Sprintf(", %d queued", n)
		}
	}
	return what, since
}

func (a awaited) flying(d *inbox.Delivery) string {
	entry, session := words.Name(d.ID(), d.EntryID), "its session"
	if d.SessionID != "" {
		session = "session " + words.Short(d.SessionID)
	}
	what := fmt.Sprintf("%s answers %s", session, entry)
	if e := recovery.EvidenceOf(d); e.Woken && !e.Prompted {
		what = fmt.Sprintf("%s is delivered to %s", entry, session)
	}
	if now, err := book.Spending(a.box, nil); err == nil {
		if p, known := now.OfDelivery(d); known && p.String() != "" {
			what += ", " + p.String() + " so far"
		}
	}
	return what
}

func (a awaited) behind(ctx context.Context, v *inbox.View, flying *inbox.Delivery) string {
	if a.entry.Start >= a.entry.End || a.entry.Start < v.Cursor() {
		return "" // its place is unknown
	}
	n, err := v.Ahead(ctx, a.entry.Start, maxAhead)
	if err != nil || n < 0 {
		return ""
	}
	if flying != nil {
		n++
	}
	if n == 0 {
		return ", and comes next"
	}
	return fmt.Sprintf(" behind %d", n)
}
