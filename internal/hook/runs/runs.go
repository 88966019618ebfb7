// Package runs is what a hook does for babysitter runs. Only the full command links it.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

type driver struct {
	hook.Surroundings
	bridges   []*orchestrate.Bridge
	counted   map[string]bool     // state files in which this stop was counted
	outside   map[string]*outside // by the directory of the run
	worked    map[string]bool     // runs on which another process works, as of the last steps
	nextSleep time.Time           // when the next sleep of a run ends
}

// Open opens the runs that the hook's flags name. A run that cannot be read does not stop the inbox.
func Open(around hook.Surroundings) hook.Runs {
	d := &driver{Surroundings: around, counted: map[string]bool{}, outside: map[string]*outside{}}
	for _, dir := range d.Flags.Runs.Dirs {
		b, err := orchestrate.Open(context.Background(), &d.Flags.Runs, d.Box, dir, d.Note)
		if err != nil {
			d.Complain(err)
			continue
		}
		b.Outside = true
		d.bridges = append(d.bridges, b)
	}
	return d
}

// Accept implements [hook.Runs].
func (d *driver) Accept(entry *inbox.Delivery, reply string) (missing string) {
	return orchestrate.AcceptReply(d.Box, entry, reply)
}

// SettledElsewhere implements [hook.Runs].
func (d *driver) SettledElsewhere(e inbox.Entry) (why string) {
	return orchestrate.WhyNotNeeded(d.Box, e.ID, e.Metadata)
}

// Announce implements [hook.Runs].
func (d *driver) Announce(e inbox.Entry) string { return orchestrate.Announce(d.Box, e.Metadata) }

// Advance implements [hook.Runs]. It waits out a short sleep of the runs.
func (d *driver) Advance(ctx context.Context) (again bool) {
	persists := d.Flags.Mode == hook.ModePersist
	for len(d.bridges) > 0 {
		d.nextSleep = time.Time{}
		if d.Step(ctx) {
			return true
		}
		if len(d.worked) > 0 && !persists {
			return d.awaitOutside()
		}
		rest := time.Until(d.nextSleep)
		if d.nextSleep.IsZero() || rest > shortSleep || persists {
			return false
		}
		time.Sleep(max(rest, minSleep))
	}
	return false
}

const (
	shortSleep = time.Minute           // the longest sleep of a run that a hook waits out
	minSleep   = 10 * time.Millisecond // keeps a hook from spinning on a sleep that is over
	// passTime and passPosts bound what a hook does for runs after it has delivered an entry, while the session waits.
	passTime  = 30 * time.Second
	passPosts = 8
)

// Step implements [hook.Runs]. The runs share the time that a hook has, so that none keeps the others from their step,
// or all of them from being known as stuck.
func (d *driver) Step(ctx context.Context) (brought bool) {
	end := time.Now().Add(hookTime)
	if d.Flags.Mode != hook.ModePersist && !d.Flags.Rewake { // else it may have waited for hours
		end = end.Add(-d.Age())
	}
	if time.Until(end) < time.Second {
		return false // a step would be cut short
	}
	return d.eachRun(ctx, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		mine := share(time.Until(end), len(d.bridges)-slices.Index(d.bridges, b))
		ctx, stop := context.WithTimeoutCause(ctx, mine, orchestrate.ErrNoTime)
		defer stop()
		b.Posts, b.Until = 0, time.Now().Add(mine/2)
		return b.Step(ctx)
	})
}

// share is the time for the next of n runs: all but a minute for each other, which is enough for most, if there is more.
func share(left time.Duration, n int) time.Duration {
	return max(left/time.Duration(n), left-time.Duration(n-1)*time.Minute)
}

// Pass implements [hook.Runs].
func (d *driver) Pass(ctx context.Context, settled string) {
	if len(d.bridges) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, passTime)
	defer stop()
	d.eachRun(ctx, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		b.Posts, b.Until = passPosts, time.Time{}
		return b.StepIfReady(ctx, settled)
	})
}

// eachRun takes a step of each run. If one fails, the others and the inbox go on.
func (d *driver) eachRun(ctx context.Context, step stepping) (brought bool) {
	d.worked = map[string]bool{}
	all, _ := orchestrate.StepAll(ctx, d.bridges, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		report, err := d.stepBound(ctx, b, step)
		if err != nil {
			d.ComplainOnce(err)
			return orchestrate.Report{}, nil // the error ends no round
		}
		d.stepped(b, report)
		return report, nil
	})
	var held []string // effects and runs that wait for a person
	for _, r := range all.Reports {
		if r.Rests {
			held = append(held, r.Run)
		}
		for _, h := range r.Held {
			held = append(held, h.Effect)
		}
	}
	d.Ask(held)
	if !all.NotBefore.IsZero() {
		d.PollAgainIn(time.Until(all.NotBefore))
		if d.nextSleep.IsZero() || all.NotBefore.Before(d.nextSleep) {
			d.nextSleep = all.NotBefore
		}
	}
	return all.Queued
}

// stepped prints the notes of a run's step, and starts the commands that the step left.
func (d *driver) stepped(b *orchestrate.Bridge, report orchestrate.Report) {
	for _, note := range report.Notes {
		d.Note("run %s: %s", report.Run, note)
	}
	for _, why := range report.Refused {
		d.ComplainOnce(fmt.Errorf("run %s: a result was not posted: %s", report.Run, why))
	}
	if report.Busy || len(report.Commands)+report.Unposted > 0 && d.carryOut(b, report) {
		d.worked[report.Dir] = true
		d.PollAgainIn(outsideRecheck)
	}
	if report.Guard != "" {
		d.ComplainOnce(fmt.Errorf("run %s: %s", report.Run, cli.GuardHint(report.Guard, report.OutOfSteps)))
	}
}

// Greet implements [hook.Runs]. Like babysitter's own hook, it exports the session's id at the session's start and
// makes a state file bound to no run, and at the session's end removes a file that is still unbound. Of a session bound
// to a run it returns the figures.
func (d *driver) Greet() (shown string) {
	starts, id := d.Input.Event == claude.EventSessionStart, d.Input.SessionID
	if len(d.Flags.Runs.Dirs) == 0 || !starts && d.Input.Event != claude.EventSessionEnd {
		return ""
	}
	if envFile := os.Getenv("CLAUDE_ENV_FILE"); starts && envFile != "" {
		if err := orchestrate.ExportSession(envFile, id); err != nil {
			d.Complain(fmt.Errorf("export %s: %w", orchestrate.SessionVariable, err))
		}
	}
	f, ok := d.stateFile(id)
	if !ok {
		return ""
	}
	s, err := f.Read()
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && starts:
		err = f.Write(orchestrate.NewState("", "", orchestrate.DefaultMaxIterations, time.Now()))
	case missing:
		err = nil
	case err == nil && starts && s.RunID != "":
		shown = fmt.Sprintf("this session is bound to run %s, %s", s.RunID, orchestrate.IterationFigures(s.Iteration, s.MaxIterations))
	case err == nil && !starts && s.RunID == "":
		err = f.Delete()
	}
	if err != nil {
		d.Complain(fmt.Errorf("keep babysitter's state of session %s: %w", id, err))
	}
	return shown
}

// stateFile returns the state file of a session. ok is false if there is no directory for it, or no file has such a name.
func (d *driver) stateFile(id string) (f orchestrate.StateFile, ok bool) {
	dir, err := orchestrate.StateDir(d.Flags.Runs.StateDir, os.Getenv)
	if err == nil {
		f, err = orchestrate.StateFileAt(dir, id)
	}
	return f, err == nil
}

// boundTo returns this session's state file if it is bound to the run, else nil.
func (d *driver) boundTo(runID string) (*orchestrate.StateFile, orchestrate.State, error) {
	if d.Input == nil {
		return nil, orchestrate.State{}, nil
	}
	for _, id := range []string{d.Input.SessionID, os.Getenv(orchestrate.SessionVariable)} {
		file, ok := d.stateFile(id)
		if !ok {
			continue
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

type stepping func(context.Context, *orchestrate.Bridge) (orchestrate.Report, error)

// stepBound takes a step of a run unless the state of the session bound to it has reached a limit, and then updates
// that state. As with babysitter's own hook, an iteration is a stop that is blocked for the run.
func (d *driver) stepBound(ctx context.Context, b *orchestrate.Bridge, step stepping) (orchestrate.Report, error) {
	file, state, err := d.boundTo(b.Run.ID())
	if err != nil {
		return orchestrate.Report{}, err
	}
	now := time.Now() // before the step, which may take minutes
	if guard := state.Limit(); file != nil && guard != "" && !isCompleted(b) {
		return orchestrate.Report{Run: b.Run.ID(), Guard: guard + ": see " + file.Path()}, nil
	}
	report, err := step(ctx, b)
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

// isCompleted reports whether the run has only its proof to give.
func isCompleted(b *orchestrate.Bridge) bool {
	st, err := b.Run.State()
	return err == nil && st.Status == runs.Completed
}
