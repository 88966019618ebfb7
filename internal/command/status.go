package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

var statusVerb = cli.Verb{
	Name:  "status",
	Short: "show what waits, what is in flight, and why nothing moves",
	Long: `Show how many entries wait, which one is in flight and since when, how many dead
letters there are, when an entry was last answered, and in one sentence why
nothing moves, or what is being waited for. Looking changes nothing and takes no
lock, but for moving what is scheduled and due to the inbox.

Exit status: 0 shown, 1 the state cannot be read, and the sentence says why.`,
	Example: `heartbeat status
heartbeat status --json | jq -r .why
heartbeat status --watch`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o statusFlags
		o.Add(f)
		f.BoolVar(&o.watch, "watch", false, "show it anew whenever something changes, until a signal comes")
		o.addColor(f)
		return onInbox("", o.OpenRead, cli.NoArgs, func(box *inbox.Inbox, _ []string, s cli.Streams) error {
			if o.watch {
				return o.follow(box, s)
			}
			return o.once(box, s)
		})
	},
}

type statusFlags struct {
	cli.InboxFlags
	shownFlags
	watch bool
}

// status is what the verb prints with --json.
type status struct {
	Inbox string `json:"inbox"` // absolute path
	waitingEntries
	InFlight *flying `json:"in_flight"`
	totals
	holding
	people
	Today           *spentToday         `json:"today,omitempty"`
	Consumers       []taker             `json:"consumers,omitempty"`     // of results
	SelfEnqueued    *inbox.SelfEnqueued `json:"self_enqueued,omitempty"` // by agents
	State           see.State           `json:"state"`
	Why             string              `json:"why"`
	Troubles        []see.Trouble       `json:"troubles,omitempty"`        // the most urgent first
	Warnings        []string            `json:"warnings,omitempty"`        // what the next transaction will repair
	OldestAt        *time.Time          `json:"oldest_at"`                 // since when the next entry waits: sent_at, not_before, or first seen
	Asks            []asks              `json:"asks"`                      // questions for a person
	Runs            []see.Run           `json:"runs,omitempty"`            // not done, the most pressing first
	NothingMovesFor *float64            `json:"nothing_moves_for_seconds"` // as --stall counts

	answerable bool // whoever attaches can answer what the session asks
	overdue    bool // the entry due at NextDue is not in the inbox yet
}

type waitingEntries struct {
	Queued      int64      `json:"queued"` // without canceled entries and that in flight
	QueuedBytes int64      `json:"queued_bytes"`
	Scheduled   int        `json:"scheduled"`
	NextDue     *time.Time `json:"next_due,omitempty"`
}

type totals struct {
	DeadLetters        int        `json:"dead_letters"`      // open, but for those that a stream keeps
	Answered           int64      `json:"answered"`          // since the journal began
	Checked            int64      `json:"checked,omitempty"` // of these, with a check that passed
	LastAcknowledgedAt *time.Time `json:"last_acknowledged_at"`
}

type holding struct {
	Paused  *inbox.Pause   `json:"paused"`
	Backoff *inbox.Backoff `json:"backoff"`
}

// people are who works on the inbox, and what waits for a person.
type people struct {
	Session          *lastSession  `json:"session"`
	Waiter           *waiting      `json:"waiter"`
	Launcher         *see.Launcher `json:"launcher,omitempty"`
	WaitingForPerson *question     `json:"waiting_for_person"`
}

// flying is the entry in flight, as --json prints it.
type flying struct {
	ID          string          `json:"id,omitempty"`
	EntryID     string          `json:"entry_id"`
	DeliveredAt time.Time       `json:"delivered_at"`
	AgeSeconds  float64         `json:"age_seconds"`
	Attempt     int             `json:"attempt"`
	SessionID   string          `json:"session_id,omitempty"`
	Verdict     *inbox.Verdict  `json:"verdict,omitempty"`  // as in ".in-flight"
	Progress    *inbox.Progress `json:"progress,omitempty"` // as in ".in-flight"
	inbox.Cost
}

type lastSession struct {
	ID        string     `json:"id"`
	PID       int        `json:"pid,omitempty"`
	Life      string     `json:"life"` // "running", "ended", "gone" or "unknown"
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
}

// waiting is the process that waits in the background to wake its session.
type waiting struct {
	SessionID string    `json:"session_id,omitempty"`
	PID       int       `json:"pid"`
	Life      string    `json:"life"` // the same, or "stopped" by a signal
	Since     time.Time `json:"since"`
}

// question is why a session asked for a person.
type question struct {
	SessionID string    `json:"session_id"`
	Since     time.Time `json:"since"`
	Kind      string    `json:"kind"` // such as "permission_prompt", "agent_needs_input" or "elicitation_dialog"
	Text      string    `json:"text,omitempty"`
}

// asks is a question for a person, from a session, or from a run if Effect is set.
type asks struct {
	SessionID string    `json:"session_id,omitempty"`
	Run       string    `json:"run,omitempty"`
	Effect    string    `json:"effect,omitempty"`
	Text      string    `json:"text"`
	Since     time.Time `json:"since"`
}

func (o *statusFlags) once(box *inbox.Inbox, s cli.Streams) error {
	st, err := readStatus(context.Background(), box)
	text, printed := o.text(st, o.display(s.Out))
	if printed == nil {
		_, printed = io.WriteString(words.Raw(s.Out), text)
	}
	if err != nil && printed == nil && !o.JSON {
		return cli.Silent(cli.ExitError) // the row "why" has the error
	}
	return wrap("status", errors.Join(err, printed))
}

func (o *statusFlags) text(st status, d display) (string, error) {
	var b bytes.Buffer
	if o.JSON {
		if err := cli.PrintJSON(&b, st); err != nil {
			return "", err
		}
		return words.Plain(b.String()), nil
	}
	err := d.To(&b).Table(st.table(d))
	return b.String(), err
}

// follow shows the status whenever it changes. A terminal shows it in one place.
func (o *statusFlags) follow(box *inbox.Inbox, s cli.Streams) error {
	w := box.WatchAll(cli.WatchPoll)
	defer func() { _ = w.Close() }() // only read
	screen, _ := s.Out.(*words.Screen)
	last := ""
	err := follow(w, s, func() error {
		if err := box.Promote(context.Background()); err != nil {
			s.Note("what is scheduled and due is not in the inbox yet: %v", err)
		}
		st, _ := readStatus(context.Background(), box) // the status itself has the error
		shown, err := o.text(st, o.display(s.Out))
		if err != nil || screen == nil && sameButForAges(shown, last) {
			return err
		}
		last = shown
		if screen != nil {
			if err := screen.Control("\x1b[H\x1b[2J"); err != nil { // clears the screen, and begins at its top
				return err
			}
		}
		_, err = io.WriteString(words.Raw(s.Out), shown)
		return err
	})
	if errors.As(err, new(cli.EndedBy)) {
		return nil
	}
	return err
}

// sameButForAges compares outputs without ages: a file or a pipe gets no new copy just because time passed.
func sameButForAges(a, b string) bool {
	return ages.ReplaceAllString(a, "") == ages.ReplaceAllString(b, "")
}

// ages matches each "(AGE ago)", and the JSON members that are ages.
var ages = regexp.MustCompile(`\([0-9dhms ]* ago\)|"(age|nothing_moves_for)_seconds":[^,}]*`)

// readStatus returns a status, even with an error, which means that the state cannot be read.
func readStatus(ctx context.Context, box *inbox.Inbox) (status, error) {
	f := see.Look(ctx, box)
	st := status{
		Inbox: f.Inbox, Asks: []asks{},
		waitingEntries: waitingEntries{Queued: f.Backlog.Entries, QueuedBytes: f.Backlog.Bytes, Scheduled: f.Scheduled.Count},
		totals:         totals{LastAcknowledgedAt: f.Asked, Answered: f.Totals.Answered, Checked: f.Totals.Checked},
		holding:        holding{Paused: f.Paused, Backoff: shownBackoff(f.Backoff)},
	}
	if f.Head != nil {
		st.OldestAt = &f.Head.Since
	}
	if since := f.Still.Since; !since.IsZero() {
		st.NothingMovesFor = new(max(0, f.Now.Sub(since).Seconds()))
	}
	if due := f.Scheduled.Next; !due.IsZero() {
		st.NextDue, st.overdue = &due, !due.After(f.Now)
	}
	if d := f.InFlight; d != nil {
		st.InFlight = &flying{d.ID(), d.EntryID, d.DeliveredAt, max(0, f.Now.Sub(d.DeliveredAt).Seconds()), d.Attempt, d.SessionID, d.Verdict, d.Progress, inbox.Cost{}}
	}
	if f.SelfEnqueued.Count > 0 {
		st.SelfEnqueued = &f.SelfEnqueued
	}
	st.Launcher, st.Runs = f.Launcher, f.Runs
	if s := f.Current(); s != nil {
		st.Session = &lastSession{s.ID, s.PID, s.Life.String(), s.StartedAt, s.EndedAt}
		if s.EndedAt != nil {
			st.Session.Life = "ended"
		}
	}
	if w := f.Waiter; w != nil {
		st.Waiter = &waiting{w.SessionID, w.PID, w.String(), w.Since}
	}
	if s := f.Asking(); s != nil {
		st.WaitingForPerson, st.answerable = &question{s.ID, s.Asks.At, s.Asks.Kind, s.Asks.Text}, f.Answerable()
		st.Asks = append(st.Asks, asks{SessionID: s.ID, Text: s.Asks.String(), Since: s.Asks.At})
	}
	for _, r := range f.Runs {
		if r.NeedsPerson() {
			st.Asks = append(st.Asks, asks{Run: r.Run, Effect: r.Effect, Text: r.Text, Since: r.Since})
		}
	}
	st.Warnings = f.Warnings
	st.DeadLetters = f.Letters.All()
	st.State, st.Why = f.Explain()
	st.Troubles = f.Troubles()
	if f.Unreadable == nil {
		st.spent(f)
		st.takers(box, f)
	}
	return st, f.Unreadable
}

// shownBackoff leaves out the members that make sense only to this machine's clock.
func shownBackoff(b *inbox.Backoff) *inbox.Backoff {
	if b == nil {
		return nil
	}
	shown := *b
	shown.Boot, shown.SinceBoot = "", 0
	return &shown
}
