package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// overview lists all inboxes, above the reason why nothing moves in the chosen one.
func overview(b *Board, room int, paint layout.Palette) []string {
	var lines []string
	if room > 3 {
		lines = append(lines, title(b, paint))
	}
	notes := slices.Concat(b.Picture.Failed, b.Picture.Notes)
	if len(b.Picture.Inboxes) == 0 {
		if b.Picture.At.IsZero() {
			return append(lines, sentence("looking for inboxes", b.Width, 2)...)
		}
		lines = append(lines, sentence("no inbox was found: name its folder, or send the first entry", b.Width, 3)...)
		for _, note := range notes {
			lines = append(lines, sentence(note, b.Width, 3)...)
		}
		return lines
	}
	var below []string
	now, any := b.Inbox()
	if any && room >= 12 {
		below = append(below, "")
		below = append(below, reason(b, now, paint)...)
	}
	for _, note := range notes {
		if room >= 12 {
			below = append(below, sentence("note: "+note, b.Width, 1)...)
		}
	}
	t := inboxTable(b.Picture, names(b.Picture), func(at time.Time) string { return since(b.Now, at) }, false)
	lines = append(lines, rows(t, b.Index(), b.Width, room-len(lines)-len(below), paint)...)
	if gap := room - len(lines) - len(below); gap > 0 {
		lines = append(lines, make([]string, gap)...)
	}
	return append(lines, below...)
}

func title(b *Board, paint layout.Palette) string {
	waiting, flying, letters, asking, today := int64(0), 0, 0, 0, price.Amount{}
	for _, i := range b.Picture.Inboxes {
		waiting, letters, today = waiting+i.Backlog.Entries, letters+i.Letters.All(), today.Plus(i.Today)
		if i.InFlight != nil {
			flying++
		}
		if i.Asks() {
			asking++
		}
	}
	parts := []string{words.Count(len(b.Picture.Inboxes), "inbox", "inboxes"), fmt.Sprintf("%d wait", waiting), fmt.Sprintf("%d in flight", flying)}
	if letters > 0 {
		parts = append(parts, fmt.Sprintf("%d dead", letters))
	}
	if asking > 0 {
		parts = append(parts, words.Count(asking, "asks", "ask"))
	}
	if !today.IsZero() {
		parts = append(parts, today.String()+" today")
	}
	line := spread("heartbeat: "+strings.Join(parts, ", "), b.Now.Local().Format("15:04"), b.Width)
	return paint.Paint(layout.Bold, line)
}

// inboxTable lists inboxes under the names that name gives, with times as when spells them. withWhy adds why
// nothing moves.
func inboxTable(p Picture, name func(path string) string, when func(time.Time) string, withWhy bool) *layout.Table {
	t := layout.NewTable(
		layout.Column{Title: "INBOX", Text: true, Cut: true, Least: 8, Most: 32, Keep: 10},
		layout.Column{Title: "WAIT", Least: 4, Right: true, Keep: 9},
		layout.Column{Title: "OLDEST", Least: 6, Right: true, Keep: 5},
		layout.Column{Title: "IN FLIGHT", Text: true, Cut: true, Least: 9, Most: 24, Keep: 6},
		layout.Column{Title: "SINCE", Least: 5, Right: true, Keep: 7},
		layout.Column{Title: "DEAD", Least: 4, Right: true, Keep: 3, Style: func(cell string) layout.Style {
			if cell != "0" {
				return layout.Yellow
			}
			return layout.Plain
		}},
		layout.Column{Title: "TODAY", Least: 5, Most: 9, Right: true, Keep: 4},
		layout.Column{Title: "STATE", Least: 8, Most: 20, Keep: 8, Style: func(cell string) layout.Style { return StyleOf(see.State(cell)) }},
		layout.Column{Title: "WHY", Text: true, IfAny: true},
		layout.Column{Title: "TROUBLE", Keep: 4, IfAny: true, Style: func(string) layout.Style { return layout.Yellow }},
	)
	for _, now := range p.Inboxes {
		flying, delivered, oldest, why := "", "", "", ""
		if d := now.InFlight; d != nil {
			flying, delivered = cell(words.Name(d.ID(), d.EntryID)), when(d.DeliveredAt)
		}
		if now.Head != nil {
			oldest = when(now.Head.Since)
		}
		if withWhy {
			why = now.Why
		}
		var besides []string // the troubles that neither the state nor another column shows
		for _, trouble := range now.Troubles {
			kind := string(trouble.Kind)
			if trouble.Text != now.Why && trouble.Kind != see.KindLetters && !slices.Contains(besides, kind) {
				besides = append(besides, kind)
			}
		}
		t.Add(name(now.Path()), fmt.Sprint(now.Backlog.Entries), oldest, flying, delivered, fmt.Sprint(now.Letters.All()),
			price.Price{Amount: now.Today}.Cell(), string(now.State), why, strings.Join(besides, " "))
	}
	return t
}

// StyleOf highlights a state in which a person has to act.
func StyleOf(s see.State) layout.Style {
	switch u := see.UrgencyOf(s); {
	case u == see.Act:
		return layout.Red
	case u != "" || s == see.NoInbox:
		return layout.Yellow
	case s == see.Answering, s == see.Waking, s == see.Launching:
		return layout.Green
	}
	return layout.Plain
}

// reason is why nothing moves in an inbox, and what a person is asked there, in a few lines.
func reason(b *Board, now Inbox, paint layout.Palette) []string {
	const most = 5
	width := b.Width
	lines := sentence(now.Path(), width, 1)
	facts := now.Facts
	facts.Now = b.Now // the sentence has ages
	state, why := facts.Explain()
	for _, line := range sentence(why, width, most-2) {
		lines = append(lines, paint.Paint(StyleOf(state), line))
	}
	for _, t := range facts.Troubles() {
		text := t.Text
		if t.Kind == see.KindBreakpoint {
			text += " (a approves, x rejects)"
		} else if text == why || t.Kind == see.KindLetters {
			continue
		}
		lines = append(lines, paint.Paint(layout.Yellow, sentence(text, width, 1)[0]))
	}
	for _, note := range now.Notes {
		lines = append(lines, sentence("note: "+note, width, 1)...)
	}
	return lines[:min(len(lines), most)]
}
