package orchestrate

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/orchestrate/run"
)

// ErrNotReopened says that an effect keeps its result.
var ErrNotReopened = errors.New("the effect keeps its result")

// Reopen lets a run recover that failed because an effect was posted as failed: the
// effect waits again, and the next step asks for it with a new entry. do takes the
// effect's result away. The error matches [ErrNotReopened] if the effect did not fail, or
// the run continued since.
func (b *Bridge) Reopen(ctx context.Context, effect string, do func(ctx context.Context, runDir, effect string) error) (err error) {
	lock, err := b.lock(ctx, stepWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := b.claim(); err != nil {
		return err
	}
	l, err := b.open()
	if err != nil {
		return err
	}
	st, err := b.Run.State("")
	if err != nil {
		return err
	}
	status, err := st.Effect(effect)
	switch {
	case err != nil:
		return err
	case status != run.ResolvedError:
		return fmt.Errorf("run %s, effect %q: %w: it was not posted as failed", b.Run.ID(), effect, ErrNotReopened)
	case st.Status != run.Failed:
		return fmt.Errorf("run %s, effect %s: %w: the run is %s, and has gone on with it", b.Run.ID(), effect, ErrNotReopened, st.Status)
	}
	if err := do(ctx, b.Run.Dir(), effect); err != nil {
		return err
	}
	if st, err = b.Run.State(""); err != nil {
		return err
	}
	if st.Failure != nil {
		l.Past = st.Failure.Seq // the process may try again
	}
	a := asked{Nth: max(l.Effects[effect].Nth, 1) + 1, Since: b.now()}
	a.Entry = b.entryID(effect, a.Nth)
	l.Effects[effect], l.Failure, l.Head, l.Wants = a, asked{}, 0, nil
	return b.save(l, lock)
}
