package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
)

type resultFlags struct {
	valueFile, textFile, text, failure, failureName string
}

var resultVerb = cli.Verb{
	Name:  "result",
	Args:  "EFFECT [-]",
	Short: "hand over the result of an effect of a babysitter run",
	Long: `Hand over what a babysitter run asked for: the result of an effect, which is any
JSON value, from --value-file or from stdin (-), or a text. A result that does not
match the schema of the task is refused, and the error tells what is wrong with it.
With --error the process learns that the task failed, and why. An effect has one
result.

The result is kept beside the inbox, durably, and the run gets it with its next
step: that of the hook at the end of the turn, of a launcher, or of orchestrate.
This command runs nothing. It knows only the runs that the inbox drives, and takes
no answer to a breakpoint unless they are driven with --breakpoints ask. While an
agent works on the effect's entry, no other agent's result is taken; yours is.

An agent hands over only regular files below the directory that its session works
in, or that of the effect's task, and only to an inbox that its session works on.

Exit status: 0 it was handed over, 1 it was not.`,
	Example: `heartbeat result 01M7XNH40T944T6T9N87JFKQKG --value-file result.json
echo '{"ok":true}' | heartbeat result 01M7XNH40T944T6T9N87JFKQKG -
heartbeat result 01M7XNH40T944T6T9N87JFKQKG --error "the tests need a database"`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		var o resultFlags
		i.Add(f)
		f.StringVar(&o.valueFile, "value-file", "", "`file` with the result, in JSON")
		f.StringVar(&o.textFile, "text-file", "", "`file` with the result, a text")
		f.StringVar(&o.text, "text", "", "the result, a `text`")
		f.StringVar(&o.failure, "error", "", "the task failed: why, in a `message`")
		f.StringVar(&o.failureName, "error-name", "TaskError", "the `name` that the process knows the failure by")
		return onInbox("", changing(&i), func(args []string) error { return o.check(f, args) }, func(box *inbox.Inbox, args []string, s cli.Streams) error {
			return result(box, &i, &o, args, f, s)
		})
	},
}

func (o *resultFlags) check(f *pflag.FlagSet, args []string) error {
	given := 0
	for _, name := range []string{"value-file", "text-file", "text", "error"} {
		if f.Changed(name) {
			given++
		}
	}
	switch {
	case len(args) == 0 || args[0] == "":
		return errors.New("no effect: name the EFFECT that the result belongs to")
	case len(args) > 2 || len(args) == 2 && args[1] != "-":
		return fmt.Errorf("unexpected argument %q", args[1])
	case given+len(args)-1 != 1:
		return errors.New("a result is one of --value-file, --text-file, --text, --error, or - for JSON on stdin")
	}
	return nil
}

const maxResult = 64 << 20 // bounds a result, in bytes

func result(box *inbox.Inbox, i *cli.InboxFlags, o *resultFlags, args []string, f *pflag.FlagSet, s cli.Streams) error {
	id := effect.IDIn(args[0])
	all, err := knownRuns(box, nil, s)
	if err != nil {
		return err
	}
	r, err := runOf(all, id)
	if err != nil {
		return err
	}
	b := &orchestrate.Bridge{Box: box, Run: r.Run}
	var failure *babysitter.Failure
	var value []byte
	if f.Changed("error") {
		failure = &babysitter.Failure{Name: o.failureName, Message: o.failure}
	} else if value, err = o.value(b, id, f, len(args) == 2, s.In); err != nil {
		return fmt.Errorf("read the result: %w", err)
	}
	err = b.HandOver(os.Getpid(), id, value, failure)
	switch {
	case errors.Is(err, orchestrate.ErrNotJSON):
		return fmt.Errorf("%w: hand a text over with --text or --text-file", err)
	case errors.Is(err, orchestrate.ErrForPerson):
		return fmt.Errorf("%w: the person answers with `heartbeat breakpoint`", err)
	case err != nil:
		return err
	}
	return reportDone(i, s, map[string]string{"run": b.Run.ID(), "effect": id}, "the result of "+id+" was handed over: run "+b.Run.ID()+" gets it with its next step")
}

func (o *resultFlags) value(b *orchestrate.Bridge, id string, f *pflag.FlagSet, stdin bool, in *os.File) ([]byte, error) {
	switch {
	case f.Changed("text"):
		return orchestrate.TextValue(o.text), nil
	case stdin:
		value, err := program.InUTF8(io.ReadAll(io.LimitReader(in, maxResult+1)))
		if err == nil && len(value) > maxResult {
			err = fmt.Errorf("stdin has more than %d bytes", maxResult)
		}
		return value, err
	}
	dirs, err := b.Readable(os.Getpid(), id)
	if err != nil {
		return nil, err
	}
	read := func(path string) ([]byte, error) {
		if len(dirs) == 0 {
			return program.InUTF8(disk.ReadGiven(path, maxResult))
		}
		return program.InUTF8(disk.ReadBelow(path, maxResult, dirs...))
	}
	if f.Changed("text-file") {
		text, err := read(o.textFile)
		return orchestrate.TextValue(string(text)), err
	}
	return read(o.valueFile)
}
