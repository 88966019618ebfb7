package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/command/priced"
	"heartbeat/internal/words"
)

// listedID is how much of a letter's id is on a line.
const listedID = 40

func (o *letterFlags) list(s cli.Streams) error {
	box, letters, err := o.read(s)
	if err != nil {
		return err
	}
	if o.openOnly {
		letters = slices.DeleteFunc(letters, isClosed)
	}
	o.price(box, letters, s)
	if o.JSON {
		return printLetters(letters, s)
	}
	if len(letters) == 0 {
		nothing(&o.InboxFlags, s, "was set aside", box)
		return nil
	}
	d := o.on(s.Out)
	l := d.list(append(costlyOrder(d, []layout.Column{
		{Title: "LETTER"},
		{Title: "SET ASIDE"},
		{Title: "REASON"},
		{Title: "ATTEMPTS", Right: true},
		{Title: "ENTRY", Text: true, Cut: true, Most: 24},
		{Title: "TEXT", Text: true, Cut: true},
		{Title: "REQUEUED", IfAny: true},
	}, costColumn()), layout.Column{Title: "LATE REPLY", IfAny: true, Late: true})...)
	for _, letter := range letters {
		requeued, late := "", ""
		if letter.RequeuedAt != nil {
			requeued = l.when(*letter.RequeuedAt)
		}
		switch {
		case letter.AcceptedAt != nil:
			late = "accepted"
		case letter.RepliedAt != nil:
			late = l.when(*letter.RepliedAt)
		}
		cells := []string{
			letter.Letter, orDash(l.when(letter.DeadLetteredAt)), orDash(words.Brief(string(letter.Reason))), strconv.Itoa(letter.Attempts),
			words.Name(letter.ID, letter.EntryID), listedText(letter), requeued,
		}
		l.row(append(costlyOrder(d, cells, letter.Price().Cell()), late)...)
	}
	return l.end()
}

// listedText is the beginning of the letter's text, or the file that holds it.
func listedText(l inbox.Letter) string {
	if text := words.Brief(l.Text()); text != "" || l.RawFile == "" {
		return text
	}
	return "in " + words.Brief(l.RawFile)
}

// price gives the letters the price that is known now.
func (o *letterFlags) price(box *inbox.Inbox, letters []inbox.Letter, s cli.Streams) {
	prices, ids := priced.Of(box), make([]string, len(letters))
	for i, l := range letters {
		ids[i] = l.EntryID
	}
	prices.Want(ids...)
	for i := range letters {
		prices.Letter(&letters[i].DeadLetter)
	}
	s.Warn(prices.Notes())
}

// read returns the inbox and its letters, and warns about a damaged file.
func (o *letterFlags) read(s cli.Streams) (*inbox.Inbox, []inbox.Letter, error) {
	box, err := o.Look(s)
	if err != nil {
		return nil, nil, err
	}
	letters, warnings, err := box.Letters()
	s.Warn(warnings)
	return box, letters, err
}

func printLetters(letters []inbox.Letter, s cli.Streams) error {
	for _, l := range letters {
		if err := cli.PrintJSON(s.Out, l); err != nil {
			return err
		}
	}
	return nil
}

// nameOfLetter is the short name of the letter's entry.
func nameOfLetter(l inbox.Letter) string { return excerpt(words.Name(l.ID, l.EntryID), listedID) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (o *letterFlags) show(named []string, s cli.Streams) error {
	box, letters, err := o.read(s)
	if err != nil {
		return err
	}
	chosen, err := chooseLetters(named, letters, false)
	if err != nil {
		return err
	}
	o.price(box, chosen, s)
	if o.JSON {
		return printLetters(chosen, s)
	}
	for i, l := range chosen {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		shown := o.on(s.Out)
		if err := shown.Table(describeLetter(l, shown)); err != nil {
			return err
		}
		text := "\n" + l.Text() + "\n"
		if l.RepliedAt != nil {
			text += "\nlate reply:\n\n" + l.LateReply + "\n"
		}
		if _, err := fmt.Fprint(o.fullText(s.Out), text); err != nil {
			return err
		}
	}
	return nil
}

// describeLetter has everything about a letter but its text.
func describeLetter(l inbox.Letter, shown display) *layout.Table {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	row := func(name, value string) {
		if value != "" {
			t.Add(words.Brief(name), words.Sentence(value))
		}
	}
	stamp := func(name string, at *time.Time) {
		switch {
		case at == nil || at.IsZero():
		case shown.ForPeople():
			row(name, words.Stamp(*at)+" ("+shown.when(*at)+")")
		default:
			row(name, words.Stamp(*at))
		}
	}
	row("letter", l.Letter)
	row("id", l.ID)
	row("entry_id", l.EntryID)
	row("reason", string(l.Reason))
	if l.Failure != nil {
		row("failure", l.Failure.String())
	}
	stamp("set aside", &l.DeadLetteredAt)
	stamp("delivered", l.DeliveredAt)
	row("attempts", strconv.Itoa(l.Attempts))
	row("cost", l.Price().Sentence())
	row("session", l.SessionID)
	row("prompt", l.PromptID)
	row("offsets", fmt.Sprintf("[%d,%d)", l.StartOffset, l.EndOffset))
	for _, name := range slices.Sorted(maps.Keys(l.Metadata)) {
		row(name, string(l.Metadata[name]))
	}
	row("bytes", l.RawFile)
	stamp("replied", l.RepliedAt)
	stamp("requeued", l.RequeuedAt)
	stamp("accepted", l.AcceptedAt)
	return t
}
