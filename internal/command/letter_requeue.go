package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
	"heartbeat/orchestrate"
)

// requeueing is the state of one requeue or accept command. If the inbox ends within a line, it needs several
// transactions, because it never waits while it holds the lock.
type requeueing struct {
	*letterFlags
	several
	read *outcomes.LetterReader
	left []string // the names of the letters still to be dealt with

	gone  map[string]bool // ids of entries that wait no longer, but have limits that a person set
	twins *inbox.Twins
}

func (o *letterFlags) requeueOrAccept(box *inbox.Inbox, words []string, s cli.Streams) error {
	all := several{Streams: s, flags: &o.InboxFlags, quiet: o.quiet, box: box}
	r := &requeueing{letterFlags: o, several: all, read: outcomes.NewLetterReader(box)}
	if err := r.choose(words); err != nil {
		return err
	}
	for still := (inbox.Mark{}); ; {
		err := r.transaction(still)
		if errPrint := r.report(r.sentence); errPrint != nil {
			return errors.Join(err, errPrint)
		}
		switch {
		case errors.Is(err, inbox.ErrTorn):
			still, err = box.AwaitStill(context.Background(), time.Duration(r.settle))
		case errors.Is(err, inbox.ErrMore):
			_, err = r.read.Read()
		case err == nil:
			if r.total == 0 {
				noteNothing(&o.InboxFlags, s, "was set aside", box)
			}
			return r.verdict("letters cannot be " + r.past())
		}
		if err != nil {
			return err
		}
	}
}

const requeueHold = time.Second // about how long the lock is held at a time

// transaction requeues what is left, with a commit for each letter: several of 64 MiB are too much for one record.
func (r *requeueing) transaction(still inbox.Mark) error {
	return cli.InTransaction(r.box, r.Streams, func(tx *inbox.Tx) error {
		if err := r.read.Update(tx); err != nil {
			return err
		}
		for began := time.Now(); len(r.left) > 0; r.left = r.left[1:] {
			if time.Since(began) > requeueHold {
				return inbox.ErrMore
			}
			l, there, err := r.read.Letter(r.left[0])
			if err != nil {
				return err
			}
			if !there {
				r.refuse(fmt.Errorf("the letter %s is gone", r.left[0]))
				continue
			}
			if err := r.one(tx, l, still); err != nil {
				return err
			}
		}
		return nil
	})
}

// choose reads the letters without holding the lock.
func (r *requeueing) choose(words []string) (err error) {
	each := func(visit func(inbox.Letter) bool) (warnings []string, err error) {
		if warnings, err = r.read.Read(); err != nil {
			return warnings, err
		}
		return warnings, r.read.Each(visit)
	}
	ids := map[string]bool{}
	add := func(l inbox.Letter) bool {
		if r.left = append(r.left, l.Letter); l.ID != "" && l.Open() {
			ids[l.ID] = true
		}
		return true
	}
	if r.all {
		var warnings []string
		warnings, err = each(add)
		r.Warn(warnings)
	} else {
		var chosen []inbox.Letter
		chosen, err = chooseLetters(words, true, each, r.Streams)
		for _, l := range chosen {
			add(l)
		}
	}
	if r.total = len(r.left); err == nil && r.verb != "accept" {
		r.twins, err = r.box.Twins(ids)
	}
	if err == nil && r.limits.Any() {
		err = r.findGone()
	}
	return err
}

// findGone finds which entries with limits that a person set wait no longer.
func (r *requeueing) findGone() error {
	v, err := r.box.View()
	if err != nil {
		return err
	}
	r.gone = map[string]bool{}
	for _, id := range account.Of(v).Account().Raised {
		r.gone[id] = true
	}
	waits := func(entryID string) bool { delete(r.gone, entryID); return len(r.gone) > 0 }
	if d := v.InFlight(); d != nil { // it may be given back
		waits(d.EntryID)
	}
	return errors.Join(v.Waits(nil, func(w inbox.Waiting) bool { return waits(w.EntryID) }),
		r.box.EachScheduled(func(s inbox.Scheduled) bool { return waits(s.EntryID) }), v.Close())
}

func (r *requeueing) accept(tx *inbox.Tx, l inbox.Letter) error {
	if settled := orchestrate.WhyNotNeeded(r.box, l.ID, l.Metadata); settled != "" {
		r.refuse(fmt.Errorf("accept %s: %s, so another answer is of no use", l.Letter, settled))
		return nil
	}
	l, err := tx.Accept(l)
	if err != nil {
		r.refuse(err)
		return nil
	}
	return r.commit(tx, l)
}

func (r *requeueing) commit(tx *inbox.Tx, l inbox.Letter) error {
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s %s: %w", r.verb, l.Letter, err)
	}
	r.done = append(r.done, l)
	return nil
}

func (r *requeueing) one(tx *inbox.Tx, l inbox.Letter, still inbox.Mark) error {
	if r.verb == "accept" {
		return r.accept(tx, l)
	}
	if r.limits.Any() && l.Open() {
		if account.Of(tx).Raised(r.gone) >= account.MaxRaised {
			r.refuse(fmt.Errorf("requeue %s: only %d entries at a time may wait with limits that a person set: ask again once the others were delivered", l.Letter, account.MaxRaised))
			return nil
		}
		old, _ := price.ParseLimits(l.Limits()) // empty if invalid limits are why it is a letter
		limits := r.limits.Or(old)
		limits.Raised = true
		var err error
		if l, err = l.WithLimits(limits.JSON()); err != nil {
			r.refuse(err)
			return nil
		}
	}
	switch why := r.requeueable(tx, l); {
	case why != nil && r.all && (!l.Open() || errors.Is(why, inbox.ErrTwin)):
		if !r.several.quiet {
			r.Note("%v: it is left out", why)
		}
		return nil
	case why != nil:
		r.refuse(why)
		return nil
	}
	if settled := orchestrate.WhyNotNeeded(r.box, l.ID, l.Metadata); settled != "" {
		r.refuse(fmt.Errorf("requeue %s: %s, so another answer is of no use (a run that failed by that goes on with `heartbeat run resume RUN --again EFFECT`)", l.Letter, settled))
		return nil
	}
	l, err := tx.Requeue(l, still)
	if err != nil {
		return err
	}
	r.gone = nil // this commit forgets them, and one of them may wait again
	return r.commit(tx, l)
}

// requeueable is [inbox.Inbox.Requeueable], and refuses invalid limits and twins, too.
func (r *requeueing) requeueable(tx *inbox.Tx, l inbox.Letter) error {
	if _, err := price.ParseLimits(l.Limits()); err != nil && l.Open() {
		return fmt.Errorf("requeue %s: %w, and it would be set aside again: give it others, as in --max-cost 5, or send it anew", l.Letter, err)
	}
	return cmp.Or(r.box.Requeueable(l), r.twins.Of(tx, l))
}

func (r *requeueing) past() string { return strings.TrimSuffix(r.verb, "e") + "ed" }

func (r *requeueing) sentence(l inbox.Letter) string {
	return fmt.Sprintf("%s %s (%s)", r.past(), l.Letter, nameOfLetter(l))
}
