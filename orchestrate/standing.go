package orchestrate

import (
	"time"

	"heartbeat/orchestrate/run"
)

// Standing is the state of a run and of its entries in the inbox.
type Standing struct {
	Run        string         `json:"run"`
	Dir        string         `json:"run_dir"`
	Process    string         `json:"process"`
	Status     run.Status     `json:"status"`
	Failure    string         `json:"failure,omitempty"`
	Pending    map[string]int `json:"pending"`           // effects without a result, by kind
	Held       []Held         `json:"held,omitempty"`    // effects for a person
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
	Where  string `json:"where"` // "scheduled", "queued", "in flight", "answered", "dead-lettered" or "gone"
}

// Standing reads the state of the run. It takes no step, changes nothing and does not call babysitter.
func (b *Bridge) Standing() (s Standing, err error) {
	l, err := b.open()
	if err != nil {
		return s, err
	}
	st, err := b.Run.State()
	if err != nil {
		return s, err
	}
	s = Standing{
		Run: b.Run.ID(), Dir: b.Run.Dir(), Process: b.Run.ProcessID(), Status: st.Status,
		Pending: map[string]int{}, Iterations: l.Steps, Guard: l.Guard, Stuck: l.Stuck.Why, Done: l.Done,
		OutOfSteps: l.outOfSteps(),
	}
	if st.Status == run.Failed && st.Failure != nil {
		s.Failure = st.Failure.Name + ": " + st.Failure.Message
	}
	for _, e := range st.Pending {
		if s.Pending[e.Kind]++; l.dropped(st, e.ID) {
			continue
		}
		if err := b.addEffect(&s, l, e); err != nil {
			return s, err
		}
	}
	if err := b.addEntry(&s, l.Failure.Entry, ""); err != nil || l.Done {
		return s, err
	}
	return s, b.addEntry(&s, l.Finish.Entry, "")
}

func (b *Bridge) addEffect(s *Standing, l *ledger, e run.Effect) error {
	a := l.Effects[e.ID]
	switch {
	case a.Over != "" && !b.waits(a.Entry):
		s.Held = append(s.Held, Held{Effect: e.ID, Label: e.Label, Reason: a.Over, Since: a.Since})
	case a.Entry != "":
		return b.addEntry(s, a.Entry, e.ID)
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

func (b *Bridge) waits(entry string) bool {
	f, err := b.stateOf(entry)
	return err == nil && f.waits()
}

func (b *Bridge) addEntry(s *Standing, id, effect string) error {
	if id == "" {
		return nil
	}
	f, err := b.stateOf(id)
	if err != nil {
		return err
	}
	w := Waiting{ID: id, Effect: effect, Where: f.where}
	switch {
	case f.dead != "":
		w.Where = "dead-lettered"
	case f.where == "":
		w.Where = "gone"
	}
	s.Entries = append(s.Entries, w)
	return nil
}
