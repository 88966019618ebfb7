package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/words"
)

// shownFlags say how a verb shows its output.
type shownFlags struct{ color string }

func (o *shownFlags) addColor(f *pflag.FlagSet) {
	program.AddColor(f, &o.color)
}

func (o *shownFlags) display(out io.Writer) display {
	return display{layout.For(out, o.color), time.Now()}
}

// display is where a verb shows something. See [layout.Output.When].
type display struct {
	layout.Output
	now time.Time
}

func (d display) when(t time.Time) string { return d.When(d.now, t) }

// at formats a time within a sentence: "at 2026-03-04 12:00:00" or "3m ago".
func (d display) at(t time.Time) string {
	if d.ForPeople() {
		return words.Ago(d.now, t)
	}
	return "at " + words.Stamp(t)
}

// listPart is how many rows of a list are laid out together, so that a list of a million is not kept in memory.
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

func (l *list) flushPart() {
	if l.Len() >= listPart {
		l.flush()
	}
}

func (l *list) flush() {
	if l.err == nil && l.Len() > 0 {
		l.err = l.display.Table(l.Table)
	}
}

// end prints the rest, and returns the first error.
func (l *list) end() error {
	l.flush()
	return l.err
}

// printEach prints each thing as JSON, on a line of its own.
func printEach[T any](to io.Writer, all []T) error {
	out := bufio.NewWriter(to)
	for _, v := range all {
		_ = cli.PrintJSON(out, v) // Flush returns the error
	}
	return out.Flush()
}

// wrap puts the verb before its error, if there is one.
func wrap(verb string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// reportDone prints what a verb has done: v with --json, otherwise the sentence. See [doneUntold] for the error.
func reportDone(i *cli.InboxFlags, s cli.Streams, v any, sentence string) error {
	return doneUntold(program.Report(s, i.JSON, v, sentence))
}

// doneUntold returns the error of a verb that is done and could not print that, so that nobody does it again.
func doneUntold(err error) error {
	if err != nil {
		return fmt.Errorf("it was done, but that could not be printed: %w", err)
	}
	return nil
}

// noteNothing says, on stderr, that a list is empty or there is nothing to do, such as "nothing waits in PATH".
func noteNothing(i *cli.InboxFlags, s cli.Streams, happens string, box *inbox.Inbox) {
	if i.JSON {
		return
	}
	if _, err := os.Stat(box.Path()); errors.Is(err, fs.ErrNotExist) {
		s.Note("nothing %s: there is no %s yet", happens, box.Path())
		return
	}
	s.Note("nothing %s in %s", happens, box.Path())
}

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

// opener opens a verb's inbox: [cli.InboxFlags.OpenRead], [changing] or [mending].
type opener func(cli.Streams) (*inbox.Inbox, error)

func changing(i *cli.InboxFlags) opener {
	return func(cli.Streams) (*inbox.Inbox, error) { return i.Open() }
}

// mending is [changing] after a transaction, which completes what a killed command left undone and moves due entries to
// the inbox. Until then a letter or an entry may be missing.
func mending(i *cli.InboxFlags) opener {
	return func(s cli.Streams) (*inbox.Inbox, error) {
		box, err := i.Open()
		if err == nil {
			err = cli.InTransaction(box, s, func(*inbox.Tx) error { return nil })
		}
		return box, err
	}
}

// onInbox returns a verb's action: check the arguments, open the inbox, act on it. An error of check points to the
// verb's help. The others begin with verb, unless that is "".
func onInbox(verb string, open opener, check func(args []string) error, act func(*inbox.Inbox, []string, cli.Streams) error) cli.Action {
	return func(args []string, s cli.Streams) error {
		if err := check(args); err != nil {
			return cli.Usage(err)
		}
		box, err := open(s)
		if err == nil {
			err = act(box, args, s)
		}
		if verb == "" {
			return err
		}
		return wrap(verb, err)
	}
}

// several is what a verb did to several things, a part of them in each transaction.
type several struct {
	cli.Streams
	flags           *cli.InboxFlags
	quiet           bool
	box             *inbox.Inbox
	done            []inbox.Letter // in the last transaction
	refused         error          // why the last thing that was refused stays as it is
	refusals, total int
}

// refuse records why a thing stays as it is. If there are several things, it prints that at once.
func (s *several) refuse(why error) {
	if s.refused = why; s.total > 1 {
		s.Complain(why)
	}
	s.refusals++
}

// verdict returns the error of a verb that has refused things: the one reason, or how many of them stay as they are.
func (s *several) verdict(what string) error {
	if s.refusals > 0 && s.total > 1 {
		return fmt.Errorf("%d of %d %s", s.refusals, s.total, what)
	}
	return s.refused
}

// report prints what was done. It does not hold the lock, because a slow reader may block it.
func (s *several) report(sentence func(inbox.Letter) string) error {
	done := s.done
	if s.done = nil; s.quiet {
		return nil
	}
	for _, l := range done {
		if err := reportDone(s.flags, s.Streams, l, sentence(l)); err != nil {
			return err
		}
	}
	return nil
}
