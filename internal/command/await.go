package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/money/book"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
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
	ID      string `json:"id"`
	EntryID string `json:"entry_id"`
	Outcome string `json:"outcome"`
	// Result or DeadLetter is the line that tells the outcome.
	Result     *inbox.Result     `json:"result,omitempty"`
	DeadLetter *inbox.DeadLetter `json:"dead_letter,omitempty"`
	// Found is where the entry is if it was not answered in time.
	Found string `json:"found,omitempty"`
}

// price sets the price that is known now. Nobody waits for the rest of it, which `results` shows a moment later.
func (w *waited) price(box *inbox.Inbox) {
	prices := book.Of(box)
	prices.Want(w.EntryID)
	if w.Result != nil {
		priced, _ := prices.Result(*w.Result, nil)
		w.Result = &priced
	}
	if w.DeadLetter != nil {
		prices.Letter(w.DeadLetter)
	}
}

var errTimedOut = errors.New("the time is over")

// await waits for the entries in order, all within the timeout. It returns the error of the first that was not
// answered.
func (o *sendFlags) await(box *inbox.Inbox, receipts []inbox.Receipt, s cli.Streams) error {
	ctx, stop := o.patience()
	defer stop()
	var first error
	for _, r := range receipts {
		w := waited{ID: r.ID, EntryID: r.EntryID}
		outcome, err := awaitOne(ctx, box, r, s)
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

// patience is a context that a signal and --timeout end.
func (o *sendFlags) patience() (context.Context, context.CancelFunc) {
	ctx, cancel := endOnSignal(context.Background())
	if o.timeout <= 0 {
		return ctx, cancel
	}
	ctx, stop := context.WithTimeoutCause(ctx, time.Duration(o.timeout), errTimedOut)
	return ctx, func() { stop(); cancel() }
}

// awaitOne waits for one entry, and shows a person at a terminal what it waits for.
func awaitOne(ctx context.Context, box *inbox.Inbox, r inbox.Receipt, s cli.Streams) (inbox.Outcome, error) {
	defer showWait(ctx, box, r, s)()
	return box.Await(ctx, r, cli.WatchPoll)
}

// showWait shows a person at a terminal what is waited for, until stop is called. Nobody else may write there
// meanwhile.
func showWait(ctx context.Context, box *inbox.Inbox, r inbox.Receipt, s cli.Streams) (stop func()) {
	if layout.Terminal(s.Err) == nil {
		return func() {}
	}
	line, clear := awaited{box, &r, time.Now()}.shown(ctx, s)
	s.Err = line.Around(s.Err)
	told := inBackground(ctx, func(ctx context.Context) {
		tick := time.NewTicker(whyEvery)
		defer tick.Stop()
		tellWhy(ctx, tick.C, box, s.Note)
	})
	return func() {
		told()
		clear()
	}
}

// whyEvery is how often a person who waits at a terminal is told why.
const whyEvery = 30 * time.Second

// tellWhy says at each tick what the entries wait for.
func tellWhy(ctx context.Context, tick <-chan time.Time, box *inbox.Inbox, say func(format string, args ...any)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		_, sentence := see.Look(ctx, box).Explain()
		if ctx.Err() == nil {
			say("still waiting: %s", sentence)
		}
	}
}

// endOnSignal returns a context that a signal cancels. A signal after the cancel, while the command ends, does not
// change the exit status. A second signal kills the command.
func endOnSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		got := <-signals
		signal.Stop(signals)
		cancel(cli.EndedBy{Signal: got.(syscall.Signal)})
	}()
	return ctx, func() { cancel(nil) }
}

// judge names the outcome, and returns an error unless it is an answer.
func (o *sendFlags) judge(box *inbox.Inbox, w *waited, err error) error {
	var by cli.EndedBy
	switch {
	case err == nil && w.Result != nil:
		w.Outcome = outcomeAnswered
		return nil
	case err == nil:
		w.Outcome = outcomeDead
		return cli.Status(cli.ExitDeadLettered, fmt.Errorf("the entry %q became a dead letter: %s", w.ID, reasonOf(w.DeadLetter)))
	case errors.Is(err, errTimedOut):
		w.Outcome = outcomeTimedOut
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("the entry %q was not answered within %s: it %s", w.ID, words.Took(time.Duration(o.timeout)), w.stays(box)))
	case errors.As(err, &by):
		w.Outcome = outcomeEnded
		return fmt.Errorf("%w: the entry %q %s", by, w.ID, w.stays(box))
	case errors.Is(err, inbox.ErrGone):
		w.Outcome = outcomeGone
		return fmt.Errorf("the entry %q is gone: it was dropped, its result was taken away, or the inbox was truncated or replaced", w.ID)
	}
	w.Outcome = outcomeUnknown
	return err
}

// stays says where the entry is, and how to go on waiting for it.
func (w *waited) stays(box *inbox.Inbox) string {
	w.Found = whereIs(box, w.ID)
	return fmt.Sprintf("stays %s and may be answered yet: to go on waiting, send it again with --id %s --wait", w.Found, words.Shell(w.ID))
}

// reasonOf is why an entry became a dead letter, in words.
func reasonOf(d *inbox.DeadLetter) string {
	if d.Failure != nil {
		return fmt.Sprintf("%s (%s)", d.Reason, d.Failure)
	}
	return string(d.Reason)
}

// whereIs returns where an entry without an outcome is.
func whereIs(box *inbox.Inbox, id string) string {
	v, err := box.View()
	if err != nil {
		return inbox.FoundQueued // it was there when it was sent
	}
	defer func() { _ = v.Close() }() // only read
	where, err := v.Find(id)
	if err != nil || where == "" {
		return inbox.FoundQueued
	}
	return where
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
