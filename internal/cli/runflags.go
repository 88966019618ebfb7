package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
)

// RunFlags are how babysitter runs are driven. The hook and the verbs share them.
type RunFlags struct {
	Dirs    []string
	Command []string // of babysitter, in words
	effect.Options
	// CodeChanges decides what happens to a run whose code has changed since it was bound.
	CodeChanges string
	// StateDir is the folder of babysitter's session state files. Only the hook and `run` have it.
	StateDir string
}

// Add declares the flags.
func (r *RunFlags) Add(f *pflag.FlagSet) {
	f.Var(list{to: &r.Dirs}, "run", "`directory` of a babysitter run to drive by way of the inbox; may be repeated")
	r.AddWays(f)
}

// AddWays declares every flag except --run.
func (r *RunFlags) AddWays(f *pflag.FlagSet) {
	addRemoved(f, "limit each entry of the run (--max-cost-per-entry) or the day (--max-cost-per-day); heartbeat run status says what the run has cost", "max-cost-per-run")
	r.Breakpoints, r.OnUnresolved, r.MaxSteps = effect.DefaultBreakpoints, effect.DefaultUnresolved, effect.DefaultMaxSteps
	r.AddCommand(f)
	f.Var(Choice((*string)(&r.Breakpoints), string(effect.Ask), string(effect.Hold), string(effect.Reject)), "breakpoints", "what becomes of a run's question to a person: the agent asks, it waits for heartbeat breakpoint approve, or it is rejected")
	f.StringVar(&r.RejectReason, "reject-reason", effect.DefaultRejectReason, "with --breakpoints reject: the `text` that the run is told")
	f.Var(Choice((*string)(&r.OnUnresolved), string(effect.PostError), string(effect.Leave)), "on-unresolved", "what becomes of an effect whose entry was set aside: it waits for a person, or the run learns that it failed")
	r.AddCodeChanges(f)
	f.Var(list{&r.Execute, true}, "execute", "`kinds` of effects to carry out here in place of the agent: node, shell")
	f.Var(AtLeast(&r.MaxSteps, 0), "max-iterations", "how often a run's process is run (0: no limit)")
	addRemoved(f, "--max-iterations bounds a run that does not get on", "max-idle=10", "min-iteration-seconds")
}

// AddCodeChanges declares --code-changes.
func (r *RunFlags) AddCodeChanges(f *pflag.FlagSet) {
	r.CodeChanges = "ask"
	f.Var(Choice(&r.CodeChanges, "allow", "ask"), "code-changes", "what becomes of a run whose code has changed since it was bound: its process is run all the same, or it rests until a person accepts that")
}

// AddStateDir declares --state-dir.
func (r *RunFlags) AddStateDir(f *pflag.FlagSet) {
	f.StringVar(&r.StateDir, "state-dir", "", "`directory` of babysitter's session state files (default: BABYSITTER_STATE_DIR, or ~/.a5c/state)")
}

// AddCommand declares --babysitter.
func (r *RunFlags) AddCommand(f *pflag.FlagSet) {
	r.Command = []string{effect.DefaultCommand} // not parsed: parsing reads the disk, and the hook runs in every turn
	f.Var(value[[]string]{&r.Command, "string", func(line string) ([]string, error) {
		command, err := effect.ParseCommand(line)
		if err != nil {
			err = refusal("--babysitter: " + err.Error())
		}
		return command, err
	}, func(command []string) string { return words.Shell(command...) }},
		"babysitter", "the `command` of babysitter, such as \""+effect.Npx+"\"; a path with blanks in quotes")
}

// Absolute makes the paths absolute, so that the flags mean the same in any folder.
func (r *RunFlags) Absolute() (err error) {
	for i := range r.Dirs {
		if r.Dirs[i], err = filepath.Abs(r.Dirs[i]); err != nil {
			return err
		}
	}
	if r.StateDir != "" {
		r.StateDir, err = filepath.Abs(r.StateDir)
	}
	return err
}

// Check refuses kinds of effects that cannot be carried out here.
func (r *RunFlags) Check() error {
	if err := effect.CheckExecute(r.Execute); err != nil {
		return fmt.Errorf("--execute: %w", err)
	}
	return nil
}

// Arguments returns the flags with which another command drives runs in the same way, but for --run.
func (r *RunFlags) Arguments() []string {
	var same RunFlags
	f := NewFlags("runs")
	same.AddWays(f)
	same = *r
	return spellAll(f)
}

// HookArguments returns the flags with which a hook drives the same runs.
func (r *RunFlags) HookArguments() (args []string) {
	if len(r.Dirs) == 0 {
		return nil
	}
	for _, dir := range r.Dirs {
		args = append(args, "--run", dir)
	}
	return append(args, r.Arguments()...)
}

// NotifyFlags name the command that tells a person what needs attention. All programs that work on an inbox share them.
type NotifyFlags struct {
	Command string
	Drained bool
}

// Add declares the flags.
func (n *NotifyFlags) Add(f *pflag.FlagSet) {
	AddNotify(f, &n.Command, "run this `command` once for each thing that needs a person, with one JSON object on its stdin: see heartbeat notify --help")
	f.BoolVar(&n.Drained, "notify-drained", false, "with --notify: also tell when nothing waits any more")
}

// Check refuses --notify-drained without --notify.
func (n *NotifyFlags) Check() error {
	if n.Drained && n.Command == "" {
		return errors.New("--notify-drained says when to run the command of --notify: name one")
	}
	return nil
}

// AddNotify declares --notify, which refuses a command line that cannot work. The command runs in the root folder, so
// that a folder of the agent cannot change the meaning of a name in it.
func AddNotify(f *pflag.FlagSet, command *string, text string) {
	f.Var(value[string]{command, "string", func(line string) (string, error) {
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		// Words that a shell would expand first (~, $HOME, quotes) are left to the shell.
		plain := strings.IndexFunc(first, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+/", r))
		}) < 0
		switch {
		case first == "":
			return "", refusal("is empty: give a command, as in --notify /usr/local/bin/tell-me")
		case strings.ContainsRune(line, 0):
			return "", refusal("has a NUL byte, which no command can have")
		case plain && strings.Contains(first, "/") && first[0] != '/':
			return "", refusal(first + ": the command runs in the root folder: name it by its whole path")
		}
		return line, nil
	}, same}, "notify", text)
}

// GuardHint returns the sentence on why a run has stopped, and how to continue it.
func GuardHint(guard string, outOfSteps bool) string {
	if outOfSteps {
		return guard + ": a greater --max-iterations lets it continue"
	}
	return guard
}
