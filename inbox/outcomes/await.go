package outcomes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
	"heartbeat/internal/machine"
)

// ErrGone means that an awaited entry left the inbox without a result or a dead letter: it was dropped, or the inbox
// was truncated or replaced.
var ErrGone = errors.New("the entry is gone")

// Outcome is how an entry ended. Exactly one member is set.
type Outcome struct {
	Result     *inbox.Result     `json:"result,omitempty"`
	DeadLetter *inbox.DeadLetter `json:"dead_letter,omitempty"`
}

// Await returns once the entry of a receipt from [inbox.Inbox.Append] was answered or became a dead letter. An error
// that matches [ErrGone] means that neither will happen. Await watches file events, also checks every poll (a second if
// 0), and holds no lock. When ctx ends it reads the outcomes one last time.
func Await(ctx context.Context, b *inbox.Inbox, r inbox.Receipt, poll time.Duration) (_ Outcome, err error) {
	a := awaiting{box: b, entry: r}
	defer func() { err = errors.Join(err, a.results.Close(), a.deadLetters.Close()) }()
	w := b.WatchOutcomes(poll)
	defer func() { _ = w.Close() }() // only watches
	results, deadLetters := r.Before()
	if a.results, err = tailFrom(b.ResultsPath(), results); err == nil {
		a.deadLetters, err = tailFrom(b.DeadLetterPath(), deadLetters)
	}
	for ; err == nil; err = a.await(ctx, w) {
		err = a.check(ctx)
		if (errors.Is(err, inbox.ErrLocked) || machine.Passes(err)) && ctx.Err() == nil {
			err = nil // it only delays the outcome
		}
		if err != nil || a.outcome != (Outcome{}) {
			break
		}
	}
	// An outcome that has just arrived is worth more than the error.
	late := err != nil && ctx.Err() != nil && a.deadLetters != nil && a.readOutcomes() == nil && a.outcome != (Outcome{})
	if err != nil && !late {
		return Outcome{}, fmt.Errorf("wait for the entry %q: %w", r.ID, err)
	}
	return a.outcome, nil
}

// awaiting is one wait for one entry.
type awaiting struct {
	box                  *inbox.Inbox
	entry                inbox.Receipt
	results, deadLetters *Tail // nil before the wait begins
	outcome              Outcome
}

// await returns when the files may have changed.
func (a *awaiting) await(ctx context.Context, w *inbox.Watcher) error {
	var due <-chan time.Time
	if at := a.entry.NotBefore; at != nil && at.After(now(a.box)) {
		due = time.After(at.Sub(now(a.box)))
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.C:
	case <-due:
	}
	return nil
}

// check reads new outcomes, and returns [ErrGone] if the entry has none and can no longer get one.
func (a *awaiting) check(ctx context.Context) error {
	// Twice, because finishing the last commit may put the entry into the inbox.
	for range 2 {
		there, settling, err := a.stillThere(ctx)
		if err == nil && !there && settling {
			_, err = a.box.MakeGood(ctx) // the process of the settling commit may have been killed
		}
		if err == nil {
			err = a.readOutcomes()
		}
		if err != nil || there || a.outcome != (Outcome{}) {
			return err
		}
	}
	return ErrGone
}

// readOutcomes keeps the entry's first outcome, wherever its line stands: somebody may have moved it.
func (a *awaiting) readOutcomes() error {
	err := a.results.Lines(func(l []byte) {
		var r inbox.Result
		if a.isFirst(l) && json.Unmarshal(l, &r) == nil {
			a.outcome.Result = &r
		}
	})
	if err != nil || a.outcome != (Outcome{}) {
		return err // a requeued entry that was then answered is a dead letter too
	}
	return a.deadLetters.Lines(func(l []byte) {
		var d inbox.DeadLetter
		if a.isFirst(l) && json.Unmarshal(l, &d) == nil && d.Reason != "" {
			a.outcome.DeadLetter = &d
		}
	})
}

// isFirst reports whether a line is the entry's, and no outcome was found before.
func (a *awaiting) isFirst(l []byte) bool {
	return a.outcome == (Outcome{}) && flat.Value(l).Get("entry_id").Text() == a.entry.EntryID
}

// stillThere reports whether the entry waits, is in flight or is scheduled, and whether the last commit has
// yet to reach the files.
func (a *awaiting) stillThere(ctx context.Context) (there, settling bool, err error) {
	if at := a.entry.NotBefore; at != nil && !at.After(now(a.box)) {
		if err := a.box.Promote(ctx); err != nil {
			return false, false, err
		}
	}
	v, err := a.box.View()
	if err != nil {
		return false, false, err
	}
	defer func() { _ = v.Close() }() // read-only
	there, err = v.StillWaits(&a.entry)
	return there, v.Settling(), err
}
