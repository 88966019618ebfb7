package launch

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/launch/terminal"
)

// commandFlags say how a command is run, whether there is an inbox or not.
type commandFlags struct {
	dir        string
	timeout    cli.Span
	exitSignal string
	idle       cli.Span
	prompt     string
	retries    int
	grace      cli.Span
	size       terminal.Size
	variables  []string
	keepEnv    bool
	recording  string
}

func (c *commandFlags) add(f *pflag.FlagSet) {
	c.timeout, c.grace, c.size = cli.Span(time.Hour), cli.Span(5*time.Second), terminal.DefaultSize
	f.StringVar(&c.dir, "cwd", ".", "`directory` that the command runs in")
	f.Var(&c.timeout, "timeout", "end the command after so many seconds, or a duration (0: never)")
	f.StringVar(&c.exitSignal, "exit-signal", "", "`file` that ends the command with status 0 once it exists; one that exists already is removed")
	f.Var(&c.idle, "idle-timeout", "after so long without output, type a text that may revive the command (0: never)")
	f.StringVar(&c.prompt, "idle-prompt", "Continue", "the `text`, which is typed after ESC")
	f.IntVar(&c.retries, "max-idle-retries", 3, "how often it is typed before the command is ended with status 125")
	f.Var(&c.grace, "grace", "how long a command may take to end before it is killed")
	f.Var(&c.size, "size", "size of the terminal, in place of the size of the one you are at, if any")
	f.StringArrayVar(&c.variables, "env", nil, "add a `variable` to the command's environment: K=V, or K with the value that it has here, which keeps a secret out of the list of processes; may be repeated")
	f.BoolVar(&c.keepEnv, "keep-env", false, "pass on the whole environment, with CI and the variables of a session around this one")
	f.StringVar(&c.recording, "record", "", "record what is printed to a `file` that asciinema plays, replacing it")
}

// check refuses what cannot be meant.
func (c *commandFlags) check(f *pflag.FlagSet) error {
	switch {
	case c.dir == "":
		return errors.New("--cwd is empty: name a directory, or leave the flag out")
	case f.Changed("exit-signal") && c.exitSignal == "":
		return errors.New("--exit-signal is empty: name a file, or leave the flag out")
	case f.Changed("record") && c.recording == "":
		return errors.New("--record is empty: name a file, or leave the flag out")
	case c.retries < 0:
		return fmt.Errorf("--max-idle-retries is %d: it must be 0 or more", c.retries)
	}
	for _, kv := range c.variables {
		if name, _, _ := strings.Cut(kv, "="); name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("--env %q: it takes a name and a value, as in K=V, or the name of a variable", kv)
		}
	}
	return nil
}

// options are the flags as package terminal takes them. withoutCI says that CI was
// taken out of the environment.
func (c *commandFlags) options(f *pflag.FlagSet, environ []string) (o terminal.Options, withoutCI bool, err error) {
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return o, false, fmt.Errorf("working directory %s: %w", c.dir, err)
	}
	variables, err := withValues(c.variables, environ)
	if err != nil {
		return o, false, err
	}
	env, withoutCI := environment(environ, variables, c.keepEnv)
	if f.Changed("cwd") {
		env = setVariable(env, "PWD="+dir)
	}
	return terminal.Options{
		Command: f.Args(), Dir: dir, Env: env,
		Size: c.size, FixedSize: f.Changed("size"),
		Timeout: time.Duration(c.timeout), Grace: time.Duration(c.grace), ExitSignal: c.exitSignal,
		Idle: terminal.Idle{
			Timeout: time.Duration(c.idle), Prompt: c.prompt, Retries: c.retries, Busy: inFlight(env, dir),
		},
		Guard: true,
	}, withoutCI, nil
}
