package inbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/journal"
	"heartbeat/internal/price"
)

// RunAccount is what a babysitter run has cost, and may: that is, all entries whose id
// begins with the run's and a slash. It is part of the account, and not of a file that
// can be edited or shortened.
type RunAccount struct {
	ID string
	// Spent is what was charged. [Tx.SpentByRun] adds what is not charged yet.
	Spent price.Amount
	// Limit is what the flags said when an entry of the run was last due, and Own what a
	// person set for this run, in billionths of a dollar; 0 is none.
	Limit, Own int64
}

// Bound is the limit that counts: a person's, else that of the flags; 0 is none.
func (r RunAccount) Bound() int64 {
	if r.Own > 0 {
		return r.Own
	}
	return r.Limit
}

// maxRuns is how many runs the account knows, the last ones whose entries were due. What
// another has cost is found again in .costs.jsonl, and what a person set for it is
// forgotten.
const maxRuns = 16

func ofRun(entry, run string) bool {
	rest, is := strings.CutPrefix(entry, run)
	return is && strings.HasPrefix(rest, "/")
}

// Run is what is known of a run.
func (a *Account) Run(id string) (r RunAccount, known bool) {
	if i := a.indexOfRun(id); i >= 0 {
		return a.Runs[i], true
	}
	return RunAccount{ID: id}, false
}

func (a *Account) indexOfRun(id string) int {
	return slices.IndexFunc(a.Runs, func(r RunAccount) bool { return r.ID == id })
}

func (a *Account) addToRun(entry string, amount price.Amount) {
	for i := range a.Runs {
		if ofRun(entry, a.Runs[i].ID) {
			a.Runs[i].Spent = a.Runs[i].Spent.Plus(amount)
		}
	}
}

// Run is what the account says of a run.
func (t *Tx) Run(id string) (r RunAccount, known bool) { return t.readAccount().Run(id) }

// Run is what the account says of a run.
func (v *View) Run(id string) (r RunAccount, known bool) { return v.tx.Run(id) }

// NoteRun keeps, with the next commit, what the flags say that a run may cost. From then
// on the account has what the run costs.
func (t *Tx) NoteRun(id string, limit int64) error {
	r, known, err := t.runToKeep(id)
	if err != nil || known && r.Limit == limit && t.readAccount().Runs[0].ID == id {
		return err
	}
	r.Limit = limit
	t.keepRun(r)
	return nil
}

// LimitRun sets, with the next commit, what a run may cost, whatever the flags say; 0 has
// those count again.
func (t *Tx) LimitRun(id string, own int64) error {
	r, _, err := t.runToKeep(id)
	if err != nil {
		return err
	}
	r.Own = own
	t.keepRun(r)
	return nil
}

func (t *Tx) runToKeep(id string) (r RunAccount, known bool, err error) {
	if r, known = t.Run(id); !known {
		r.Spent, err = t.chargedToRun(id)
	}
	return r, known, err
}

func (t *Tx) keepRun(r RunAccount) {
	a := t.changeAccount()
	a.Runs = slices.DeleteFunc(a.Runs, func(o RunAccount) bool { return o.ID == r.ID })
	a.Runs = slices.Insert(a.Runs, 0, r)
	a.Runs = a.Runs[:min(len(a.Runs), maxRuns)]
}

// chargedToRun is what .costs.jsonl says, with the lines of this transaction.
func (t *Tx) chargedToRun(id string) (sum price.Amount, err error) {
	err = t.eachLine(journal.Costs, 0, func(l []byte) {
		if c, err := ParseCost(l); err == nil && ofRun(c.ID, id) {
			sum = sum.Plus(c.Amount)
		}
	})
	if err != nil {
		err = fmt.Errorf("read costs: %w", err)
	}
	return sum, err
}

// SpentByRun is what a run has cost by now: what was charged, and what the readings of this
// transaction add, or load for sessions that have none; load may be nil, and returns nil
// if there is no meter.
func (t *Tx) SpentByRun(id string, load func(session string) *Reading) (price.Amount, error) {
	r, _, err := t.runToKeep(id)
	if err != nil {
		return price.Amount{}, err
	}
	sum := r.Spent
	for _, s := range t.readAccount().Sessions {
		if !slices.ContainsFunc(s.Spans, func(of Span) bool { return ofRun(of.ID, id) }) {
			continue
		}
		now := t.readings[s.ID]
		if now == nil && load != nil {
			if now = load(s.ID); now != nil && !now.plausible() {
				now = nil
			}
		}
		for i, p := range s.uncharged(now) {
			if of := s.Spans[i]; ofRun(of.ID, id) && !of.history {
				sum = sum.Plus(p.Amount)
			}
		}
	}
	return sum, nil
}

// SpentByRun is [Tx.SpentByRun], with the reading of the last [View.Spending].
func (v *View) SpentByRun(id string, load func(session string) *Reading) (price.Amount, error) {
	return v.tx.SpentByRun(id, load)
}

// OverRun is [Tx.OverBudget] for an entry whose babysitter run has reached its limit.
func (t *Tx) OverRun(figures string) error { return t.overLimit(errorOverRun, figures) }

// RefuseOverRun is [Tx.RefuseOverBudget] for the same.
func (t *Tx) RefuseOverRun(e Entry, figures string) error {
	return t.refuseOver(e, errorOverRun, figures)
}

// errorOverRun is the [Failure]'s error of such an entry.
const errorOverRun = "run_over_budget"

// OverRun reports whether the letter was set aside because its run had reached its limit,
// and returns the run's id.
func (l Letter) OverRun() (run string, is bool) {
	if l.Reason != ReasonOverBudget || l.Failure == nil || l.Failure.Error != errorOverRun {
		return "", false
	}
	run, _, is = strings.Cut(l.ID, "/")
	return run, is
}

// WithinRun is such a letter as it is requeued once its run may cost more.
func (l Letter) WithinRun() Letter {
	l.withinRun = true
	return l
}

// text is a run's account in one short string, since every record has them: both limits,
// the amount and the id.
func (r *RunAccount) text() string {
	spent := amountText(r.Spent)
	if spent == "" {
		spent = "- 0 0 0 0 0"
	}
	return strconv.FormatInt(r.Limit, 10) + " " + strconv.FormatInt(r.Own, 10) + " " + spent + " " + r.ID
}

func runFrom(text string) (r RunAccount, err error) {
	// An amount has six numbers or eight, and the id behind it may be anything.
	parts := strings.SplitN(text, " ", 11)
	last := 10
	if len(parts) == 11 {
		r.Spent, err = amountOf(strings.Join(parts[2:last], " "))
	}
	if len(parts) < 11 || err != nil {
		parts, last = strings.SplitN(text, " ", 9), 8
	}
	if len(parts) != last+1 || parts[last] == "" {
		return r, fmt.Errorf("%q is no run", brief(text))
	}
	r.ID = parts[last]
	for i, into := range []*int64{&r.Limit, &r.Own} {
		if *into, err = strconv.ParseInt(parts[i], 10, 64); err != nil || *into < 0 {
			return r, fmt.Errorf("%q is no run", brief(text))
		}
	}
	r.Spent, err = amountOf(strings.Join(parts[2:last], " "))
	return r, err
}
