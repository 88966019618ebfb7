package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/orchestrate/run"
)

// Reopen lets a run recover that failed because an effect was posted as failed. The effect waits again, and the
// next step asks for it with a new entry. Reopen fails if the effect did not fail, or the run has continued since.
func (b *Bridge) Reopen(ctx context.Context, effect string) (err error) {
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
	st, err := b.Run.State()
	if err != nil {
		return err
	}
	switch {
	case st.Effect(effect) != run.ResolvedError:
		return fmt.Errorf("run %s, effect %q: the effect keeps its result: it was not posted as failed", b.Run.ID(), effect)
	case st.Status != run.Failed:
		return fmt.Errorf("run %s, effect %s: the effect keeps its result: the run is %s, and has gone on with it", b.Run.ID(), effect, st.Status)
	}
	if err := b.CLI.Reopen(ctx, b.Run, effect); err != nil {
		return err
	}
	if st, err = b.Run.State(); err != nil {
		return err
	}
	if st.Failure != nil {
		l.Past = st.Failure.Seq // the process may try again
	}
	a := asked{Nth: max(l.Effects[effect].Nth, 1) + 1, Since: time.Now()}
	a.Entry = b.entryID(effect, a.Nth)
	l.Effects[effect], l.Failure, l.Head, l.Wants = a, asked{}, 0, nil
	return b.save(l, lock)
}
