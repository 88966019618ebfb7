package draw

import (
	"fmt"
	"time"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/price"
	"heartbeat/internal/watching/board"
	"heartbeat/internal/watching/look"
	"heartbeat/internal/words"
)

// page is one inbox: why nothing moves there, and its entries.
func page(b *board.Board, room int, paint colour.Palette) []string {
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
	g := itemGrid(p.Items, b.Now())
	count := max(1, room-len(lines)-len(below)-1)
	lines = append(lines, g.lines(b.Width, first(p.Selected, len(g.rows), count), count, p.Selected, paint)...)
	return append(lines, below...)
}

func counts(b *board.Board, now look.Inbox) string {
	line := fmt.Sprintf("%d wait (%s), %d scheduled, %s, %d answered", now.Backlog.Entries, words.Size(now.Backlog.Bytes), now.Scheduled.Count,
		words.Count(now.DeadLetters, "dead letter", "dead letters"), now.Answered)
	if !now.Today.IsZero() {
		line += ", " + now.Today.String() + " today"
	}
	return spread(line, b.Now().Local().Format("15:04"), b.Width)
}

func itemGrid(items []look.Item, now time.Time) *grid {
	g := &grid{columns: []column{
		{title: "WHERE", least: 9, most: 11, keep: 8, style: func(i int) colour.Style { return kindStyle(items[i].Kind) }},
		{title: "ENTRY", least: 8, most: 20, keep: 9},
		{title: "WHEN", least: 5, right: true, keep: 5},
		{title: "COST", least: 4, right: true, keep: 5},
		{title: "NOTE", least: 4, most: 24, keep: 4},
		{title: "TEXT", least: 8, keep: 6},
	}}
	for _, i := range items {
		when := since(now, &i.At)
		if i.Kind == look.Scheduled {
			when = "in " + since(i.At, &now)
		}
		name := words.Name(i.ID, i.EntryID)
		if i.Kind == look.Question {
			name = words.Short(i.ID)
		}
		g.add(string(i.Kind), cell(name), when, i.Price.Cell(), cell(i.Note), cell(i.Text))
	}
	return g
}

func kindStyle(k look.Kind) colour.Style {
	switch k {
	case look.Question, look.DeadLetter:
		return colour.Yellow
	case look.InFlight:
		return colour.Green
	}
	return colour.Plain
}

// life is one entry: what happened to it, its text and its reply.
func life(b *board.Board, room int, paint colour.Palette) []string {
	l := b.Life
	var lines []string
	add := func(style colour.Style, more ...string) {
		for _, line := range more {
			lines = append(lines, paint.Paint(style, line))
		}
	}
	name := words.Name(l.ID, l.EntryID)
	if l.Kind == look.Question {
		name = words.Short(l.ID)
	}
	add(colour.Bold, sentence(fmt.Sprintf("%s  %s  %s", name, l.Kind, l.Note), b.Width, 2)...)
	if p := l.Price; !p.IsZero() {
		add(colour.Plain, sentence(costLine(p), b.Width, 2)...)
	}
	if l.RunDir != "" {
		add(colour.Plain, sentence("run: "+l.RunDir, b.Width, 2)...)
	}
	switch {
	case l.Failed != nil:
		add(colour.Red, sentence(l.Failed.Error(), b.Width, 3)...)
	case !l.Loaded:
		add(colour.Plain, sentence("reading its life", b.Width, 2)...)
	}
	if len(l.Events) > 0 {
		g := &grid{columns: []column{{title: "TIME", least: 15, keep: 2}, {title: "EVENT", least: 9, most: 16, keep: 3}, {title: "DETAILS", least: 8, keep: 1}}}
		for _, e := range l.Events {
			cells := e.NarrowCells(b.Now())
			g.add(cell(cells[0]), cell(cells[1]), cell(cells[3]))
		}
		lines = append(lines, g.lines(b.Width, 0, len(g.rows), -1, paint)...)
	}
	for _, part := range []struct{ title, text string }{{"TEXT", textOf(l)}, {"REPLY", l.Reply}} {
		if part.text != "" {
			add(colour.Plain, "")
			add(colour.Bold, part.title)
			add(colour.Plain, paragraph(part.text, b.Width)...)
		}
	}
	for _, note := range l.Notes {
		add(colour.Plain, sentence("note: "+note, b.Width, 2)...)
	}
	l.Top = max(0, min(l.Top, len(lines)-room))
	return lines[l.Top:]
}

// costLine is what an entry cost, in words.
func costLine(p price.Price) string {
	line := fmt.Sprintf("cost: %s, %s tokens in %s", p, price.FormatTokens(p.Tokens.Sum()), words.Count(int(p.Requests), "request", "requests"))
	if p.Model != "" {
		line += ", " + p.Model
	}
	return line
}

// textOf is the entry's own text. The item of an answered one has its reply instead.
func textOf(l *board.Life) string {
	if l.Kind == look.Answered {
		return l.Prompt
	}
	return l.Text
}
