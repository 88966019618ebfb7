package command

import (
	"context"
	"errors"
	"fmt"
	"heartbeat/internal/cli"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	runs "heartbeat/orchestrate/run"
)

// runVerbFlags are those of run.
type runVerbFlags struct {
	cli.InboxFlags
	ways    cli.RunFlags
	create  babysitter.CreateOptions
	inputs  string
	session string
	// launch has only the flags printed that a launcher has to have.
	launch bool
	// again is an effect that resume has asked for once more.
	again  string
	dryRun bool
	flags  *pflag.FlagSet
}

// ofStart are the flags that say what a run is made of.
var ofStart = []string{"entry", "process-id", "process-revision", "request", "inputs", "run-id", "prompt", "non-interactive", "dry-run"}

func runsVerb() cli.Verb {
	return cli.Verb{
		Name:  "run",
		Args:  "start|resume|status [RUN]",
		Words: []string{"start", "resume", "status"},
		Short: "make a babysitter run, go on with one, or show how they stand",
		Long: `start makes a run of a process, and takes its first step: what the run waits for
is in the inbox then. Every step runs the code that the run names, as you. resume does the same for a run that is there already, be it
that it failed or that its session is gone. Both say how a session is to be wired
to go on with it. RUN is the id of a run in --runs-dir, or of one that this inbox
has driven, or the path of its directory.

With a session (--session-id, or within one) its state file, which other tools of
babysitter read, is bound to the run. A session that is bound to another run which
is not over is refused before anything is made.

status shows a run without calling babysitter or changing anything: how it stands,
what is pending, what of that is in the inbox, and what it waits for. Without RUN it
shows all that this inbox has driven.

Exit status: 0 done; 1 not done, as with a run that is completed already; 3 the run
was made, or resumed, and goes no further by itself.`,
		Example: `heartbeat run start --inbox work/inbox.jsonl --entry process.mjs#process --process-id greet --inputs inputs.json
heartbeat run resume --inbox work/inbox.jsonl r1
heartbeat run status --inbox work/inbox.jsonl --json`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := &runVerbFlags{flags: cli.NewFlags("run")}
			o.add(o.flags)
			return o.flags, o.act
		},
	}
}

func (o *runVerbFlags) add(f *pflag.FlagSet) {
	o.InboxFlags.Add(f)
	f.StringVar(&o.create.Entry, "entry", "", "start: the process, a `module` and its export: FILE#EXPORT (without: #process)")
	f.StringVar(&o.create.ProcessID, "process-id", "", "start: the `id` of the process")
	f.StringVar(&o.inputs, "inputs", "", "start: a `file` with the inputs of the process, in JSON")
	f.StringVar(&o.create.RunID, "run-id", "", "start: the `id` of the run (default: one is drawn)")
	f.StringVar(&o.create.Prompt, "prompt", "", "start: what a person asked for, a `text` that is kept with the run")
	f.StringVar(&o.create.Revision, "process-revision", "", "start: the `revision` of the process, kept with the run")
	f.StringVar(&o.create.Request, "request", "", "start: the `id` of what asked for the run, kept with it")
	f.BoolVar(&o.dryRun, "dry-run", false, "start: show the run that would be made, and make nothing")
	f.BoolVar(&o.create.NonInteractive, "non-interactive", false, "start: babysitter approves every breakpoint by itself")
	f.StringVar(&o.create.RunsDir, "runs-dir", "", "the `directory` that runs are in (default: BABYSITTER_RUNS_DIR, or .a5c/runs)")
	f.StringVar(&o.session, "session-id", "", "the `id` of the session to bind (default: that of the session around this command)")
	f.StringVar(&o.again, "again", "", "resume: have the run, which failed with an `effect` that was posted as failed, ask for that once more")
	f.BoolVar(&o.launch, "launch-flags", false, "print only the flags for heartbeat-launch, quoted for a shell; the rest goes to stderr")
	o.ways.AddStateDir(f)
	o.ways.AddWays(f)
}

func (o *runVerbFlags) act(args []string, s cli.Streams) error {
	if err := o.check(args); err != nil {
		return cli.Usage(err)
	}
	ctx, stop := endOnSignal(context.Background())
	defer stop()
	box, err := o.Open()
	if err != nil {
		return err
	}
	switch args[0] {
	case "start":
		return o.start(ctx, box, s)
	case "resume":
		return o.resume(ctx, box, args[1], s)
	}
	return o.status(box, args[1:], s)
}

func (o *runVerbFlags) check(args []string) error {
	if len(args) == 0 {
		return errors.New("start, resume or status?")
	}
	most := map[string]int{"start": 1, "resume": 2, "status": 2}[args[0]]
	switch {
	case most == 0:
		return fmt.Errorf("unexpected argument %q: it is start, resume or status", args[0])
	case len(args) > most:
		return fmt.Errorf("unexpected argument %q", args[most])
	case args[0] == "resume" && len(args) < 2:
		return errors.New("which run? give its id or its directory")
	case o.launch && (o.JSON || args[0] == "status"):
		return errors.New("--launch-flags is what start and resume print in place of --json: leave one of them out")
	case o.launch && o.dryRun:
		return errors.New("--launch-flags is about a run that is made, and --dry-run makes none: leave one of them out")
	case o.again != "" && args[0] != "resume":
		return errors.New("--again is about a run that failed: use it with resume")
	case args[0] == "start" && o.create.Entry == "":
		return errors.New("no process: name its module with --entry")
	case args[0] == "start" && o.create.ProcessID == "":
		return errors.New("no process id: give one with --process-id")
	}
	for _, name := range ofStart {
		if args[0] != "start" && o.flags.Changed(name) {
			return fmt.Errorf("--%s is about a run that is made: leave it out", name)
		}
	}
	return o.ways.Check()
}

// find is the run that a person means, by its path or its id.
func (o *runVerbFlags) find(box *inbox.Inbox, name string, s cli.Streams) (knownRun, error) {
	known, err := knownRuns(box, nil, s)
	if err != nil {
		return knownRun{}, err
	}
	places := []string{name}
	if !strings.ContainsRune(name, filepath.Separator) {
		places = append(places, filepath.Join(runsDir(o.create.RunsDir), name))
	}
	for _, dir := range places {
		if dir, err = filepath.Abs(dir); err != nil {
			return knownRun{}, err
		}
		found := knownRun{named: true}
		if found.Run, err = runs.Open(dir); errors.Is(err, runs.ErrNoRun) {
			continue
		}
		if i := slices.IndexFunc(known, func(k knownRun) bool { return k.Dir() == dir }); i >= 0 {
			found.kept = known[i].kept
		}
		return found, err
	}
	if i := slices.IndexFunc(known, func(k knownRun) bool { return filepath.Base(k.Dir()) == name }); i >= 0 {
		return known[i], nil
	}
	return knownRun{}, fmt.Errorf("there is no run %s: neither in %s nor among those of this inbox", name, runsDir(o.create.RunsDir))
}

// adopt takes over how a run was driven, but for what the flags say and for what only
// they may allow.
func (o *runVerbFlags) adopt(kept orchestrate.Options, s cli.Streams) error {
	w := &o.ways
	if len(kept.Execute) > 0 && !o.flags.Changed("execute") {
		return cli.Usage(fmt.Errorf("the run was driven with --execute %[1]s: say --execute %[1]s again, or --execute= to have the agent do that", strings.Join(kept.Execute, ",")))
	}
	if b := kept.Breakpoints; b != "" && string(b) != w.Breakpoints && !o.flags.Changed("breakpoints") {
		s.Note("the run was driven with --breakpoints %s, and is with %s from here on", b, w.Breakpoints)
	}
	for name, take := range map[string]func(){
		"reject-reason":  func() { w.RejectReason = kept.RejectReason },
		"on-unresolved":  func() { w.OnUnresolved = string(kept.OnUnresolved) },
		"max-iterations": func() { w.MaxIterations = kept.MaxSteps },
		"max-idle":       func() { w.MaxIdle = kept.MaxIdle },
	} {
		if !o.flags.Changed(name) {
			take()
		}
	}
	return nil
}
