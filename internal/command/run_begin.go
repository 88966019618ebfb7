package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"
)

// begun is a run that was made or resumed.
type begun struct {
	orchestrate.Report
	Session *boundSession `json:"session,omitempty"`
	Hook    []string      `json:"hook"` // flags for a hook that goes on with it

	program string // heartbeat, as the entries call it
}

type boundSession struct {
	ID            string `json:"id"`
	File          string `json:"state_file"`
	Iteration     int    `json:"iteration"`
	MaxIterations int    `json:"max_iterations"` // 0 is no limit
}

func (o *runVerbFlags) start(ctx context.Context, box *inbox.Inbox, _ string, s cli.Streams) error {
	_, err := o.sessionFile(box, o.create.RunID, s)
	if err != nil {
		return err // before anything is made
	}
	if o.inputs != "" {
		if o.create.Inputs, err = disk.ReadGiven(o.inputs, maxResult); err != nil {
			return fmt.Errorf("read the inputs: %w", err)
		}
	}
	o.create.RunsDir = runsDir(o.create.RunsDir)
	cli := &babysitter.CLI{Command: o.ways.Command, Note: s.Note}
	made, err := cli.Create(ctx, o.create)
	if err != nil {
		return err
	}
	if o.create.DryRun {
		o.line.Stop()
		return program.Report(s, o.JSON, made, fmt.Sprintf("would make the run %s in %s, of the process %s (%s)", made.RunID, made.RunDir, made.Process, made.Entry))
	}
	b, err := orchestrate.Open(ctx, &o.ways, box, made.RunDir, s.Note)
	if err == nil {
		_, err = b.AcceptCode() // an earlier run of that id may have had other code
	}
	if err == nil {
		err = o.begin(ctx, b, s)
	}
	return unfinished(box, made.RunID, "made", err)
}

func (o *runVerbFlags) resume(ctx context.Context, box *inbox.Inbox, name string, s cli.Streams) error {
	r, err := o.find(box, name, s)
	if err == nil {
		err = r.mayRun(o.create.RunsDir)
	}
	if err != nil {
		return err
	}
	if !r.kept.Empty() {
		if err := o.adopt(r.kept, s); err != nil {
			return err
		}
	}
	b, err := orchestrate.Open(ctx, &o.ways, box, r.Dir(), s.Note)
	if err != nil {
		return err
	}
	now, err := b.Standing()
	switch {
	case err != nil:
		return err
	case now.Status == runs.Completed && now.Done:
		return fmt.Errorf("run %s is completed and done: there is nothing to resume", now.Run)
	case now.Status == runs.Completed:
		return fmt.Errorf("run %s is completed: there is nothing to resume; `heartbeat orchestrate`, or a hook with --run, asks for its proof, and `heartbeat run complete %[1]s` does without", now.Run)
	}
	if _, err := o.sessionFile(box, now.Run, s); err != nil {
		return err
	}
	if o.again != "" || now.Status == runs.Failed && now.Guard != "" {
		if err := b.Reopen(ctx, effect.IDIn(o.again)); err != nil {
			return err
		}
	}
	return o.begin(ctx, b, s)
}

// byPerson opens a run for a verb that only a person may use.
func (o *runVerbFlags) byPerson(what string, box *inbox.Inbox, name string, s cli.Streams) (*orchestrate.Bridge, error) {
	if err := byPerson(box, what); err != nil {
		return nil, err
	}
	r, err := o.find(box, name, s)
	if err == nil {
		err = r.mayRun(o.create.RunsDir)
	}
	if err != nil {
		return nil, err
	}
	return orchestrate.OpenDriven(&o.ways, box, r.Dir(), r.kept, s.Note)
}

// complete closes a run that is completed. Otherwise the error tells what is missing.
func (o *runVerbFlags) complete(ctx context.Context, box *inbox.Inbox, name string, s cli.Streams) error {
	b, err := o.byPerson("complete", box, name, s)
	if err != nil {
		return err
	}
	step, err := b.Complete(ctx)
	if err != nil {
		return unfinished(box, b.Run.ID(), "there", err)
	}
	o.line.Stop()
	if !step.Done {
		now, err := b.Standing()
		if err != nil {
			return err
		}
		hint := ""
		if now.Guard == "" {
			hint = " (heartbeat result hands over what an effect waits for)"
		}
		return fmt.Errorf("the run is not completed: %s%s", standingSentence(now), hint)
	}
	return reportDone(&o.InboxFlags, s, step, stepSentence(step))
}

func (o *runVerbFlags) acceptCode(ctx context.Context, box *inbox.Inbox, name string, s cli.Streams) error {
	b, err := o.byPerson("accept-code", box, name, s)
	if err != nil {
		return err
	}
	changed, err := b.AcceptCode()
	if err != nil {
		return err
	}
	what := "nothing of it had changed"
	if len(changed) > 0 {
		what = "what had changed: " + strings.Join(changed, ", ")
	}
	s.Note("the code of run %s is accepted as it is now (%s)", b.Run.ID(), what)
	step, err := b.StepAnew(ctx)
	if err != nil {
		return unfinished(box, b.Run.ID(), "there", err)
	}
	o.line.Stop()
	return cmp.Or(reportDone(&o.InboxFlags, s, step, stepSentence(step)), stuck(step))
}

// unfinished adds to an error how to go on with the run, unless it has to be mended first.
func unfinished(box *inbox.Inbox, id, is string, err error) error {
	if err == nil || errors.Is(err, runs.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("run %s is %s: %w (go on with `%s`)", id, is, err, see.Command(box.Path(), "run resume", id))
}

// begin binds the session, unless another run has got it meanwhile, takes a step, and prints what to do next.
func (o *runVerbFlags) begin(ctx context.Context, b *orchestrate.Bridge, s cli.Streams) error {
	all := begun{}
	switch file, err := o.sessionFile(b.Box, b.Run.ID(), s); {
	case err != nil:
		return err
	case file != nil:
		limit := orchestrate.KeepLimit
		if o.flags.Changed("max-iterations") {
			limit = o.ways.MaxSteps
		}
		bound, err := file.Bind(orchestrate.NewState(b.Run.ID(), b.Run.Prompt(), limit, time.Now()))
		if err != nil {
			return err
		}
		all.Session = &boundSession{file.ID(), file.Path(), bound.Iteration, bound.MaxIterations}
	}
	step, err := b.Step(ctx)
	if err != nil {
		return err
	}
	hook, launch, err := o.wiring(b)
	if err != nil {
		return err
	}
	all.Report, all.Hook, all.program = step, hook, b.Program
	o.line.Stop()
	return cmp.Or(o.report(all, launch, s), stuck(step))
}

func (o *runVerbFlags) report(all begun, launch []string, s cli.Streams) error {
	sentence := stepSentence(all.Report)
	if b := all.Session; b != nil {
		sentence += fmt.Sprintf("; session %s is bound to it, %s", b.ID, orchestrate.IterationFigures(b.Iteration, b.MaxIterations))
	}
	if o.launch {
		s.Note("%s", sentence)
		_, err := fmt.Fprintln(s.Out, words.Shell(launch...))
		return err
	}
	if err := reportDone(&o.InboxFlags, s, all, sentence); err != nil || o.JSON || all.Done || all.Guard != "" {
		return err
	}
	// Nobody is there to allow the tools that hand over a result.
	allowed := fmt.Sprintf("--allowedTools=Edit(/%s/tasks/*/output.*),Bash(%s:*)", all.Dir, words.Shell(all.program, "result"))
	// Commands stay on one line, however narrow the terminal is, because people copy them.
	_, err := fmt.Fprintf(s.Out, "in a session: %s\nunattended:   %s\n",
		words.Shell(append([]string{commandName, "install"}, all.Hook...)...),
		words.Shell(append(append([]string{"heartbeat-launch"}, launch...), "--", "claude", "Say ready.", allowed)...))
	return err
}

// wiring returns the flags with which a hook and a launcher drive the run as this command does.
func (o *runVerbFlags) wiring(b *orchestrate.Bridge) (hook, launch []string, err error) {
	if err := o.ways.Absolute(); err != nil {
		return nil, nil, err
	}
	hook = []string{"--inbox", b.Box.Path(), "--run", b.Run.Dir()}
	launch = slices.Clone(hook)
	var usual cli.RunFlags
	ways := cli.NewFlags("")
	usual.AddWays(ways)
	usual.AddStateDir(ways)
	ways.VisitAll(func(f *pflag.Flag) {
		f = o.flags.Lookup(f.Name)
		if f.Value.String() == f.DefValue {
			return
		}
		hook = append(hook, cli.Spelled(f)...)
		if f.Name != "state-dir" { // the launcher has no such flag
			launch = append(launch, cli.Spelled(f)...)
		}
	})
	return hook, launch, nil
}

// sessionFile returns the state file of the session to bind, or nil. A run that is not over keeps its session.
func (o *runVerbFlags) sessionFile(box *inbox.Inbox, runID string, s cli.Streams) (*orchestrate.StateFile, error) {
	id := cmp.Or(o.session, os.Getenv(orchestrate.SessionVariable), os.Getenv("CLAUDE_CODE_SESSION_ID"))
	if id == "" {
		return nil, nil
	}
	dir, err := orchestrate.StateDir(o.ways.StateDir, os.Getenv)
	if err != nil {
		return nil, err
	}
	file, err := orchestrate.StateFileAt(dir, id)
	if err != nil {
		return nil, err
	}
	return &file, file.CheckFree(runID, func(other string) (bool, error) {
		r, err := o.find(box, other, s)
		if err != nil {
			return false, err
		}
		st, err := r.State()
		return err == nil && (st.Status == runs.Completed || st.Status == runs.Failed), err
	})
}
