package watch

import (
	"cmp"
	"fmt"
	"time"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// page shows one inbox: why nothing moves there, and its entries.
func page(b *Board, room int, paint layout.Palette) []string {
	now, _ := b.Inbox()
	var lines []string
	if room > 8 {
		lines = append(reason(b, now, 5, paint), counts(b, now), "")
	}
	p := b.Page
	switch {
	case p.Failed != nil:
		return append(lines, sentence(p.Failed.Error(), b.Width, 4)...)
	case !p.Loaded:
		return append(lines, sentence("reading its entries", b.Width, 2)...)
	case len(p.Items) == 0:
		return append(lines, sentence("nothing waits here, and nothing was answered yet", b.Width, 4)...)
	}
	var below []string
	for _, note := range p.Notes {
		if room > 8 {
			below = append(below, sentence(note, b.Width, 1)...)
		}
	}
	t := itemTable(p.Items, b.Now())
	count := max(1, room-len(lines)-len(below)-1)
	lines = append(lines, t.Screen(b.Width, first(p.Selected, t.Len(), count), count, p.Selected, paint)...)
	return append(lines, below...)
}

func counts(b *Board, now Inbox) string {
	line := fmt.Sprintf("%d wait (%s), %d scheduled, %s, %d answered", now.Backlog.Entries, words.Size(now.Backlog.Bytes), now.Scheduled.Count,
		words.Count(now.Letters.All(), "dead letter", "dead letters"), now.Answered)
	if !now.Today.IsZero() {
		line += ", " + now.Today.String() + " today"
	}
	return spread(line, b.Now().Local().Format("15:04"), b.Width)
}

func itemTable(items []Item, now time.Time) *layout.Table {
	t := layout.NewTable(
		layout.Column{Title: "WHERE", Least: 9, Most: 11, Keep: 8, Style: kindStyle},
		layout.Column{Title: "ENTRY", Least: 8, Most: 20, Keep: 9},
		layout.Column{Title: "WHEN", Least: 5, Right: true, Keep: 5},
		layout.Column{Title: "COST", Least: 4, Right: true, Keep: 5},
		layout.Column{Title: "NOTE", Least: 4, Most: 24, Keep: 4},
		layout.Column{Title: "TEXT", Least: 8, Keep: 6},
	)
	for _, i := range items {
		when := since(now, i.At)
		if i.Kind == Scheduled {
			when = "in " + since(i.At, now)
		}
		name := words.Name(i.ID, i.EntryID)
		if i.Kind == Question {
			name = words.Short(i.ID)
		}
		t.Add(string(i.Kind), cell(name), when, i.Price.Cell(), cell(i.Note), cell(cmp.Or(i.Reply, i.Text)))
	}
	return t
}

func kindStyle(cell string) layout.Style {
	switch Kind(cell) {
	case Question, DeadLetter:
		return layout.Yellow
	case InFlight:
		return layout.Green
	}
	return layout.Plain
}

// life shows one entry: its events, its text and its reply.
func life(b *Board, room int, paint layout.Palette) []string {
	l := b.Life
	var lines []string
	add := func(style layout.Style, more ...string) {
		for _, line := range more {
			lines = append(lines, paint.Paint(style, line))
		}
	}
	name := words.Name(l.ID, l.EntryID)
	if l.Kind == Question {
		name = words.Short(l.ID)
	}
	add(layout.Bold, sentence(fmt.Sprintf("%s  %s  %s", name, l.Kind, l.Note), b.Width, 2)...)
	if p := l.Price; !p.IsZero() {
		add(layout.Plain, sentence(costLine(p), b.Width, 2)...)
	}
	if l.RunDir != "" {
		add(layout.Plain, sentence("run: "+l.RunDir, b.Width, 2)...)
	}
	switch {
	case l.Failed != nil:
		add(layout.Red, sentence(l.Failed.Error(), b.Width, 3)...)
	case !l.Loaded:
		add(layout.Plain, sentence("reading its life", b.Width, 2)...)
	}
	for _, part := range []struct{ title, text string }{{"EVENTS", l.Events}, {"TEXT", l.Text}, {"REPLY", l.Reply}} {
		if part.text != "" {
			add(layout.Plain, "")
			add(layout.Bold, part.title)
			add(layout.Plain, paragraph(part.text, b.Width)...)
		}
	}
	l.Top = max(0, min(l.Top, len(lines)-room))
	return lines[l.Top:]
}

// costLine says what an entry cost.
func costLine(p price.Price) string {
	line := fmt.Sprintf("cost: %s, %s tokens in %s", p, price.FormatTokens(p.Tokens.Sum()), words.Count(int(p.Requests), "request", "requests"))
	if p.Model != "" {
		line += ", " + p.Model
	}
	return line
}
