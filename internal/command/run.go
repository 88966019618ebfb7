package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	runs "heartbeat/orchestrate/run"
)

type runVerbFlags struct {
	cli.InboxFlags
	ways    cli.RunFlags
	create  babysitter.CreateOptions
	inputs  string
	session string
	launch  bool   // print only the flags that a launcher needs
	again   string // an effect that resume asks for once more
	flags   *pflag.FlagSet
	line    *layout.ProgressLine // while a step is taken
}

var runsVerb = cli.Verb{
	Name:  "run",
	Args:  "start|resume|accept-code|complete|status [RUN]",
	Short: "make a babysitter run, go on with one, or show how they stand",
	Long: `Make babysitter runs whose effects become entries of the inbox, go on with them,
or show how they stand.

RUN is the id of a run in --runs-dir, or of one that this inbox has driven, or the
path of its directory.`,
	Example: `heartbeat run start --entry process.mjs#process --process-id greet --inputs inputs.json
heartbeat run resume r1
heartbeat run status --json`,
	Verbs: []cli.Verb{startRunVerb, resumeRunVerb, acceptCodeVerb, completeRunVerb, runStatusVerb},
}

var startRunVerb = runVerbOf(cli.Verb{
	Name:  "start",
	Short: "make a run of a process, and take its first step",
	Long: `Make a run of a process, and take its first step: what the run waits for is in the
inbox then. Every step runs the code that the run names, as you. It prints how to wire
a session that goes on with the run.

With a session (--session-id, or within one) its state file, which other tools of
babysitter read, is bound to the run. A session that is bound to another run which
is not over is refused before anything is made.

Exit status: 0 done; 1 not done; 3 the run goes no further by itself.`,
	Example: `heartbeat run start --entry process.mjs#process --process-id greet --inputs inputs.json`,
}, (*runVerbFlags).start, func(o *runVerbFlags, f *pflag.FlagSet) {
	f.StringVar(&o.create.Entry, "entry", "", "the process, a `module` and its export: FILE#EXPORT (default export: process)")
	f.StringVar(&o.create.ProcessID, "process-id", "", "the `id` of the process")
	f.StringVar(&o.inputs, "inputs", "", "a `file` with the inputs of the process, in JSON")
	f.StringVar(&o.create.RunID, "run-id", "", "the `id` of the run (default: a random one)")
	f.StringVar(&o.create.Prompt, "prompt", "", "what a person asked for, a `text` that is kept with the run")
	f.StringVar(&o.create.Revision, "process-revision", "", "the `revision` of the process, kept with the run")
	f.StringVar(&o.create.Request, "request", "", "the `id` of what asked for the run, kept with it")
	f.BoolVar(&o.create.DryRun, "dry-run", false, "show the run that would be made, and make nothing")
	f.BoolVar(&o.create.NonInteractive, "non-interactive", false, "babysitter approves every breakpoint by itself")
	o.addDriving(f)
})

var resumeRunVerb = runVerbOf(cli.Verb{
	Name:  "resume",
	Args:  "RUN",
	Short: "go on with a run that failed, reached its limit, or lost its session",
	Long: `Take the next step of a run that failed, reached its limit of steps, or lost its
session. Every step runs the code that the run names, as you. It prints how to wire a
session that goes on with the run.

With a session (--session-id, or within one) its state file, which other tools of
babysitter read, is bound to the run. A session that is bound to another run which
is not over is refused.

Exit status: 0 done; 1 not done, as with a run that is completed already; 3 the run
goes no further by itself.`,
	Example: `heartbeat run resume r1
heartbeat run resume r1 --max-iterations 512`,
}, (*runVerbFlags).resume, func(o *runVerbFlags, f *pflag.FlagSet) {
	f.StringVar(&o.again, "again", "", "let a run that failed because this `effect` was posted as failed ask for it once more")
	o.addDriving(f)
})

var acceptCodeVerb = runVerbOf(cli.Verb{
	Name:  "accept-code",
	Args:  "RUN",
	Short: "have a run go on whose code has changed",
	Long: `Accept the code of a run as it is now, and take the run's next step with it. A run is
bound to its code by run start, install, the launcher, or whatever drives it first:
the module of its process, what that and its imports name, and the packages of the
project that these need. If any of that has changed, its steps do nothing until a
person runs this verb. Look at what has changed first: a step runs it, as you. An agent
cannot run it from within its session.

Exit status: 0 done; 1 not done; 3 the run goes no further by itself.`,
	Example: `heartbeat run accept-code r1`,
}, (*runVerbFlags).acceptCode, func(o *runVerbFlags, f *pflag.FlagSet) { o.ways.AddCommand(f) })

var completeRunVerb = runVerbOf(cli.Verb{
	Name:  "complete",
	Args:  "RUN",
	Short: "close a run that is completed, without an agent",
	Long: `Take a run's next step, and mark the run as done if it is completed then: no agent is
asked for its proof, and an entry that asks for it is not delivered any more. The
results that heartbeat result has handed over are posted first, and the process is run
for them. An agent cannot run this from within its session.

Exit status: 0 the run is done; 1 it is not, and waits for what the sentence names.`,
	Example: `heartbeat run complete r1`,
}, (*runVerbFlags).complete, func(o *runVerbFlags, f *pflag.FlagSet) { o.ways.AddCommand(f) })

var runStatusVerb = runVerbOf(cli.Verb{
	Name:  "status",
	Args:  "[RUN]",
	Short: "show how runs stand",
	Long: `Show a run without calling babysitter or changing anything: how it stands, what is
pending, which of that is in the inbox, and what it waits for. Without RUN, show all
runs that this inbox has driven.`,
	Example: `heartbeat run status --json`,
}, (*runVerbFlags).status, func(*runVerbFlags, *pflag.FlagSet) {})

// runAction is what a verb of run does. name is its RUN, or "".
type runAction func(o *runVerbFlags, ctx context.Context, box *inbox.Inbox, name string, s cli.Streams) error

// runVerbOf gives v its action, the flags of all verbs of run, and those that add declares.
func runVerbOf(v cli.Verb, act runAction, add func(*runVerbFlags, *pflag.FlagSet)) cli.Verb {
	v.Build = func(f *pflag.FlagSet) cli.Action {
		o := &runVerbFlags{flags: f}
		o.InboxFlags.Add(f)
		f.StringVar(&o.create.RunsDir, "runs-dir", "", "the `directory` that runs are in (default: BABYSITTER_RUNS_DIR, or .a5c/runs)")
		add(o, f)
		check := func(args []string) error { return o.check(v.Name, args) }
		return onInbox("", changing(&o.InboxFlags), check, func(box *inbox.Inbox, args []string, s cli.Streams) error {
			ctx, stop := program.UntilSignal(0)
			defer stop()
			if v.Name != "status" {
				o.line = layout.StartLine(s.Err, "waiting for babysitter")
				defer o.line.Stop()
				s.Err = o.line.Around(s.Err)
			}
			return act(o, ctx, box, strings.Join(args, ""), s)
		})
	}
	return v
}

// addDriving declares the flags of the verbs that take a step.
func (o *runVerbFlags) addDriving(f *pflag.FlagSet) {
	f.StringVar(&o.session, "session-id", "", "the `id` of the session to bind (default: that of the session around this command)")
	f.BoolVar(&o.launch, "launch-flags", false, "print only the flags for heartbeat-launch, quoted for a shell; the rest goes to stderr")
	o.ways.AddStateDir(f)
	o.ways.AddWays(f)
}

func (o *runVerbFlags) check(what string, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q", args[1])
	case what != "start" && what != "status" && len(args) == 0 || slices.Contains(args, ""):
		return errors.New("which run? give its id or its directory")
	case o.launch && o.JSON:
		return errors.New("--launch-flags is what start and resume print in place of --json: leave one of them out")
	case o.launch && o.create.DryRun:
		return errors.New("--launch-flags is about a run that is made, and --dry-run makes none: leave one of them out")
	case what == "start" && o.create.Entry == "":
		return errors.New("no process: name its module with --entry")
	case what == "start" && o.create.ProcessID == "":
		return errors.New("no process id: give one with --process-id")
	case what == "status":
		return nil
	}
	return o.ways.Check()
}

// find returns the run with that path or id.
func (o *runVerbFlags) find(box *inbox.Inbox, name string, s cli.Streams) (knownRun, error) {
	places := []string{name}
	if !strings.ContainsRune(name, filepath.Separator) {
		places = append(places, filepath.Join(runsDir(o.create.RunsDir), name))
	}
	for _, dir := range places {
		switch found, err := knownRuns(box, []string{dir}, s); {
		case err == nil:
			return found[0], nil
		case !errors.Is(err, runs.ErrNoRun):
			return knownRun{}, err
		}
	}
	known, err := knownRuns(box, nil, s)
	if err != nil {
		return knownRun{}, err
	}
	if i := slices.IndexFunc(known, func(k knownRun) bool { return filepath.Base(k.Dir()) == name }); i >= 0 {
		return known[i], nil
	}
	return knownRun{}, fmt.Errorf("there is no run %s: neither in %s nor among those of this inbox", name, runsDir(o.create.RunsDir))
}

// adopt drives the run as it was driven before, unless a flag decides otherwise or is needed to allow that.
func (o *runVerbFlags) adopt(kept orchestrate.Options, s cli.Streams) error {
	w := &o.ways
	if len(kept.Execute) > 0 && !o.flags.Changed("execute") {
		return cli.Usage(fmt.Errorf("the run was driven with --execute %[1]s: say --execute %[1]s again, or --execute= to have the agent do that", strings.Join(kept.Execute, ",")))
	}
	if b := kept.Breakpoints; b != "" && b != w.Breakpoints && !o.flags.Changed("breakpoints") {
		s.Note("the run was driven with --breakpoints %s, and is with %s from here on", b, w.Breakpoints)
	}
	if !o.flags.Changed("reject-reason") {
		w.RejectReason = kept.RejectReason
	}
	if !o.flags.Changed("on-unresolved") {
		w.OnUnresolved = kept.OnUnresolved
	}
	if !o.flags.Changed("max-iterations") {
		w.MaxSteps = kept.MaxSteps
	}
	return nil
}
