package watching

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/notify"
	"heartbeat/internal/price"
	"heartbeat/internal/watching/act"
	"heartbeat/internal/watching/board"
	"heartbeat/internal/watching/finder"
	"heartbeat/internal/watching/look"
	"heartbeat/internal/watching/page"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
)

// once prints one view, and tells a person what needs one.
func once(o *page.Flags, f *finder.Finder, s cli.Streams) error {
	taken := signals.Take()
	defer taken.Stop()
	ctx, cancel := taken.Context()
	defer cancel()
	p, _ := look.New(f).Look(ctx, time.Now(), nil)
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
	if o.Notify != "" {
		err = errors.Join(err, tell(ctx, o, p, s))
	}
	if sig, _ := taken.Signal(); sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return err
}

func show(o *page.Flags, p look.Picture, s cli.Streams) error {
	if o.JSON {
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
	out := layout.For(s.Out, o.Color)
	name := board.Short
	if !out.ForPeople() {
		name = func(path string) string { return path }
	}
	t := layout.NewTable(
		layout.Column{Title: "INBOX", Text: true, Cut: true, Most: 32},
		layout.Column{Title: "WAIT", Right: true},
		layout.Column{Title: "OLDEST", Right: true},
		layout.Column{Title: "IN FLIGHT", Text: true, Cut: true, Most: 24},
		layout.Column{Title: "SINCE", Right: true},
		layout.Column{Title: "DEAD", Right: true},
		layout.Column{Title: "TODAY", Right: true},
		layout.Column{Title: "STATE"},
		layout.Column{Title: "WHY", Text: true},
	)
	for _, now := range p.Inboxes {
		flying, since := "", ""
		if d := now.InFlight; d != nil {
			flying, since = words.Name(d.ID(), d.EntryID), when(out, p.At, d.DeliveredAt)
		}
		oldest := ""
		if now.Oldest != nil {
			oldest = when(out, p.At, *now.Oldest)
		}
		t.Add(name(now.Path()), strconv.FormatInt(now.Backlog.Entries, 10), oldest, flying, since, strconv.Itoa(now.DeadLetters), price.Price{Amount: now.Today}.Cell(), string(now.State), now.Why)
	}
	if err := out.Table(t); err != nil {
		return fmt.Errorf("print the view: %w", err)
	}
	return nil
}

// when is a time for a person, who reads it now, or for a file.
func when(out layout.Output, now, at time.Time) string {
	if out.ForPeople() {
		return words.Ago(now, at)
	}
	return words.Stamp(at)
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
	State           why.State     `json:"state"`
	Why             string        `json:"why"`
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
		DeadLetters: now.DeadLetters, Answered: now.Answered, Asks: []asks{}, State: now.State, Why: now.Why, Warnings: now.Notes,
	}
	if !now.Today.IsZero() {
		spent := price.Price{Amount: now.Today, ContextPercent: -1}.Fields()
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
	if box, err := inbox.Open(now.Path(), inbox.Options{}); err == nil && now.Unreadable == nil {
		if since := notify.StillSince(box, now.Facts); !since.IsZero() {
			still := max(0, at.Sub(since).Seconds())
			s.NothingMovesFor = &still
		}
	}
	return s
}

// tell runs the command for what is to be told about each inbox.
func tell(ctx context.Context, o *page.Flags, p look.Picture, s cli.Streams) (err error) {
	if os.Geteuid() == 0 && len(p.Inboxes) > 1 {
		return tellAsOwners(ctx, o, p, s)
	}
	for _, now := range p.Inboxes {
		box, failed := cli.OpenAsOwner(now.Path(), inbox.Options{LockWait: cli.VerbLockWait})
		if failed == nil {
			var report notify.Report
			report, failed = notify.Tell(ctx, box, notify.Options{Command: o.Notify, Stall: o.StallAfter()})
			for _, told := range report.Told {
				s.Note("told about %s: %s", now.Path(), told.Text)
			}
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("tell about %s: %w", now.Path(), failed))
		}
	}
	return err
}

// tellAsOwners has a process for each inbox: root becomes the inbox's owner for good, who
// may not look at the next one.
func tellAsOwners(ctx context.Context, o *page.Flags, p look.Picture, s cli.Streams) (err error) {
	for _, now := range p.Inboxes {
		args := []string{"notify", "--inbox", now.Path(), "--notify", o.Notify}
		if o.StallAfter() > 0 {
			args = append(args, "--stall", o.StallAfter().String())
		}
		told, failed := act.Run(ctx, args)
		if told != "" {
			s.Note("about %s: %s", now.Path(), told)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("tell about %s: %w", now.Path(), failed))
		}
	}
	return err
}
