package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/orchestrate"
)

// requeueing is a run of requeue. It takes more than one transaction where the
// inbox ends amid a line, since nobody waits with the lock in hand.
type requeueing struct {
	*letterFlags
	streams
	box    *inbox.Inbox
	words  []string
	chosen bool
	left   []string // the letters still to be requeued, by name
	total  int
	done   []inbox.Letter
	// refused is the last reason why a letter stays what it is.
	refused  error
	refusals int
}

func (o *letterFlags) requeue(words []string, s streams) error {
	box, err := o.open()
	if err != nil {
		return err
	}
	r := &requeueing{letterFlags: o, streams: s, box: box, words: words}
	for still := (inbox.Mark{}); ; {
		err := r.transaction(still)
		if errPrint := r.report(); errPrint != nil {
			return errors.Join(err, errPrint)
		}
		if !errors.Is(err, inbox.ErrTorn) {
			return errors.Join(err, r.verdict(err))
		}
		if still, err = box.AwaitStill(context.Background(), time.Duration(o.settle)); err != nil {
			return err
		}
	}
}

// transaction requeues what is left, a commit for each letter: a letter of 64 MiB
// beside others of that size would be more than one record should hold.
func (r *requeueing) transaction(still inbox.Mark) (err error) {
	tx, err := r.box.Begin(context.Background())
	if err != nil {
		return err
	}
	defer func() {
		r.warn(tx.Warnings())
		err = errors.Join(err, tx.Close())
	}()
	letters, warnings, err := r.box.Letters()
	if err == nil && !r.chosen {
		r.warn(warnings)
		err = r.choose(letters)
	}
	byName := map[string]inbox.Letter{}
	for _, l := range letters {
		byName[l.Letter] = l
	}
	for ; err == nil && len(r.left) > 0; r.left = r.left[1:] {
		l, there := byName[r.left[0]]
		if !there {
			r.refuse(fmt.Errorf("the letter %s is gone", r.left[0]))
			continue
		}
		if err := r.one(tx, l, still); err != nil {
			return err
		}
	}
	return err
}

func (r *requeueing) choose(letters []inbox.Letter) error {
	chosen := letters
	if !r.all {
		var err error
		if chosen, err = chooseLetters(r.words, letters, true); err != nil {
			return err
		}
	}
	for _, l := range chosen {
		r.left = append(r.left, l.Letter)
	}
	r.chosen, r.total = true, len(chosen)
	return nil
}

// one requeues a letter, or says why that cannot be.
func (r *requeueing) one(tx *inbox.Tx, l inbox.Letter, still inbox.Mark) error {
	switch why := r.box.Requeueable(l); {
	case why != nil && r.all && isRequeued(l):
		r.note("%v: it is left out", why)
		return nil
	case why != nil:
		r.refuse(why)
		return nil
	}
	if settled := orchestrate.Settled(r.box, l.Metadata); settled != "" {
		r.refuse(fmt.Errorf("requeue %s: %s, so another answer is of no use (a run that failed by that goes on with `run resume RUN --again EFFECT`)", l.Letter, settled))
		return nil
	}
	l, err := tx.Requeue(l, still)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("requeue %s: %w", l.Letter, err)
	}
	r.done = append(r.done, l)
	return nil
}

// refuse keeps the reason for the end where there is one letter only.
func (r *requeueing) refuse(why error) {
	if r.refused = why; r.total > 1 {
		r.complain(why)
	}
	r.refusals++
}

// report prints what was done, without the lock: nobody may read for a while.
func (r *requeueing) report() error {
	for _, l := range r.done {
		if err := r.print(r.streams, l, fmt.Sprintf("requeued %s (%s)", l.Letter, nameOfLetter(l))); err != nil {
			return err
		}
	}
	r.done = nil
	return nil
}

// verdict says in one sentence what was not done; ended is why it stopped early.
func (r *requeueing) verdict(ended error) error {
	switch {
	case ended != nil:
		return nil
	case r.refusals > 0 && r.total > 1:
		return fmt.Errorf("%d of %d letters cannot be requeued", r.refusals, r.total)
	case r.total == 0 && !r.json:
		_, err := fmt.Fprintln(r.out, "no dead letters")
		return err
	}
	return r.refused
}
