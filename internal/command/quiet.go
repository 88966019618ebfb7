package command

import (
	"errors"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/progress"
)

// quietFlag is for verbs that may print a line for each of a million things.
type quietFlag struct{ quiet bool }

func (q *quietFlag) addQuiet(f *pflag.FlagSet, each string) {
	f.BoolVarP(&q.quiet, "quiet", "q", false, "print no line for each "+each+", only what went wrong")
}

func (q *quietFlag) checkQuiet(i *cli.InboxFlags) error {
	if q.quiet && i.JSON {
		return errors.New("--quiet prints nothing, and --json a line for each: leave one of them out")
	}
	return nil
}

// withProgress is the verb, shown at a terminal while it takes its time.
func withProgress(v cli.Verb, doing string) cli.Verb {
	build := v.Build
	v.Build = func() (*pflag.FlagSet, cli.Action) {
		f, act := build()
		return f, func(args []string, s cli.Streams) error {
			s, line := busy(s, doing)
			defer line.Stop()
			return act(args, s)
		}
	}
	return v
}

// busy shows at a terminal how far a verb is. What is printed meanwhile goes
// through the streams that it returns.
func busy(s cli.Streams, doing string) (cli.Streams, *progress.Line) {
	line := progress.Start(s.Err, doing)
	s.Out, s.Err = line.Around(s.Out), line.Around(s.Err)
	return s, line
}
