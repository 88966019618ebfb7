package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/words"
)

// onLetters runs a verb about dead letters.
func onLetters(o *page.Dead, verb string, s cli.Streams, act func(context.Context, *box) error) error {
	ctx, stop := untilSignal(0)
	defer stop()
	return connected(ctx, &o.Link, "dead "+verb, s, func(c *link.Conn) error {
		var b *box
		err := c.Again(ctx, func() (err error) {
			b, err = openBox(ctx, c, o)
			return err
		})
		if err == nil {
			err = act(ctx, b)
		}
		return ended(ctx, err)
	})
}

func deadList(o *page.Dead, s cli.Streams) error {
	return onLetters(o, "list", s, func(ctx context.Context, b *box) error {
		d := on(s.Out, o.Color, b.stream.CachedInfo().TimeStamp)
		t := layout.NewTable(
			layout.Column{Title: "MESSAGE", Text: true, Cut: true, Most: 32},
			layout.Column{Title: "SET ASIDE"}, layout.Column{Title: "REASON", Text: true, Cut: true, Most: 24},
			layout.Column{Title: "ATTEMPTS", Right: true}, layout.Column{Title: "SUBJECT", Text: true, Cut: true, Most: 24},
			layout.Column{Title: "TEXT", Text: true, Cut: true},
		)
		none := true
		err := b.all(ctx, func(l *letter) error {
			none = false
			if o.JSON {
				return cli.PrintJSON(s.Out, l)
			}
			text := words.Brief(l.Text)
			if l.object != "" {
				text = "in the object store, " + words.Size(l.Bytes)
			}
			t.Add(l.ID, d.when(l.At), words.Brief(l.Reason), strconv.Itoa(l.Attempts), l.Subject, text)
			if t.Len() < listPart {
				return nil
			}
			return d.Table(t)
		})
		switch {
		case err != nil || o.JSON:
			return err
		case none:
			s.Note("nothing was set aside in the stream %s", o.Stream)
			return nil
		}
		return d.Table(t)
	})
}

func deadShow(o *page.Dead, s cli.Streams) error {
	return onLetters(o, "show", s, func(ctx context.Context, b *box) error {
		first := true
		return each(o.IDs, s, func(id string) error {
			l, err := b.one(ctx, id)
			if err != nil {
				return err
			}
			text, err := b.payload(ctx, l)
			if err != nil {
				return err
			}
			l.Text = string(text)
			if o.JSON {
				return cli.PrintJSON(s.Out, l)
			}
			if !first {
				fmt.Fprintln(s.Out)
			}
			first = false
			d := on(s.Out, o.Color, b.stream.CachedInfo().TimeStamp)
			if err := d.Table(l.describe(d)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(fullText(s.Out, o.Raw), "\n%s\n", l.Text)
			return err
		})
	})
}

// describe has everything about a letter but its text.
func (l *letter) describe(d display) *layout.Table {
	t := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	row := func(name, value string) {
		if value != "" && value != "0" {
			t.Add(name, words.Sentence(value))
		}
	}
	at := words.Stamp(l.At)
	if d.ForPeople() {
		at += " (" + d.when(l.At) + ")"
	}
	row("id", l.ID)
	row("set aside", at)
	row("reason", l.Reason)
	row("detail", l.Detail)
	row("subject", l.Subject)
	row("seq", strconv.FormatUint(l.Seq, 10))
	row("agent", l.Agent)
	row("entry_id", l.EntryID)
	row("attempts", strconv.Itoa(l.Attempts))
	row("copies", strconv.Itoa(l.Copies))
	row("requeued", strconv.Itoa(l.Again))
	row("letter", strconv.FormatUint(l.Letter, 10))
	for _, line := range l.Headers {
		row("header", line)
	}
	for _, line := range l.History {
		row("history", line)
	}
	return t
}

func deadRequeue(o *page.Dead, s cli.Streams) error {
	return onLetters(o, "requeue", s, func(ctx context.Context, b *box) error {
		all, err := b.chosen(ctx)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			s.Note("nothing was set aside in the stream %s", o.Stream)
		}
		byLetter := map[string]*letter{}
		for _, l := range all {
			byLetter[strconv.FormatUint(l.Letter, 10)] = l
		}
		order := slices.SortedFunc(maps.Keys(byLetter), func(x, y string) int { return int(byLetter[x].Letter) - int(byLetter[y].Letter) })
		return each(order, s, func(key string) error {
			l := byLetter[key]
			seq, err := b.requeue(ctx, l)
			if errors.Is(err, errTaken) {
				s.Note("the dead letter of %s is gone meanwhile: somebody else requeued or purged it", words.Brief(l.ID))
				return nil
			}
			if err != nil {
				return err
			}
			return report(o.JSON, s, map[string]any{"id": l.ID, "letter": l.Letter, "seq": seq, "again": l.Again + 1},
				fmt.Sprintf("requeued %s (%s:%d)", words.Brief(l.ID), o.Stream, seq))
		})
	})
}

func deadPurge(o *page.Dead, s cli.Streams) error {
	if !o.Yes && !cli.IsTerminal(s.In) {
		return cli.Usage(errors.New("what is purged is gone for good, and nobody is there to be asked: add --yes"))
	}
	return onLetters(o, "purge", s, func(ctx context.Context, b *box) error {
		all, err := b.chosen(ctx)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			s.Note("nothing was set aside in the stream %s", o.Stream)
			return nil
		}
		if !o.Yes {
			if err := confirm(fmt.Sprintf("throw %s away for good?", words.Count(len(all), "dead letter", "dead letters")), s); err != nil {
				return err
			}
		}
		if o.All {
			if err := b.removeAll(ctx, all); err != nil {
				return err
			}
		}
		for _, l := range all {
			if !o.All {
				if err := b.remove(ctx, l); err != nil {
					return err
				}
			}
			if err := report(o.JSON, s, map[string]any{"id": l.ID, "letter": l.Letter, "purged": true}, "purged "+words.Brief(l.ID)); err != nil {
				return err
			}
		}
		return nil
	})
}

// confirm asks a person. No answer means no.
func confirm(question string, s cli.Streams) error {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		if err == nil {
			return nil
		}
	}
	return errors.New("nothing was purged")
}
