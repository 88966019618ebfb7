package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/charging"
	"heartbeat/internal/cli"
	"heartbeat/internal/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/effect"
)

// maxCostPerRun is the flag of the verbs that set a run's own limit.
const maxCostPerRun = "max-cost-per-run"

// runCost is what a run has cost, where anything is known of it, or it has a limit.
type runCost struct {
	price.Fields
	LimitUSD *price.Nanos `json:"limit_usd,omitempty"`
	// Reached says that nothing of the run is delivered any more.
	Reached bool `json:"limit_reached,omitempty"`

	limit int64
}

// costOfRun is what a run has cost by now, nil if nothing is known.
func costOfRun(box *inbox.Inbox, id string) (c *runCost, err error) {
	v, err := box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	spent, err := v.SpentByRun(id, charging.Load(box.Dir()))
	if err != nil {
		return nil, err
	}
	r, _ := v.Run(id)
	if spent.IsZero() && r.Bound() == 0 {
		return nil, nil
	}
	c = &runCost{Fields: price.Price{Amount: spent, ContextPercent: -1}.Fields(), limit: r.Bound()}
	if c.limit > 0 {
		usd := price.Nanos(c.limit)
		c.LimitUSD = &usd
		_, c.Reached = budget.Limits{Nanos: c.limit}.Over(budget.Spent{Amount: spent})
	}
	return c, nil
}

// String is "it has cost 3.10 of 10.00 USD", "" where no dollars are known.
func (c *runCost) String() string {
	switch {
	case c == nil || !c.Price().Dollars:
		return ""
	case c.limit > 0:
		return "it has cost " + budget.USD(c.Price().Nanos, c.limit)
	}
	return "it has cost " + price.FormatUSD(c.Price().Nanos) + " USD"
}

// limit sets what a run may cost, if the flag says so. One that is reached already is
// refused: nothing would go on.
func (o *runVerbFlags) limit(ctx context.Context, box *inbox.Inbox, id string) (err error) {
	if !o.flags.Changed(maxCostPerRun) {
		return nil
	}
	tx, err := box.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	spent, err := tx.SpentByRun(id, charging.Load(box.Dir()))
	if err != nil {
		return err
	}
	if _, over := (budget.Limits{Nanos: o.ways.MaxCost}).Over(budget.Spent{Amount: spent}); over {
		return fmt.Errorf("--%s: run %s has cost %s already: give more than that", maxCostPerRun, id, budget.USD(spent.Nanos, o.ways.MaxCost))
	}
	if err := tx.LimitRun(id, o.ways.MaxCost); err != nil {
		return err
	}
	return tx.Commit()
}

// requeueRun puts the entries of a run back that were set aside since it had reached its
// limit, if it may cost more by now. An entry that is of no use any more stays. Without
// about, so do those about the run itself.
func requeueRun(ctx context.Context, box *inbox.Inbox, id string, about bool, s cli.Streams) error {
	var all []string
	_, err := box.EachLetter(func(l inbox.Letter) bool {
		if run, is := l.OverRun(); !is || run != id || !l.Open() {
			return true
		}
		if mark, _ := effect.MarkIn(l.Metadata); mark.Effect == "" && !about || orchestrate.Settled(box, l.Metadata) != "" {
			return true
		}
		all = append(all, l.Letter)
		return true
	})
	if err != nil || len(all) == 0 {
		return err
	}
	flags := &letterFlags{all: true, settle: cli.Span(cli.DefaultSettle), quietFlag: quietFlag{true}}
	r := &requeueing{letterFlags: flags, Streams: s, what: requeueLetter, ofRun: true, box: box, read: box.LetterReader(), left: all, total: len(all)}
	return r.run(ctx, nil)
}

// withinRun is the letter as it can be requeued, if it is of a run that has reached its limit
// and may cost more by now.
func withinRun(tx *inbox.Tx, box *inbox.Inbox, l inbox.Letter) (_ inbox.Letter, within bool, err error) {
	run, is := l.OverRun()
	if !is {
		return l, false, nil
	}
	spent, err := tx.SpentByRun(run, charging.Load(box.Dir()))
	if err != nil {
		return l, false, err
	}
	r, _ := tx.Run(run)
	if _, over := (budget.Limits{Nanos: r.Bound()}).Over(budget.Spent{Amount: spent}); over {
		return l, false, nil
	}
	return l.WithinRun(), true, nil
}

// stoppedRun is a run whose entries were set aside at its limit.
type stoppedRun struct {
	Run string `json:"run"`
	*runCost
	// TypeThis is what lets the run go on.
	TypeThis string `json:"type_this"`
	sentence string
}

// stoppedRuns are the runs that letters wait of since their limit was reached. A letter of
// a run that the account does not know is not believed.
func stoppedRuns(box *inbox.Inbox) (all []stoppedRun, err error) {
	var found []string
	_, err = box.EachLetter(func(l inbox.Letter) bool {
		run, is := l.OverRun()
		if is && l.Open() && !slices.Contains(found, run) && orchestrate.Settled(box, l.Metadata) == "" {
			found = append(found, run)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, run := range found {
		r := stoppedRun{Run: run}
		if r.runCost, err = costOfRun(box, run); err != nil {
			return all, err
		}
		if r.runCost == nil || r.limit == 0 {
			continue
		}
		what, args := "was stopped at its limit, and may cost more by now", []string{commandName, "run", "resume", "--inbox", box.Path()}
		if r.Reached {
			what = "has reached its limit"
			args = append(args, "--"+maxCostPerRun, nextLimit(r.limit, r.Price().Nanos))
		}
		if figures := r.String(); figures != "" {
			what += " (" + figures + ")"
		}
		r.TypeThis = words.Shell(append(args, run)...)
		r.sentence = fmt.Sprintf("run %s %s, and nothing of it is delivered: `%s` has it go on", words.Brief(run), what, r.TypeThis)
		all = append(all, r)
	}
	return all, nil
}

// nextLimit suggests a limit, in whole dollars: twice the last one, and more than was spent.
func nextLimit(limit, spent int64) string {
	const dollar = 1_000_000_000
	return fmt.Sprint((max(2*limit, spent+1) + dollar - 1) / dollar)
}
