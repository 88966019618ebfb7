package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"heartbeat/internal/cli"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"heartbeat/internal/words"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/why"
)

func statusVerb() cli.Verb {
	return cli.Verb{
		Name:  "status",
		Short: "show what waits, what is in flight, and why nothing moves",
		Long: `Show how many entries wait, which one is in flight and since when, how many dead
letters there are, when an entry was last answered, and in one sentence why
nothing moves, or what is being waited for. Looking changes nothing and takes no
lock, but for moving what is scheduled and due to the inbox.

Exit status: 0 shown, 1 the state cannot be read, and the sentence says why.`,
		Example: `heartbeat status --inbox work/inbox.jsonl
heartbeat status --inbox work/inbox.jsonl --json | jq -r .why
heartbeat status --inbox work/inbox.jsonl --watch`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var i cli.InboxFlags
			var watch bool
			f := cli.NewFlags("status")
			i.Add(f)
			f.BoolVar(&watch, "watch", false, "show it anew whenever something changes, until a signal comes")
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				if watch {
					return watchStatus(&i, s)
				}
				return showStatus(&i, s)
			}
		},
	}
}

// status is what the verb prints with --json.
type status struct {
	Inbox       string `json:"inbox"`
	Queued      int64  `json:"queued"`
	QueuedBytes int64  `json:"queued_bytes"`
	Scheduled   int    `json:"scheduled"`
	// NextDue is when the next scheduled entry comes due.
	NextDue  *time.Time `json:"next_due,omitempty"`
	InFlight *flying    `json:"in_flight"`
	// DeadLetters are those that were not requeued.
	DeadLetters        int          `json:"dead_letters"`
	Answered           int64        `json:"answered"`
	LastAcknowledgedAt *time.Time   `json:"last_acknowledged_at"`
	Paused             *inbox.Pause `json:"paused"`
	// Backoff is the one that holds now.
	Backoff          *inbox.Backoff `json:"backoff"`
	Session          *lastSession   `json:"session"`
	Waiter           *waiting       `json:"waiter"`
	Launcher         *why.Launcher  `json:"launcher,omitempty"`
	WaitingForPerson *question      `json:"waiting_for_person"`
	State            why.State      `json:"state"`
	Why              string         `json:"why"`
	Warnings         []string       `json:"warnings,omitempty"`
}

// flying is the entry in flight.
type flying struct {
	ID          string    `json:"id,omitempty"`
	EntryID     string    `json:"entry_id"`
	DeliveredAt time.Time `json:"delivered_at"`
	AgeSeconds  float64   `json:"age_seconds"`
	Attempt     int       `json:"attempt"`
	SessionID   string    `json:"session_id,omitempty"`
}

// lastSession is the session that last told of itself.
type lastSession struct {
	ID        string     `json:"id"`
	PID       int        `json:"pid,omitempty"`
	Life      string     `json:"life"` // running, ended, gone, unknown
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
}

// waiting is who waits in the background to wake its session.
type waiting struct {
	SessionID string    `json:"session_id,omitempty"`
	PID       int       `json:"pid"`
	Life      string    `json:"life"` // running, gone, unknown
	Since     time.Time `json:"since"`
}

// question is what a session asked for a person for.
type question struct {
	SessionID string    `json:"session_id"`
	Since     time.Time `json:"since"`
	Kind      string    `json:"kind"`
	Text      string    `json:"text,omitempty"`
}

func showStatus(i *cli.InboxFlags, s cli.Streams) error {
	box, err := i.Look(s)
	if err != nil {
		return err
	}
	st, err := readStatus(context.Background(), box)
	if err = errors.Join(err, i.Print(s, st, st.String())); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

// watchStatus shows the status again and again: in a terminal in one place.
func watchStatus(i *cli.InboxFlags, s cli.Streams) error {
	box, err := i.Look(s)
	if err != nil {
		return err
	}
	ctx, stop := endOnSignal(context.Background())
	defer stop()
	w := box.WatchAll(cli.WatchPoll)
	defer func() { _ = w.Close() }() // nothing is lost with it
	screen, _ := s.Out.(*words.Screen)
	for last := ""; ; {
		st, _ := readStatus(ctx, box) // what is wrong is in its sentence
		var shown bytes.Buffer
		if err := i.Print(cli.Streams{Out: &shown}, st, st.String()); err != nil {
			return err
		}
		if ctx.Err() == nil && (screen != nil || !sameButForAges(shown.String(), last)) {
			last = shown.String()
			if err := showAgain(screen, s.Out, last); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.C:
		}
		if err := box.Promote(ctx); err != nil {
			s.Note("what is scheduled and due waits on: %v", err)
		}
	}
}

// sameButForAges compares what was shown with what is: a file or a pipe is not to
// fill with what only became older.
func sameButForAges(a, b string) bool { return withoutAges(a) == withoutAges(b) }

// withoutAges takes out `(AGE ago)`, and the member age_seconds. It uses no
// regular expression, since the tables for those would be set up at every turn.
func withoutAges(text string) string {
	parts := strings.Split(text, " ago)")
	for i, part := range parts[:len(parts)-1] {
		if at := strings.LastIndexByte(part, '('); at >= 0 && !strings.ContainsFunc(part[at:], unicode.IsSpace) {
			parts[i] = part[:at]
		}
	}
	before, after, _ := strings.Cut(strings.Join(parts, ""), `"age_seconds":`)
	_, after, _ = strings.Cut(after, ",")
	return before + after
}

// showAgain has a terminal start over, and anything else go on.
func showAgain(screen *words.Screen, out io.Writer, text string) error {
	if screen != nil {
		if err := screen.Control("\x1b[H\x1b[2J"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, text)
	return err
}

// readStatus also returns why the state could not be read.
func readStatus(ctx context.Context, box *inbox.Inbox) (status, error) {
	f := gather(ctx, box)
	st := status{
		Inbox: f.Inbox, Queued: f.Backlog.Entries, QueuedBytes: f.Backlog.Bytes, Scheduled: len(f.Scheduled),
		LastAcknowledgedAt: f.Asked, Paused: f.Paused, Backoff: shownBackoff(f.Backoff), Answered: f.Answered,
	}
	if due := f.NextDue(); !due.IsZero() {
		st.NextDue = &due
	}
	if d := f.InFlight; d != nil {
		st.InFlight = &flying{d.ID(), d.EntryID, d.DeliveredAt, f.Now.Sub(d.DeliveredAt).Seconds(), d.Attempt, d.SessionID}
	}
	st.consumers(f)
	letters, warnings, err := box.Letters()
	st.Warnings = append(f.Warnings, warnings...)
	if err != nil {
		st.Warnings = append(st.Warnings, err.Error())
	}
	for _, l := range letters {
		if l.RequeuedAt == nil {
			st.DeadLetters++
		}
	}
	st.State, st.Why = f.Explain()
	return st, f.Unreadable
}

func (st *status) consumers(f why.Facts) {
	st.Launcher = f.Launcher
	if s := f.Current(); s != nil {
		st.Session = &lastSession{s.ID, s.PID, s.Life.String(), s.StartedAt, s.EndedAt}
		if s.EndedAt != nil {
			st.Session.Life = "ended"
		}
	}
	if w := f.Waiter; w != nil {
		st.Waiter = &waiting{w.SessionID, w.PID, w.Life.String(), w.Since}
	}
	if s := f.Asking(); s != nil {
		st.WaitingForPerson = &question{s.ID, s.Asks.At, s.Asks.Kind, s.Asks.Text}
	}
}

// shownBackoff leaves out what only this machine's own clock understands.
func shownBackoff(b *inbox.Backoff) *inbox.Backoff {
	if b == nil {
		return nil
	}
	shown := *b
	shown.Boot, shown.SinceBoot = "", 0
	return &shown
}

// String is the status for people.
func (st status) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, words.Line(fmt.Sprintf(format, args...)))
	}
	row("inbox", "%s", st.Inbox)
	if st.State != why.Unreadable { // or else nothing of it is known
		st.rows(row)
	}
	row("why", "%s", st.Why)
	for _, warning := range st.Warnings {
		row("note", "%s", warning)
	}
	_ = w.Flush() // into a builder
	return strings.TrimSuffix(b.String(), "\n")
}

func (st status) rows(row func(name, format string, args ...any)) {
	row("queued", "%d (%d bytes)", st.Queued, st.QueuedBytes)
	if st.Scheduled > 0 {
		row("scheduled", "%d, the next at %s", st.Scheduled, words.Stamp(*st.NextDue))
	}
	if d := st.InFlight; d != nil {
		row("in flight", "%s since %s, attempt %d", words.Name(d.ID, d.EntryID), words.Stamp(d.DeliveredAt), d.Attempt)
	} else {
		row("in flight", "nothing")
	}
	row("dead letters", "%d", st.DeadLetters)
	if st.LastAcknowledgedAt != nil {
		row("answered", "%d, the last at %s", st.Answered, words.Stamp(*st.LastAcknowledgedAt))
	} else {
		row("answered", "0")
	}
	if st.Paused != nil {
		row("delivery", "%s", why.Pause(*st.Paused))
	}
	if st.Backoff != nil {
		row("delivery", "%s", why.Backoff(*st.Backoff))
	}
	if s := st.Session; s != nil {
		row("session", "%s, %s", s.ID, s.Life)
	}
	if w := st.Waiter; w != nil {
		wakes := "wakes"
		if w.Life == why.Gone.String() || w.Life == why.Rebooted.String() {
			wakes = "was to wake"
		}
		row("background", "process %d, %s, %s %s since %s", w.PID, w.Life, wakes, w.SessionID, words.Stamp(w.Since))
	}
	if l := st.Launcher; l != nil {
		row("launcher", "process %d: %s", l.PID, cmp.Or(l.Doing, "it works on the inbox"))
	}
	if q := st.WaitingForPerson; q != nil {
		row("asks", "%s since %s: %s", q.SessionID, words.Stamp(q.Since), inbox.Question{Kind: q.Kind, Text: q.Text})
	}
}
