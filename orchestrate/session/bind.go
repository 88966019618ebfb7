package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// ErrBound says that a session is bound to another run, which is not over.
var ErrBound = errors.New("the session is bound to another run")

// Bind makes s the state of the session, which binds the session to the run that s names.
// If the session is bound to another run, the error matches [ErrBound], unless over says
// that this run is over. The session keeps its limit of iterations and its prompt if s has
// none.
func (f File) Bind(ctx context.Context, s State, over func(runID string) (bool, error)) error {
	return f.locked(ctx, func() error {
		was, err := f.Read()
		if errors.Is(err, fs.ErrNotExist) {
			was, err = State{}, nil
		}
		if err == nil {
			err = f.free(was, s.RunID, over)
		}
		if err != nil {
			return err
		}
		if s.MaxIterations == 0 {
			s.MaxIterations = was.MaxIterations
		}
		if s.MaxIterations == 0 {
			s.MaxIterations = DefaultMaxIterations
		}
		if s.Prompt == "" {
			s.Prompt = was.Prompt
		}
		return f.publish(s)
	})
}

// Free returns an error that matches [ErrBound] if the session is bound to a run other than
// runID that is not over.
func (f File) Free(runID string, over func(runID string) (bool, error)) error {
	was, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.free(was, runID, over)
}

func (f File) free(was State, runID string, over func(string) (bool, error)) error {
	if was.RunID == "" || was.RunID == runID {
		return nil
	}
	is, err := over(was.RunID)
	switch {
	case is:
		return nil
	case err != nil:
		err = fmt.Errorf(", which may not be over (%w)", err)
	default:
		err = errors.New(", which is not over")
	}
	return fmt.Errorf("bind session %s: %w: run %s%w: end that one first, or remove %s", f.id, ErrBound, was.RunID, err, f.Path())
}
