package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/watch/look"
)

// once prints one view, and tells a person what needs one.
func once(o *options, l *look.Lookout, s cli.Streams) error {
	taken := signals.Take()
	defer taken.Stop()
	ctx, cancel := taken.Context()
	defer cancel()
	p, _ := l.Look(ctx, time.Now(), nil)
	if l.Locked() {
		select {
		case <-time.After(look.LockPatience):
		case <-ctx.Done():
		}
		p, _ = l.Look(ctx, time.Now(), nil)
	}
	s.Warn(p.Notes)
	err := show(o, p, s)
	for _, why := range p.Failed {
		err = errors.Join(err, errors.New(why))
	}
	for _, now := range p.Inboxes {
		if now.Unreadable != nil {
			err = errors.Join(err, fmt.Errorf("%s: %s", now.Path(), now.Why))
		}
	}
	if o.notify != "" {
		err = errors.Join(err, tell(ctx, o, p, s))
	}
	if sig, _ := taken.Signal(); sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return err
}

func show(o *options, p look.Picture, s cli.Streams) error {
	if o.json {
		for _, now := range p.Inboxes {
			if err := cli.PrintJSON(s.Out, shownOf(now, p.At)); err != nil {
				return fmt.Errorf("print the view: %w", err)
			}
		}
		return nil
	}
	if len(p.Inboxes) == 0 {
		s.Note("no inbox was found")
		return nil
	}
	out := layout.For(s.Out, o.color)
	name := names(p)
	if !out.ForPeople() {
		name = func(path string) string { return path }
	}
	t := inboxTable(p, name, func(at time.Time) string { return out.When(p.At, at) }, true)
	if err := out.Table(t); err != nil {
		return fmt.Errorf("print the view: %w", err)
	}
	return nil
}

// shown is an inbox as --json prints it.
type shown struct {
	Inbox       string     `json:"inbox"`
	Queued      int64      `json:"queued"`
	QueuedBytes int64      `json:"queued_bytes"`
	OldestAt    *time.Time `json:"oldest_at"`
	Scheduled   int        `json:"scheduled"`
	NextDue     *time.Time `json:"next_due,omitempty"`
	InFlight    *flying    `json:"in_flight"`
	DeadLetters int        `json:"dead_letters"`
	Answered    int64      `json:"answered"`
	// Today is what was spent since midnight, null if nothing was.
	Today           *price.Fields `json:"today"`
	Asks            []asks        `json:"asks"`
	State           see.State     `json:"state"`
	Why             string        `json:"why"`
	Troubles        []see.Trouble `json:"troubles,omitempty"`
	NothingMovesFor *float64      `json:"nothing_moves_for_seconds"`
	Warnings        []string      `json:"warnings,omitempty"`
}

type flying struct {
	ID          string    `json:"id,omitempty"`
	EntryID     string    `json:"entry_id"`
	DeliveredAt time.Time `json:"delivered_at"`
	AgeSeconds  float64   `json:"age_seconds"`
	Attempt     int       `json:"attempt"`
	SessionID   string    `json:"session_id,omitempty"`
}

// asks is a question for a person: of a session, or of a run, which has an effect.
type asks struct {
	SessionID string    `json:"session_id,omitempty"`
	Run       string    `json:"run,omitempty"`
	Effect    string    `json:"effect,omitempty"`
	Text      string    `json:"text"`
	Since     time.Time `json:"since"`
}

func shownOf(now look.Inbox, at time.Time) shown {
	s := shown{
		Inbox: now.Path(), Queued: now.Backlog.Entries, QueuedBytes: now.Backlog.Bytes, OldestAt: now.Oldest, Scheduled: now.Scheduled.Count,
		DeadLetters: now.Letters.All(), Answered: now.Answered, Asks: []asks{}, State: now.State, Why: now.Why, Troubles: now.Troubles, Warnings: now.Notes,
	}
	if !now.Today.IsZero() {
		spent := price.Price{Amount: now.Today}.Fields()
		s.Today = &spent
	}
	if due := now.NextDue(); !due.IsZero() {
		s.NextDue = &due
	}
	if d := now.InFlight; d != nil {
		s.InFlight = &flying{d.ID(), d.EntryID, d.DeliveredAt, at.Sub(d.DeliveredAt).Seconds(), d.Attempt, d.SessionID}
	}
	for _, q := range now.Held {
		s.Asks = append(s.Asks, asks{Run: q.Run, Effect: q.Effect, Text: q.Question, Since: q.Since})
	}
	if session := now.Asking(); session != nil {
		s.Asks = append(s.Asks, asks{SessionID: session.ID, Text: session.Asks.String(), Since: session.Asks.At})
	}
	if since := now.Still.Since; !since.IsZero() {
		still := max(0, at.Sub(since).Seconds())
		s.NothingMovesFor = &still
	}
	return s
}

// tell runs the command for what is to be told about each inbox.
func tell(ctx context.Context, o *options, p look.Picture, s cli.Streams) (err error) {
	for _, now := range p.Inboxes {
		args := []string{"notify", "--inbox", now.Path(), "--notify", o.notify}
		if o.stall > 0 {
			args = append(args, "--stall", time.Duration(o.stall).String())
		}
		told, failed := runVerb(ctx, o.verbs, now.Path(), args)
		for line := range strings.Lines(told) {
			_, text, _ := strings.Cut(line, "\t") // the kind comes first
			s.Note("told about %s: %s", now.Path(), strings.TrimSpace(text))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("tell about %s: %w", now.Path(), failed))
		}
	}
	return err
}
