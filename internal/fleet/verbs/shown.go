package verbs

import (
	"io"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// display is where a verb shows something. People see how long ago a thing was, programs
// and files get the time itself.
type display struct {
	layout.Output
	now time.Time
}

func on(out io.Writer, mode string, now time.Time) display {
	return display{layout.For(out, mode), now}
}

// when is a time in a cell; it is empty where the time is not known.
func (d display) when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case d.ForPeople():
		return words.Ago(d.now, t)
	}
	return words.Stamp(t)
}

// fullText is where a text goes that is shown in full.
func fullText(out io.Writer, raw bool) io.Writer {
	if raw {
		return words.Raw(out)
	}
	return out
}

// report prints v with --json, and else the sentence.
func report(asJSON bool, s cli.Streams, v any, sentence string) error {
	if asJSON {
		return cli.PrintJSON(s.Out, v)
	}
	return layout.For(s.Out, colour.Never).Text(colour.Plain, sentence)
}

// each calls do for each id. It returns the first error, and complains about the others.
func each(ids []string, s cli.Streams, do func(id string) error) (first error) {
	for _, id := range ids {
		err := do(id)
		if first == nil {
			first = err
		} else if err != nil {
			s.Complain(err)
		}
	}
	return first
}
