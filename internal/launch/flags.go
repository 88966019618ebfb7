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

// launch is what the command line says.
type launch struct {
	dir        string
	timeout    cli.Span
	exitSignal string
	idle       cli.Span
	prompt     string
	retries    int
	grace      cli.Span
	size       terminal.Size
	add        []string
	keepEnv    bool
	recording  string
	manage

	help, manual, version bool
}

// set has the flags end where the command begins, with or without `--`.
func (l *launch) set() *pflag.FlagSet {
	f := cli.NewFlags(CommandName)
	f.SetInterspersed(false)
	l.timeout, l.grace, l.size = cli.Span(time.Hour), cli.Span(5*time.Second), terminal.DefaultSize
	f.StringVar(&l.dir, "cwd", ".", "`directory` that the command runs in")
	f.Var(&l.timeout, "timeout", "end the command after so many seconds, or a duration (0: never)")
	f.StringVar(&l.exitSignal, "exit-signal", "", "`file` that ends the command once it is there, with status 0; one that is there already is removed")
	f.Var(&l.idle, "idle-timeout", "silence after which the command is typed at to bring it back to life (0: never)")
	f.StringVar(&l.prompt, "idle-prompt", "Continue", "`text` that is typed then, behind ESC")
	f.IntVar(&l.retries, "max-idle-retries", 3, "how often, before the command is ended with status 125")
	f.Var(&l.grace, "grace", "how long a command that is to end may take before it is killed")
	f.Var(&l.size, "size", "size of the terminal, instead of that of the terminal one is at, if any")
	f.StringArrayVar(&l.add, "env", nil, "add a `variable` to the command's environment: K=V, or K with the value that it has here, which keeps a secret out of the list of processes; may be repeated")
	f.BoolVar(&l.keepEnv, "keep-env", false, "pass on the whole environment, with CI and the variables of a session around this one")
	f.StringVar(&l.recording, "record", "", "record what is printed to a `file` that asciinema plays; one that is there is replaced")
	l.manage.add(f)
	f.BoolVar(&l.manual, "man", false, "print this as a manual page, for man -l -")
	f.BoolVar(&l.version, "version", false, "show the version")
	f.BoolVarP(&l.help, "help", "h", false, "show this help")
	return f
}

// check refuses what cannot be meant.
func (l *launch) check(f *pflag.FlagSet) error {
	switch {
	case f.NArg() == 0 || f.Arg(0) == "":
		return errors.New("no command: name it behind the flags, as in " + CommandName + " -- claude")
	case l.dir == "":
		return errors.New("--cwd is empty: name a directory, or leave the flag out")
	case f.Changed("exit-signal") && l.exitSignal == "":
		return errors.New("--exit-signal is empty: name a file, or leave the flag out")
	case f.Changed("record") && l.recording == "":
		return errors.New("--record is empty: name a file, or leave the flag out")
	case l.retries < 0:
		return fmt.Errorf("--max-idle-retries is %d: it must be 0 or more", l.retries)
	}
	for _, kv := range l.add {
		if name, _, _ := strings.Cut(kv, "="); name == "" || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("--env %q: it takes a name and a value, as in K=V, or the name of a variable", kv)
		}
	}
	return l.manage.check(f, f.Args())
}

// options are the same for who runs it.
func (l *launch) options(f *pflag.FlagSet, environ []string, v *voice) (terminal.Options, error) {
	dir, err := filepath.Abs(l.dir)
	if err != nil {
		return terminal.Options{}, fmt.Errorf("working directory %s: %w", l.dir, err)
	}
	add, err := withValues(l.add, environ)
	if err != nil {
		return terminal.Options{}, err
	}
	env, without := environment(environ, add, l.keepEnv)
	if without != "" && l.output != showMail { // nobody has to look at it
		v.say("%s is taken out of the command's environment, since it says that nobody is at the terminal (--keep-env keeps it)", without)
	}
	if f.Changed("cwd") {
		env = setVariable(env, "PWD="+dir)
	}
	return terminal.Options{
		Command: f.Args(), Dir: dir, Env: env,
		Size: l.size, FixedSize: f.Changed("size"),
		Timeout: time.Duration(l.timeout), Grace: time.Duration(l.grace), ExitSignal: l.exitSignal,
		Idle: terminal.Idle{
			Timeout: time.Duration(l.idle), Prompt: l.prompt, Retries: l.retries, Busy: inFlight(env, dir),
		},
		Guard: true,
		Note:  v.say,
	}, nil
}
