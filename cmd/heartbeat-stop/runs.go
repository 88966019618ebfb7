package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	runs "heartbeat/orchestrate/run"
)

// runFlags are how babysitter runs are driven, shared by the hook and the verbs.
type runFlags struct {
	dirs          []string
	command       string
	breakpoints   string
	rejectReason  string
	onUnresolved  string
	maxIterations int
	maxIdle       int
	execute       []string
	// stateDir is where the state files of sessions are, and minSeconds how long their
	// iterations take at least on average. Only the hook and run have them.
	stateDir   string
	minSeconds int
}

func (r *runFlags) add(f *pflag.FlagSet) {
	f.StringArrayVar(&r.dirs, "run", nil, "`directory` of a babysitter run to drive by way of the inbox; may be repeated")
	r.addWays(f)
}

// addWays are the flags beside which run it is.
func (r *runFlags) addWays(f *pflag.FlagSet) {
	r.breakpoints, r.onUnresolved = string(orchestrate.Hold), string(orchestrate.Leave)
	r.addCommand(f)
	f.Var(cli.Choice(&r.breakpoints, string(orchestrate.Ask), string(orchestrate.Hold), string(orchestrate.Reject)), "breakpoints", "what becomes of a run's question to a person: the agent asks, it waits for `breakpoint approve`, or it is rejected")
	f.StringVar(&r.rejectReason, "reject-reason", orchestrate.DefaultRejectReason, "with --breakpoints reject: what the run is told")
	f.Var(cli.Choice(&r.onUnresolved, string(orchestrate.PostError), string(orchestrate.Leave)), "on-unresolved", "what becomes of an effect whose entry was set aside: it waits for a person, or the run learns that it failed")
	f.StringSliceVar(&r.execute, "execute", nil, "`kinds` of effects to carry out here in place of the agent: node, shell")
	f.IntVar(&r.maxIterations, "max-iterations", orchestrate.DefaultMaxSteps, "how often a run's process is run (0: no limit)")
	f.IntVar(&r.maxIdle, "max-idle", orchestrate.DefaultMaxIdle, "how often in a row without the run getting on (0: no limit)")
}

func (r *runFlags) addStateDir(f *pflag.FlagSet) {
	f.StringVar(&r.stateDir, "state-dir", "", "`directory` of babysitter's session state files (default: BABYSITTER_STATE_DIR, or ~/.a5c/state)")
}

func (r *runFlags) addCommand(f *pflag.FlagSet) {
	f.StringVar(&r.command, "babysitter", "babysitter", "the `command` of babysitter, such as \""+babysitter.Npx+"\"; a path with blanks in quotes")
}

// absolute has the flags mean the same from any folder. A command is a path only
// where it has a slash.
func (r *runFlags) absolute() (err error) {
	for i := range r.dirs {
		if r.dirs[i], err = filepath.Abs(r.dirs[i]); err != nil {
			return err
		}
	}
	command, err := babysitter.ParseCommand(r.command)
	if err != nil {
		return err
	}
	r.command = words.Shell(command...)
	if r.stateDir != "" {
		r.stateDir, err = filepath.Abs(r.stateDir)
	}
	return err
}

func (r *runFlags) check() error {
	switch {
	case r.maxIterations < 0:
		return fmt.Errorf("--max-iterations is %d: it must be 0 or more", r.maxIterations)
	case r.maxIdle < 0:
		return fmt.Errorf("--max-idle is %d: it must be 0 or more", r.maxIdle)
	case r.minSeconds < 0:
		return fmt.Errorf("--min-iteration-seconds is %d: it must be 0 or more", r.minSeconds)
	}
	if _, err := babysitter.ParseCommand(r.command); err != nil {
		return fmt.Errorf("--babysitter: %w", err)
	}
	return orchestrate.CheckExecute(r.execute)
}

// bridges are those of the runs that the flags name.
func (r *runFlags) bridges(box *inbox.Inbox, note func(string, ...any)) (all []*orchestrate.Bridge, err error) {
	for _, dir := range r.dirs {
		b, err := r.bridge(box, dir, note)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func (r *runFlags) bridge(box *inbox.Inbox, dir string, note func(string, ...any)) (*orchestrate.Bridge, error) {
	return r.bridgeWith(box, orchestrate.Driver{Dir: dir, Options: r.options()}, note)
}

func (r *runFlags) bridgeWith(box *inbox.Inbox, of orchestrate.Driver, note func(string, ...any)) (*orchestrate.Bridge, error) {
	dir, err := filepath.Abs(of.Dir)
	if err != nil {
		return nil, err
	}
	opened, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this command's own path: %w", err)
	}
	return &orchestrate.Bridge{
		Box: box, Run: opened, Program: self, CLI: &babysitter.CLI{Command: r.parsedCommand(), Note: note}, Options: of.Options,
	}, nil
}

// parsedCommand is the command that check has found to be one.
func (r *runFlags) parsedCommand() []string {
	command, _ := babysitter.ParseCommand(r.command)
	return command
}

func (r *runFlags) options() orchestrate.Options {
	return orchestrate.Options{
		Command: r.parsedCommand(), Breakpoints: orchestrate.Breakpoints(r.breakpoints), RejectReason: r.rejectReason,
		OnUnresolved: orchestrate.Unresolved(r.onUnresolved), Execute: r.execute, MaxSteps: r.maxIterations, MaxIdle: r.maxIdle,
	}
}

// shortSleep is how long a hook waits for a run's sleep to be over.
const shortSleep = time.Minute

const (
	// postingTime is how long a hook posts results in one go: the client ends it after
	// ten minutes.
	postingTime = 4 * time.Minute
	// passTime and passPosts bound what a hook does for runs once it has delivered an
	// entry, which the session waits for.
	passTime  = 30 * time.Second
	passPosts = 8
)

// stepRuns takes a step of each run, and reports whether that brought entries.
func (h *hook) stepRuns(ctx context.Context) (brought bool) {
	return h.eachRun(ctx, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		b.Posts, b.Until = 0, time.Now().Add(postingTime)
		return b.Step(ctx)
	})
}

// passRuns has the runs learn of what was answered, at a Stop that has an entry to
// deliver all the same, or may deliver none.
func (h *hook) passRuns(ctx context.Context) {
	if len(h.bridges) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, passTime)
	defer stop()
	h.eachRun(ctx, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		b.Posts, b.Until = passPosts, time.Time{}
		return b.Pass(ctx, h.lastSettled)
	})
}

// eachRun steps each run. Where that fails, the others and the inbox go on without it.
func (h *hook) eachRun(ctx context.Context, take stepping) (brought bool) {
	h.worked = map[string]bool{}
	for _, b := range h.bridges {
		report, err := h.stepBound(ctx, b, take)
		if err != nil {
			h.complainOnce(err)
			continue
		}
		brought = brought || len(report.Queued) > 0
		for _, note := range report.Notes {
			h.note("run %s: %s", report.Run, note)
		}
		for _, why := range report.Refused {
			h.complainOnce(fmt.Errorf("run %s: a result was not posted: %s", report.Run, why))
		}
		if report.Busy || len(report.Commands)+report.Unposted > 0 && h.carryOut(b, report) {
			h.worked[report.Dir] = true
			h.lookAgainIn(outsideLook)
		}
		switch {
		case report.Guard != "":
			h.complainOnce(fmt.Errorf("run %s: %s", report.Run, report.Guard))
		case report.NotBefore != nil:
			h.lookAgainIn(time.Until(*report.NotBefore))
			if h.nextSleep.IsZero() || report.NotBefore.Before(h.nextSleep) {
				h.nextSleep = *report.NotBefore
			}
		}
	}
	return brought
}

// openRuns opens the runs that the hook drives. One that cannot be read keeps
// nobody from the inbox.
func (h *hook) openRuns() {
	for _, dir := range h.runs.dirs {
		b, err := h.runs.bridge(h.box, dir, h.note)
		if err != nil {
			h.complain(err)
			continue
		}
		b.Outside = true
		h.bridges = append(h.bridges, b)
	}
}
