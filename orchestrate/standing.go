package orchestrate

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/run"
)

// Standing is the state of a run and of its entries in the inbox.
type Standing struct {
	Run        string         `json:"run"`
	Dir        string         `json:"run_dir"`
	Process    string         `json:"process"`
	Status     run.Status     `json:"status"` // as above
	Failure    string         `json:"failure,omitempty"`
	Pending    map[string]int `json:"pending"`           // effects without a result, by kind
	Held       []Held         `json:"held,omitempty"`    // as above
	Entries    []Waiting      `json:"entries,omitempty"` // of this inbox
	Iterations int            `json:"iterations"`
	Guard      string         `json:"guard,omitempty"`        // why the last step stopped it
	OutOfSteps bool           `json:"out_of_steps,omitempty"` // as above
	Stuck      string         `json:"stuck,omitempty"`        // why the last step failed
	NotBefore  *time.Time     `json:"not_before,omitempty"`
	Done       bool           `json:"done"` // as above
}

// Waiting is an entry that the run waits for.
type Waiting struct {
	ID     string `json:"id"`
	Effect string `json:"effect,omitempty"`
	Where  string `json:"where"` // "scheduled", "queued", "in flight", "answered", "handed over", "dead-lettered" or "gone"
}

// Standing reads the state of the run. It takes no step, changes nothing and does not call babysitter.
func (b *Bridge) Standing() (s Standing, err error) {
	l, err := b.loadLedger()
	if err != nil {
		return s, err
	}
	st, err := b.Run.State()
	if err != nil {
		return s, err
	}
	s = Standing{
		Run: b.Run.ID(), Dir: b.Run.Dir(), Process: b.Run.ProcessID(), Status: st.Status, Pending: map[string]int{},
		Iterations: l.Steps, Guard: l.Guard, OutOfSteps: l.outOfSteps(), Stuck: l.Stuck.Why, Done: l.Done,
	}
	if st.Status == run.Failed && st.Failure != nil {
		s.Failure = st.Failure.Name + ": " + st.Failure.Message
	}
	ids := []string{l.Failure.Entry, l.Finish.Entry}
	for _, e := range st.Pending {
		ids = append(ids, l.Effects[e.ID].Entry)
	}
	entries, err := b.entryStates(slices.DeleteFunc(ids, func(id string) bool { return id == "" })...)
	if err != nil {
		return s, err
	}
	for _, e := range st.Pending {
		if s.Pending[e.Kind]++; l.dropped(st, e.ID) {
			continue
		}
		if err := b.addEffect(&s, l, e, entries); err != nil {
			return s, err
		}
	}
	s.addEntry(l.Failure.Entry, "", entries)
	if !l.Done {
		s.addEntry(l.Finish.Entry, "", entries)
	}
	return s, nil
}

func (b *Bridge) addEffect(s *Standing, l *ledger, e run.Effect, entries map[string]entryState) error {
	a := l.Effects[e.ID]
	switch {
	case a.Over != "" && !entries[a.Entry].waits():
		s.Held = append(s.Held, Held{Effect: e.ID, Label: e.Label, Reason: a.Over, Since: a.Since})
	case a.Entry != "":
		if kept, _ := b.answerOf(e.ID, l.Lock); kept != nil && !entries[a.Entry].waits() { // the step tells of an error
			entries[a.Entry] = entryState{where: "handed over"}
		}
		s.addEntry(a.Entry, e.ID, entries)
	case e.Kind == kindBreakpoint:
		h, err := b.heldBy(e)
		if err != nil {
			return err
		}
		s.Held = append(s.Held, h)
	case e.Kind == kindSleep:
		if until := l.wakes(e.ID); !until.IsZero() && (s.NotBefore == nil || until.Before(*s.NotBefore)) {
			s.NotBefore = &until
		}
	}
	return nil
}

func (s *Standing) addEntry(id, effect string, entries map[string]entryState) {
	if id == "" {
		return
	}
	w := Waiting{ID: id, Effect: effect, Where: cmp.Or(entries[id].where, "gone")}
	if entries[id].dead != "" {
		w.Where = "dead-lettered"
	}
	s.Entries = append(s.Entries, w)
}

// Counted returns how many effects of each kind there are: "2 agent, 1 sleep".
func Counted(kinds map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprintf("%d %s", kinds[kind], words.Brief(kind)))
	}
	return strings.Join(all, ", ")
}

// WaitState is whether a run goes on.
type WaitState string

// The states, the most pressing first.
const (
	Stuck   WaitState = "stuck" // it can take no step
	Left    WaitState = "left"  // it can, and takes none by itself
	Asking  WaitState = "asking"
	Resting WaitState = "resting" // until a person accepts its code
	AtWork  WaitState = "at work" // it waits for entries or commands, or its next step is due
	Asleep  WaitState = "asleep"
)

// Wait is what a run waits for, or why it goes no further. A question has its effect, and a sleep its end.
type Wait struct {
	State  WaitState  `json:"state"`
	Effect string     `json:"effect,omitempty"`
	Text   string     `json:"text"`
	Since  time.Time  `json:"since,omitzero"`
	Until  *time.Time `json:"until,omitempty"`
}

// Waits returns what a run waits for: nothing if it is done, and else each question, and whatever it waits for besides.
// idle: no entry of the inbox waits or is in flight.
func (b *Bridge) Waits(idle bool) (all []Wait) {
	l, err := b.loadLedger()
	if err != nil {
		return []Wait{{State: Stuck, Text: err.Error()}}
	}
	st, unread := b.Run.State()
	switch {
	case l.Done:
		return nil
	case l.Stuck.Why != "":
		all = []Wait{{State: Stuck, Text: l.Stuck.Why, Since: l.Stuck.Since}}
	case unread != nil:
		all = []Wait{{State: Stuck, Text: unread.Error()}}
	case l.Rests.Why != "": // which is a guard, too
		all = []Wait{{State: Resting, Text: l.Rests.Why, Since: l.Rests.Since}}
	case l.Guard != "":
		all = []Wait{{State: Left, Text: cli.GuardHint(l.Guard, l.outOfSteps())}}
	default:
		all = b.goesOn(l, st, idle)
	}
	questions, err := b.questions(l, st)
	if err != nil {
		all = append(all, Wait{State: Stuck, Text: err.Error()})
	}
	for _, q := range questions {
		all = append(all, Wait{State: Asking, Effect: q.Effect, Text: q.Question, Since: q.Since})
	}
	return all
}

// goesOn returns what a run that can take steps waits for besides a person's answers: nil for nothing.
func (b *Bridge) goesOn(l *ledger, st run.State, idle bool) []Wait {
	if why, since := b.left(l, st, idle); why != "" {
		return []Wait{{State: Left, Text: why, Since: since}}
	}
	w, kinds, due, wakes := Wait{State: AtWork}, map[string]int{}, st.Status == run.Created, time.Time{}
	for _, e := range st.Pending {
		until := l.wakes(e.ID)
		switch {
		case e.Kind == kindBreakpoint, l.dropped(st, e.ID):
			continue
		case e.Kind == kindSleep && !until.After(time.Now()):
			due = true
			continue
		case e.Kind == kindSleep && (wakes.IsZero() || until.Before(wakes)):
			wakes = until
		}
		if kinds[e.Kind]++; w.Since.IsZero() || e.RequestedAt.Before(w.Since) {
			w.Since = e.RequestedAt
		}
	}
	switch {
	case due:
		w.Text = "its next step is due"
	case !wakes.IsZero() && len(kinds) == 1:
		w.State, w.Until = Asleep, &wakes
	case len(kinds) > 0:
		w.Text = "it waits for " + Counted(kinds)
	case st.Status == run.Completed:
		w.Text = "it is completed, and has yet to give its proof"
	case st.Status == run.Failed:
		w.Text = "it has failed, and goes on once the error was looked into"
	default:
		return nil
	}
	if i, err := disk.StatName(filepath.Join(b.Run.Dir(), "journal")); err == nil && w.Since.IsZero() {
		w.Since = time.Unix(0, i.Mtime)
	}
	return []Wait{w}
}

// left returns why a run that can take steps needs a person: no result of an effect will come, or nobody takes a step.
func (b *Bridge) left(l *ledger, st run.State, idle bool) (why string, since time.Time) {
	var entries, moves []string
	for _, w := range l.Wants {
		if st.Effect(w.Effect) != run.Requested {
			continue
		}
		a := l.Effects[w.Effect]
		if a.Over != "" && !b.handedOver(w.Effect, false) && !b.waits(a.Entry) {
			requeue := words.Shell("heartbeat", "dead-letter", "requeue", "--inbox", b.Box.Path(), a.Entry)
			return "effect " + w.Effect + ": " + a.Over + ": heartbeat result hands its result over, and `" + requeue + "` asks again", a.Since
		}
		idle = idle && w.Kind != kindBreakpoint
		entries, moves = append(entries, a.Entry), append(moves, answerPath(b.Box, b.Run, w.Effect))
		if w.Until.After(since) {
			since = w.Until
		}
	}
	for _, path := range append(moves, filepath.Join(b.Run.Dir(), "journal"), ledgerPath(b.Box, b.Run), filepath.Join(b.Box.Dir(), inbox.JournalName)) {
		if i, err := disk.StatName(path); err == nil && i.Mtime > since.UnixNano() {
			since = time.Unix(0, i.Mtime)
		}
	}
	if !idle || time.Since(since) <= untaken || Stepping(b.Box, []string{b.Run.Dir()}) || b.waits(append(entries, l.Finish.Entry, l.Failure.Entry)...) {
		return "", since
	}
	once := words.Shell("heartbeat", "orchestrate", "--once", "--inbox", b.Box.Path(), "--run", b.Run.Dir())
	return "it could go on, and nobody takes its steps: `" + once + "` takes one, and --run has the launcher or the hook do so", since
}

// untaken is how long a run may wait for a step while nothing else is done: a hook or launcher takes one at once.
const untaken = time.Minute
