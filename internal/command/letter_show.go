package command

import (
	"fmt"
	"heartbeat/internal/cli"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"heartbeat/internal/words"

	"heartbeat/inbox"
)

// How much of a letter's id and text is on its line of the list.
const (
	listedID   = 40
	listedText = 80
)

func (o *letterFlags) list(s cli.Streams) error {
	letters, err := o.read(s)
	if err != nil {
		return err
	}
	if o.openOnly {
		letters = slices.DeleteFunc(letters, isRequeued)
	}
	if o.JSON {
		return printLetters(letters, s)
	}
	if len(letters) == 0 {
		_, err := fmt.Fprintln(s.Out, "no dead letters")
		return err
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, l := range letters {
		fmt.Fprintln(w, letterLine(l))
	}
	return w.Flush()
}

// read looks at the letters, and says what is wrong with their file.
func (o *letterFlags) read(s cli.Streams) ([]inbox.Letter, error) {
	box, err := o.Look(s)
	if err != nil {
		return nil, err
	}
	letters, warnings, err := box.Letters()
	s.Warn(warnings)
	return letters, err
}

func printLetters(letters []inbox.Letter, s cli.Streams) error {
	for _, l := range letters {
		if err := cli.PrintJSON(s.Out, l); err != nil {
			return err
		}
	}
	return nil
}

func letterLine(l inbox.Letter) string {
	text := excerpt(l.Text(), listedText)
	if text == "" && l.RawFile != "" {
		text = "in " + excerpt(l.RawFile, listedText)
	}
	if l.RequeuedAt != nil {
		text += "  requeued at " + words.Stamp(*l.RequeuedAt)
	}
	return strings.Join([]string{
		l.Letter, orDash(stampOf(&l.DeadLetteredAt)), orDash(excerpt(string(l.Reason), listedID)), words.Count(l.Attempts, "attempt", "attempts"),
		nameOfLetter(l), text,
	}, "\t")
}

// nameOfLetter is what people know the entry by.
func nameOfLetter(l inbox.Letter) string { return excerpt(words.Name(l.ID, l.EntryID), listedID) }

// stampOf is a time for people, or nothing where it is not known.
func stampOf(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return words.Stamp(*t)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (o *letterFlags) show(words []string, s cli.Streams) error {
	letters, err := o.read(s)
	if err != nil {
		return err
	}
	chosen, err := chooseLetters(words, letters, false)
	if err != nil {
		return err
	}
	if o.JSON {
		return printLetters(chosen, s)
	}
	for i, l := range chosen {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		if err := describeLetter(s.Out, l); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.fullText(s.Out), "\n%s\n", l.Text()); err != nil {
			return err
		}
	}
	return nil
}

// describeLetter writes all there is of a letter but its text.
func describeLetter(out io.Writer, l inbox.Letter) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, words.Sentence(value))
		}
	}
	row("letter", l.Letter)
	row("id", l.ID)
	row("entry_id", l.EntryID)
	row("reason", string(l.Reason))
	if l.Failure != nil {
		row("failure", l.Failure.String())
	}
	row("set aside", stampOf(&l.DeadLetteredAt))
	row("delivered", stampOf(l.DeliveredAt))
	row("attempts", fmt.Sprint(l.Attempts))
	row("session", l.SessionID)
	row("prompt", l.PromptID)
	row("offsets", fmt.Sprintf("[%d,%d)", l.StartOffset, l.EndOffset))
	for _, name := range slices.Sorted(maps.Keys(l.Metadata)) {
		row(name, string(l.Metadata[name]))
	}
	row("bytes", l.RawFile)
	row("requeued", stampOf(l.RequeuedAt))
	return w.Flush()
}
