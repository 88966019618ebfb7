package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/cli/progress"
	"heartbeat/internal/words"
)

// shownFlags say how a verb shows what it has to show.
type shownFlags struct{ color string }

func (o *shownFlags) addColor(f *pflag.FlagSet) {
	program.AddColor(f, &o.color)
}

func (o *shownFlags) on(out io.Writer) display {
	return display{layout.For(out, o.color), time.Now()}
}

// display is where a verb shows something. See [layout.Output.When].
type display struct {
	layout.Output
	now time.Time
}

// when is a time in a cell of a list.
func (d display) when(t time.Time) string { return d.When(d.now, t) }

// at is a time amid a sentence: "at 2026-03-04 12:00:00" or "3m ago".
func (d display) at(t time.Time) string {
	if d.ForPeople() {
		return words.Ago(d.now, t)
	}
	return "at " + words.Stamp(t)
}

// listPart is how many rows of a list are laid out together: one of a million is
// not kept in memory.
const listPart = 1000

// list is a table that is printed in parts. It keeps its first error.
type list struct {
	display
	*layout.Table
	err error
}

func (d display) list(columns ...layout.Column) *list {
	return &list{display: d, Table: layout.NewTable(columns...)}
}

func (l *list) row(cells ...string) {
	l.Add(cells...)
	l.flushPart()
}

// flushPart prints the rows once there are many.
func (l *list) flushPart() {
	if l.Len() >= listPart {
		l.flush()
	}
}

// flush prints the rows that were not printed yet.
func (l *list) flush() {
	if l.err == nil && !l.Empty() {
		l.err = l.display.Table(l.Table)
	}
}

// end prints the rest, and returns what went wrong on the way.
func (l *list) end() error {
	l.flush()
	return l.err
}

// report prints v with --json, and else the sentence.
func report(i *cli.InboxFlags, s cli.Streams, v any, sentence string) error {
	return program.Report(s, i.JSON, v, sentence)
}

// nothing is the one sentence for an empty list and for nothing to do, such as
// "nothing waits in PATH". It goes to stderr: an empty list is empty.
func nothing(i *cli.InboxFlags, s cli.Streams, happens string, box *inbox.Inbox) {
	if i.JSON {
		return
	}
	if _, err := os.Stat(box.Path()); errors.Is(err, fs.ErrNotExist) {
		s.Note("nothing %s: there is no %s yet", happens, box.Path())
		return
	}
	s.Note("nothing %s in %s", happens, box.Path())
}

func inYellow(string) layout.Style { return layout.Yellow }

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
