package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

const listedID = 40 // how many characters of a letter's id a line shows

func (o *letterFlags) list(box *inbox.Inbox, _ []string, s cli.Streams) error {
	if o.JSON {
		return o.eachPart(box, s, func(part []inbox.Letter) error { return printEach(s.Out, part) })
	}
	d, there := o.display(s.Out), false
	l := d.list(append(costlyOrder(d, []layout.Column{
		{Title: "LETTER"},
		{Title: "SET ASIDE"},
		{Title: "REASON"},
		{Title: "ATTEMPTS", Right: true},
		{Title: "ENTRY", Text: true, Cut: true, Most: 24},
		{Title: "TEXT", Text: true, Cut: true},
		{Title: "REQUEUED", IfAny: true},
	}, costColumn()), layout.Column{Title: "LATE REPLY", IfAny: true, Late: true})...)
	err := o.eachPart(box, s, func(part []inbox.Letter) error {
		for _, letter := range part {
			addLetter(l, d, letter)
		}
		there = true
		return l.err
	})
	if err == nil && !there {
		what := "was set aside"
		if o.openOnly {
			what = "that was set aside is open"
		}
		noteNothing(&o.InboxFlags, s, what, box)
		return nil
	}
	return errors.Join(err, l.end())
}

func addLetter(l *list, d display, letter inbox.Letter) {
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
	text := words.Brief(letter.Text())
	if text == "" && letter.RawFile != "" {
		text = "in " + words.Brief(letter.RawFile)
	}
	cells := []string{
		letter.Letter, cmp.Or(l.when(letter.DeadLetteredAt), "-"), cmp.Or(words.Brief(string(letter.Reason)), "-"), strconv.Itoa(letter.Attempts),
		words.Name(letter.ID, letter.EntryID), text, requeued,
	}
	l.row(append(costlyOrder(d, cells, price.Of(letter.Cost).Cell()), late)...)
}

// Letters are read, priced and printed in parts of at most this size.
const (
	partLetters = 4096
	partText    = 8 << 20
)

func (o *letterFlags) eachPart(box *inbox.Inbox, s cli.Streams, visit func([]inbox.Letter) error) error {
	prices := book.New(box)
	var part []inbox.Letter
	var failed error
	text := 0
	flush := func() {
		if failed != nil || len(part) == 0 {
			return
		}
		priceLetters(prices, part, s)
		failed = visit(part)
		part, text = part[:0], 0
	}
	each := outcomes.EachLetter
	if o.openOnly {
		each = outcomes.EachOpenLetter
	}
	warnings, err := each(box, func(l inbox.Letter) bool {
		part, text = append(part, l), text+len(l.RawLine.Text)+len(l.LateReply)
		if len(part) == partLetters || text > partText {
			flush()
		}
		return failed == nil
	})
	flush()
	s.Warn(warnings)
	return errors.Join(err, failed)
}

func priceLetters(prices *book.Book, letters []inbox.Letter, s cli.Streams) {
	ids := make([]string, len(letters))
	for i, l := range letters {
		ids[i] = l.EntryID
	}
	prices.Want(ids...)
	for i := range letters {
		prices.Letter(&letters[i].DeadLetter)
	}
	s.Warn(prices.Notes())
}

func nameOfLetter(l inbox.Letter) string {
	return program.Excerpt(words.Name(l.ID, l.EntryID), listedID)
}

func (o *letterFlags) show(box *inbox.Inbox, named []string, s cli.Streams) error {
	chosen, err := chooseLetters(named, false, everyLetter(box), s)
	if err != nil {
		return err
	}
	priceLetters(book.New(box), chosen, s)
	if o.JSON {
		return printEach(s.Out, chosen)
	}
	for i, l := range chosen {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		shown := o.display(s.Out)
		if err := shown.Table(describeLetter(l, shown)); err != nil {
			return err
		}
		text := "\n" + l.Text() + "\n"
		if l.RepliedAt != nil {
			text += "\nlate reply:\n\n" + l.LateReply + "\n"
		}
		if _, err := fmt.Fprint(o.FullText(s.Out), text); err != nil {
			return err
		}
	}
	return nil
}

// describeLetter shows everything about a letter but its text.
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
	if c := l.Check; c != nil {
		row("check", c.Name+", "+words.Count(c.Tries, "try", "tries"))
		for line := range strings.Lines(c.Tail) {
			row("printed", words.Line(line))
		}
	}
	stamp("set aside", &l.DeadLetteredAt)
	stamp("delivered", l.DeliveredAt)
	row("attempts", strconv.Itoa(l.Attempts))
	row("cost", price.Of(l.Cost).Sentence())
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
