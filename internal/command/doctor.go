package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/command/costs"
	"heartbeat/internal/command/doctor"
	"heartbeat/internal/hook"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/meter"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise/client"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"
)

// doctorFlags are those of doctor.
type doctorFlags struct {
	inbox    string
	project  string
	agent    string
	settings []string
	json     bool
	shownFlags
}

func doctorVerb() cli.Verb {
	return cli.Verb{
		Name:  "doctor",
		Short: "look for what would keep the hook from working",
		Long: `Look at everything that a session with the hook depends on: the wiring in all
settings files that Claude Code merges, the binary, the cap on blocks, the
folder's trust, the environment, the client's release, and the inbox's
directory, file system and state. Each check is one line: ok, warn or fail, what
was found, and the fix. Nothing is changed.

With --agent codex it asks Codex which hooks it has for the project, and whether
it trusts them: under codex exec an untrusted hook does not run, without a word.

Exit status: 0 nothing would lose or stop work, 1 a check failed.`,
		Example: `heartbeat doctor
heartbeat doctor --project ~/work --settings session.json --json`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := &doctorFlags{}
			f := cli.NewFlags("doctor")
			cli.AddNamedInbox(f, &o.inbox)
			f.Lookup("inbox").Usage += "; without it, the one that is wired"
			o.agent = agents[0]
			f.Var(cli.Choice(&o.agent, agents...), "agent", "the client of the sessions")
			f.StringVar(&o.project, "project", ".", "the `directory` that the session is started in")
			f.StringArrayVar(&o.settings, "settings", nil, "a settings `file` beside the usual ones, as given to claude --settings")
			f.BoolVar(&o.json, "json", false, "print one JSON object for each check")
			o.addColor(f)
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				if o.agent == codexAgent && len(o.settings) > 0 {
					return cli.Usage(errors.New("--settings is about Claude Code: Codex says itself which hooks it has"))
				}
				return o.run(s)
			}
		},
	}
}

// codexHooks asks Codex for the hooks of a project.
func codexHooks(project string) func(context.Context, string) ([]client.CodexHook, error) {
	return func(ctx context.Context, program string) ([]client.CodexHook, error) {
		dir, err := filepath.Abs(project)
		if err != nil {
			return nil, err
		}
		return client.CodexHooks(ctx, []string{program}, os.Environ(), dir)
	}
}

func (o *doctorFlags) run(s cli.Streams) error {
	in, err := o.input()
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	checks := doctor.Run
	if o.agent == codexAgent {
		checks = doctor.Codex
	}
	all := checks(in)
	if err := o.printChecks("doctor", all, o.json, s); err != nil {
		return err
	}
	switch n := doctor.Count(all, doctor.Fail); n {
	case 0:
		return nil
	case 1:
		return errors.New("doctor: 1 check failed")
	default:
		return fmt.Errorf("doctor: %d checks failed", n)
	}
}

// printChecks prints what the verb has checked.
func (o *shownFlags) printChecks(verb string, all []doctor.Check, asJSON bool, s cli.Streams) (err error) {
	if asJSON {
		err = doctor.WriteJSON(s.Out, all)
	} else {
		err = doctor.WriteText(o.on(s.Out).Output, all)
	}
	if err != nil {
		return fmt.Errorf("%s: print the checks: %w", verb, err)
	}
	return nil
}

func (o *doctorFlags) input() (doctor.Input, error) {
	in := doctor.Input{
		Environ: os.Environ(), Managed: settings.ManagedDir(), UID: os.Geteuid(), Now: time.Now(),
		Parse: parseHook, Version: clientVersion, CodexHooks: codexHooks(o.project), Runs: drivenRuns, NotCounted: notCounted, Prices: pricesOff, Babysitter: babysitterVersion,
	}
	in.Home, _ = os.UserHomeDir() // "" if there is none
	in.Stop, in.StopErr = cli.Beside(hook.CommandName)
	in.Meter, in.MeterErr = cli.Beside(settings.MeterName)
	var err error
	if in.Project, err = filepath.Abs(o.project); err != nil {
		return in, err
	}
	if info, err := os.Stat(in.Project); err != nil {
		return in, fmt.Errorf("look at the project: %w", err)
	} else if !info.IsDir() {
		return in, fmt.Errorf("look at the project: %s is not a directory", in.Project)
	}
	if o.inbox != "" {
		if in.Inbox, err = filepath.Abs(o.inbox); err != nil {
			return in, err
		}
	}
	for _, path := range o.settings {
		if path, err = filepath.Abs(path); err != nil {
			return in, err
		}
		in.Settings = append(in.Settings, path)
	}
	return in, nil
}

// notCounted says why limits of an inbox's sessions do not hold.
func notCounted(path string) []string {
	box, err := cli.OpenInbox(path, inbox.Options{})
	if err != nil {
		return nil // the other checks report it
	}
	return see.Glance(context.Background(), box).NotCounted()
}

// pricesOff says that the table of prices cannot be read, or seems to be out of date by what the
// client itself said in an inbox; "" where neither is so.
func pricesOff(path string) string {
	if _, err := meter.Prices(); err != nil {
		return err.Error()
	}
	box, err := cli.OpenInbox(path, inbox.Options{})
	if err != nil {
		return "" // the other checks report it
	}
	var check costs.Check
	_, _ = box.Costs(func(c inbox.Cost) bool { // likewise
		check.Add(c.SessionID, c.Amount)
		return true
	})
	return check.Sentence()
}

// drivenRuns looks at the runs that an inbox drives, as a step would.
func drivenRuns(path string) (all []doctor.DrivenRun) {
	box, err := cli.OpenInbox(path, inbox.Options{})
	if err != nil {
		return nil // the other checks report it
	}
	driven, strange, _ := orchestrate.Driven(box) // likewise
	for _, of := range driven {
		r, err := runs.Open(of.Dir)
		if err == nil {
			_, err = r.State()
		}
		all = append(all, doctor.DrivenRun{Dir: of.Dir, Waits: of.Waits, Err: err, Damaged: errors.Is(err, runs.ErrCorrupt)})
	}
	for _, name := range strange {
		all = append(all, doctor.DrivenRun{Strange: name})
	}
	return all
}

// parseHook reads a hook's arguments as the hook itself would in a session whose
// variable names that inbox.
func parseHook(args []string, inbox string) (doctor.Hook, error) {
	var h hook.Flags
	flags := h.Set()
	if err := cli.FlagError(flags.Parse(args), flags); err != nil {
		return doctor.Hook{}, err
	}
	if h.Help || h.Version {
		return doctor.Hook{}, errors.New("with --help or --version it only prints")
	}
	if h.NoInput {
		return doctor.Hook{}, errors.New("with --no-input it takes every stop for an answer, without the client's word")
	}
	if !flags.Changed("inbox") {
		h.Inbox = inbox
	}
	if err := h.Check(flags, flags.Args()); err != nil {
		return doctor.Hook{}, err
	}
	return doctor.Hook{
		Inbox: h.Inbox, Persist: h.Mode == hook.ModePersist, Idle: time.Duration(h.Idle), Rewake: h.Rewake,
		Runs: h.Runs.Dirs, Babysitter: h.Runs.Command,
	}, nil
}

// babysitterVersion asks a babysitter command for its version.
func babysitterVersion(ctx context.Context, command string) (version, said string, err error) {
	words, err := effect.ParseCommand(command)
	if err != nil {
		return "", "", err
	}
	cli := babysitter.CLI{Command: words, Note: func(format string, args ...any) { said = fmt.Sprintf(format, args...) }}
	version, err = cli.Version(ctx)
	return version, said, err
}

func clientVersion(ctx context.Context, bin string) (string, error) {
	cmd := guardian.Group(ctx, syscall.SIGKILL, bin, "--version") // a wrapper's child goes with it
	cmd.Env = claude.WithoutIdentity(os.Environ())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("run %s --version: it took too long", bin)
	case err != nil:
		return "", fmt.Errorf("run %s --version: %w: %s", bin, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}
