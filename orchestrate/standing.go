package orchestrate

import (
	"cmp"
	"slices"
	"time"

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
		for _, w := range l.Wants {
			if w.Effect == e.ID && (s.NotBefore == nil || w.Until.Before(*s.NotBefore)) {
				s.NotBefore = &w.Until
			}
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
