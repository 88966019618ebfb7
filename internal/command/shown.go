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
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// shownFlags say how a verb shows what it has to show.
type shownFlags struct{ color string }

func (o *shownFlags) addColor(f *pflag.FlagSet) {
	o.color = colour.Auto
	f.Var(cli.Choice(&o.color, colour.Auto, colour.Always, colour.Never), "color", "colour: auto (on a terminal, without NO_COLOR), always or never")
}

func (o *shownFlags) on(out io.Writer) display {
	return display{layout.For(out, o.color), time.Now()}
}

// display is where a verb shows something. People see how long ago a thing was,
// programs and files get the time itself: an age means nothing once it is kept.
type display struct {
	layout.Output
	now time.Time
}

// when is a time in a cell of a list; it is empty where the time is not known.
func (d display) when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case d.ForPeople():
		return words.Ago(d.now, t)
	}
	return words.Stamp(t)
}

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

// say prints a sentence, wrapped at a terminal's width.
func say(s cli.Streams, sentence string) error {
	return layout.For(s.Out, colour.Never).Text(colour.Plain, sentence)
}

// report prints v with --json, and else the sentence.
func report(i *cli.InboxFlags, s cli.Streams, v any, sentence string) error {
	if i.JSON {
		return cli.PrintJSON(s.Out, v)
	}
	return say(s, sentence)
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

func inYellow(string) colour.Style { return colour.Yellow }
