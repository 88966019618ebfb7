package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
	"heartbeat/orchestrate/session"
)

// Greet implements [hook.Runs]. It does what babysitter's own hook does: when a session
// starts, it exports the session's id and makes a state file that no run is bound to
// yet; when the session ends without a run, it removes the file.
func (d *driver) Greet() {
	if len(d.Flags.Runs.Dirs) == 0 {
		return
	}
	var err error
	switch d.Input.Event {
	case claude.EventSessionStart:
		if envFile := os.Getenv("CLAUDE_ENV_FILE"); envFile != "" {
			if err := session.Export(envFile, d.Input.SessionID); err != nil {
				d.Complain(fmt.Errorf("export %s: %w", session.Variable, err))
			}
		}
		err = d.withState(func(f session.File) error {
			err := f.Create(context.Background(), session.New("", "", session.DefaultMaxIterations, time.Now()))
			if errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		})
	case claude.EventSessionEnd:
		err = d.withState(func(f session.File) error { return f.DeleteUnbound(context.Background()) })
	}
	if err != nil {
		d.Complain(fmt.Errorf("keep babysitter's state of session %s: %w", d.Input.SessionID, err))
	}
}

// withState does something with the state file of this session. A session by whose
// name no file can be has none.
func (d *driver) withState(do func(session.File) error) error {
	dir, err := session.Dir(d.Flags.Runs.StateDir, os.Getenv)
	if err != nil {
		return nil
	}
	file, err := session.At(dir, d.Input.SessionID)
	if err != nil {
		return nil
	}
	return do(file)
}

// boundTo is the state file of this session where that is bound to the run, nil
// where it is not.
func (d *driver) boundTo(runID string) (*session.File, session.State, error) {
	if d.Input == nil {
		return nil, session.State{}, nil
	}
	dir, err := session.Dir(d.Flags.Runs.StateDir, os.Getenv)
	if err != nil {
		return nil, session.State{}, nil // then there can be no file
	}
	for _, id := range []string{d.Input.SessionID, os.Getenv(session.Variable)} {
		file, err := session.At(dir, id)
		if err != nil {
			continue // no file has that name
		}
		state, err := file.Read()
		switch {
		case err == nil && state.RunID == runID:
			return &file, state, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, state, fmt.Errorf("read the state of session %s: %w", id, err)
		}
	}
	return nil, session.State{}, nil
}

// stepping is a way to take a step of a run.
type stepping func(context.Context, *orchestrate.Bridge) (orchestrate.Report, error)

// stepBound takes a step of a run, unless the state of the session that is bound to
// it has come to a limit, and keeps that state: as with babysitter's own hook, an
// iteration is a stop that is blocked for the run.
func (d *driver) stepBound(ctx context.Context, b *orchestrate.Bridge, take stepping) (orchestrate.Report, error) {
	file, state, err := d.boundTo(b.Run.ID())
	if err != nil {
		return orchestrate.Report{}, err
	}
	now := time.Now()
	if file != nil {
		if guard := d.limit(state, now); guard != "" && !isCompleted(b) {
			return orchestrate.Report{Run: b.Run.ID(), Guard: guard + ": see " + file.Path()}, nil
		}
	}
	report, err := take(ctx, b)
	switch {
	case file == nil:
	case report.Done:
		err = errors.Join(err, file.Delete(ctx))
	case len(report.Queued) > 0 && !d.counted[file.Path()]:
		_, updated := file.Update(ctx, func(s *session.State) error { *s = s.Next(now); return nil })
		d.counted[file.Path()] = true
		err = errors.Join(err, updated)
	}
	return report, err
}

// limit says which limit of its session keeps a run from going on, "" if none does.
func (d *driver) limit(s session.State, now time.Time) string {
	if s.Exhausted() {
		return fmt.Sprintf("its session has had its %d iterations (max_iterations)", s.MaxIterations)
	}
	if average, tooFast := session.TooFast(s.Times(now), d.Flags.Runs.MinSeconds); tooFast {
		return fmt.Sprintf("the last iterations of its session took %.0f s on average (--min-iteration-seconds %d)", average, d.Flags.Runs.MinSeconds)
	}
	return ""
}

// isCompleted reports whether all that is left of the run is to give its proof.
func isCompleted(b *orchestrate.Bridge) bool {
	st, err := b.Run.State("")
	return err == nil && st.Status == runs.Completed
}
