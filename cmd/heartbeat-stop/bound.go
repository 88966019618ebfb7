package main

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

// exportSession has what the session runs know it as babysitter's own hook would.
func (h *hook) exportSession() {
	envFile := os.Getenv("CLAUDE_ENV_FILE")
	if len(h.runs.dirs) == 0 || h.input.Event != claude.EventSessionStart || envFile == "" {
		return
	}
	if err := session.Export(envFile, h.input.SessionID); err != nil {
		h.complain(fmt.Errorf("export %s: %w", session.Variable, err))
	}
}

// boundTo is the state file of this session where that is bound to the run, nil
// where it is not.
func (h *hook) boundTo(runID string) (*session.File, session.State, error) {
	if h.input == nil {
		return nil, session.State{}, nil
	}
	dir, err := session.Dir(h.runs.stateDir, os.Getenv)
	if err != nil {
		return nil, session.State{}, nil // then there can be no file
	}
	for _, id := range []string{h.input.SessionID, os.Getenv(session.Variable)} {
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

// stepBound takes a step of a run, unless the state of the session that is bound to
// it has come to a limit, and keeps that state: as with babysitter's own hook, an
// iteration is a stop that is blocked for the run.
func (h *hook) stepBound(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
	file, state, err := h.boundTo(b.Run.ID())
	if err != nil {
		return orchestrate.Report{}, err
	}
	now := time.Now()
	if file != nil {
		if guard := h.limit(state, now); guard != "" && !isCompleted(b) {
			return orchestrate.Report{Run: b.Run.ID(), Guard: guard + ": see " + file.Path()}, nil
		}
	}
	report, err := b.Step(ctx)
	switch {
	case file == nil:
	case report.Done:
		err = errors.Join(err, file.Delete(ctx))
	case len(report.Queued) > 0 && !h.counted[file.Path()]:
		_, updated := file.Update(ctx, func(s *session.State) error { *s = s.Next(now); return nil })
		h.counted[file.Path()] = true
		err = errors.Join(err, updated)
	}
	return report, err
}

// limit says which limit of its session keeps a run from going on, "" if none does.
func (h *hook) limit(s session.State, now time.Time) string {
	if s.Exhausted() {
		return fmt.Sprintf("its session has had its %d iterations (max_iterations)", s.MaxIterations)
	}
	if average, tooFast := session.TooFast(s.Times(now), h.runs.minSeconds); tooFast {
		return fmt.Sprintf("the last iterations of its session took %.0f s on average (--min-iteration-seconds %d)", average, h.runs.minSeconds)
	}
	return ""
}

// isCompleted tells a run of which only the proof is left to be given.
func isCompleted(b *orchestrate.Bridge) bool {
	st, err := b.Run.State("")
	return err == nil && st.Status == runs.Completed
}
