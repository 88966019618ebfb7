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
)

// Greet implements [hook.Runs]. Like babysitter's own hook, it exports the session's id at the session's start and
// makes a state file bound to no run, and at the session's end removes a file that is still unbound. It shows the
// figures of a session that is bound to a run.
func (d *driver) Greet() (shown string) {
	if len(d.Flags.Runs.Dirs) == 0 {
		return ""
	}
	var err error
	switch d.Input.Event {
	case claude.EventSessionStart:
		if envFile := os.Getenv("CLAUDE_ENV_FILE"); envFile != "" {
			if err := orchestrate.ExportSession(envFile, d.Input.SessionID); err != nil {
				d.Complain(fmt.Errorf("export %s: %w", orchestrate.SessionVariable, err))
			}
		}
		err = d.withState(func(f orchestrate.StateFile, s orchestrate.State, err error) error {
			if err == nil && s.RunID != "" {
				shown = fmt.Sprintf("this session is bound to run %s, %s", s.RunID, orchestrate.IterationFigures(s.Iteration, s.MaxIterations))
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return f.Write(orchestrate.NewState("", "", orchestrate.DefaultMaxIterations, time.Now()))
		})
	case claude.EventSessionEnd:
		err = d.withState(func(f orchestrate.StateFile, s orchestrate.State, err error) error {
			if err == nil && s.RunID == "" {
				return f.Delete()
			} else if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	}
	if err != nil {
		d.Complain(fmt.Errorf("keep babysitter's state of session %s: %w", d.Input.SessionID, err))
	}
	return shown
}

// withState calls do with this session's state file as read. A session whose id is no valid file name has none.
func (d *driver) withState(do func(orchestrate.StateFile, orchestrate.State, error) error) error {
	dir, err := orchestrate.StateDir(d.Flags.Runs.StateDir, os.Getenv)
	if err != nil {
		return nil
	}
	file, err := orchestrate.StateFileAt(dir, d.Input.SessionID)
	if err != nil {
		return nil
	}
	state, err := file.Read()
	return do(file, state, err)
}

// boundTo returns this session's state file if it is bound to the run, else nil.
func (d *driver) boundTo(runID string) (*orchestrate.StateFile, orchestrate.State, error) {
	if d.Input == nil {
		return nil, orchestrate.State{}, nil
	}
	dir, err := orchestrate.StateDir(d.Flags.Runs.StateDir, os.Getenv)
	if err != nil {
		return nil, orchestrate.State{}, nil // without a directory there is no file
	}
	for _, id := range []string{d.Input.SessionID, os.Getenv(orchestrate.SessionVariable)} {
		file, err := orchestrate.StateFileAt(dir, id)
		if err != nil {
			continue // no file can have that name
		}
		state, err := file.Read()
		switch {
		case err == nil && state.RunID == runID:
			return &file, state, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, state, fmt.Errorf("read the state of session %s: %w", id, err)
		}
	}
	return nil, orchestrate.State{}, nil
}

// stepping is a way to take a step of a run.
type stepping func(context.Context, *orchestrate.Bridge) (orchestrate.Report, error)

// stepBound takes a step of a run unless the state of the session bound to it has reached a limit, and then updates
// that state. As with babysitter's own hook, an iteration is a stop that is blocked for the run.
func (d *driver) stepBound(ctx context.Context, b *orchestrate.Bridge, take stepping) (orchestrate.Report, error) {
	file, state, err := d.boundTo(b.Run.ID())
	if err != nil {
		return orchestrate.Report{}, err
	}
	now := time.Now()
	if guard := state.Limit(); file != nil && guard != "" && !isCompleted(b) {
		return orchestrate.Report{Run: b.Run.ID(), Guard: guard + ": see " + file.Path()}, nil
	}
	report, err := take(ctx, b)
	switch {
	case file == nil:
	case report.Done:
		err = errors.Join(err, file.Delete())
	case len(report.Queued) > 0 && !d.counted[file.Path()]:
		d.counted[file.Path()] = true
		err = errors.Join(err, file.Write(state.Next(now)))
	}
	return report, err
}

// isCompleted reports whether the run only has to give its proof.
func isCompleted(b *orchestrate.Bridge) bool {
	st, err := b.Run.State()
	return err == nil && st.Status == runs.Completed
}
