package draw

import (
	"fmt"
	"slices"
	"strings"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/price"
	"heartbeat/internal/watching/board"
	"heartbeat/internal/watching/look"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
)

// overview is the list of all inboxes, above why nothing moves in the chosen one.
func overview(b *board.Board, room int, paint colour.Palette) []string {
	var lines []string
	if room > 3 {
		lines = append(lines, title(b, paint))
	}
	if len(b.Picture.Inboxes) == 0 {
		return append(lines, nothing(b)...)
	}
	var below []string
	now, any := b.Inbox()
	if any && room >= 12 {
		below = append(below, "")
		below = append(below, reason(b, now, 5, paint)...)
	}
	for _, note := range slices.Concat(b.Picture.Failed, b.Picture.Notes) {
		if room >= 12 {
			below = append(below, sentence("note: "+note, b.Width, 1)...)
		}
	}
	g := inboxGrid(b)
	count := max(1, room-len(lines)-len(below)-1)
	lines = append(lines, g.lines(b.Width, first(b.Index(), len(g.rows), count), count, b.Index(), paint)...)
	if gap := room - len(lines) - len(below); gap > 0 {
		lines = append(lines, make([]string, gap)...)
	}
	return append(lines, below...)
}

// title says how much there is in all.
func title(b *board.Board, paint colour.Palette) string {
	waiting, flying, letters, asking := b.Totals()
	parts := []string{words.Count(len(b.Picture.Inboxes), "inbox", "inboxes"), fmt.Sprintf("%d wait", waiting), fmt.Sprintf("%d in flight", flying)}
	if letters > 0 {
		parts = append(parts, fmt.Sprintf("%d dead", letters))
	}
	if asking > 0 {
		parts = append(parts, words.Count(asking, "asks", "ask"))
	}
	if today := b.Today(); !today.IsZero() {
		parts = append(parts, today.String()+" today")
	}
	line := spread("heartbeat: "+strings.Join(parts, ", "), b.Now().Local().Format("15:04"), b.Width)
	return paint.Paint(colour.Bold, line)
}

// nothing is shown where no inbox was found.
func nothing(b *board.Board) []string {
	if b.Picture.At.IsZero() {
		return sentence("looking for inboxes", b.Width, 2)
	}
	lines := sentence("no inbox was found: name its folder, or send the first entry", b.Width, 3)
	for _, note := range slices.Concat(b.Picture.Failed, b.Picture.Notes) {
		lines = append(lines, sentence(note, b.Width, 3)...)
	}
	return lines
}

func inboxGrid(b *board.Board) *grid {
	all := b.Picture.Inboxes
	g := &grid{columns: []column{
		{title: "INBOX", least: 8, most: 32, keep: 10},
		{title: "WAIT", least: 4, right: true, keep: 9},
		{title: "OLDEST", least: 6, right: true, keep: 5},
		{title: "IN FLIGHT", least: 9, most: 24, keep: 6},
		{title: "SINCE", least: 5, right: true, keep: 7},
		{title: "DEAD", least: 4, right: true, keep: 3, style: func(i int) colour.Style {
			if all[i].DeadLetters > 0 {
				return colour.Yellow
			}
			return colour.Plain
		}},
		{title: "TODAY", least: 5, most: 9, right: true, keep: 4},
		{title: "STATE", least: 8, most: 20, keep: 8, style: func(i int) colour.Style { return styleOf(all[i].State) }},
	}}
	for _, now := range all {
		flying, delivered := "", ""
		if d := now.InFlight; d != nil {
			flying, delivered = cell(words.Name(d.ID(), d.EntryID)), since(b.Now(), &d.DeliveredAt)
		}
		g.add(cell(board.Short(now.Path())), fmt.Sprint(now.Backlog.Entries), since(b.Now(), now.Oldest), flying, delivered, fmt.Sprint(now.DeadLetters), spent(now.Today), string(now.State))
	}
	return g
}

// spent is an amount for a column: dollars, or tokens where no dollars are known.
func spent(a price.Amount) string { return price.Price{Amount: a}.Cell() }

// styleOf makes a state stand out where a person has to act.
func styleOf(s why.State) colour.Style {
	switch s {
	case why.Unreadable, why.Unwritable, why.Full, why.Locked, why.Failed, why.Orphaned, why.SessionDown:
		return colour.Red
	case why.Person, why.Held, why.Paused, why.BackingOff, why.Replaced, why.Torn, why.NoSession, why.SessionOver, why.NoWaker, why.NoInbox:
		return colour.Yellow
	case why.Answering, why.Waking, why.Launching:
		return colour.Green
	}
	return colour.Plain
}

// reason is why nothing moves in an inbox, with what is asked there.
func reason(b *board.Board, now look.Inbox, most int, paint colour.Palette) []string {
	width := b.Width
	lines := sentence(now.Path(), width, 1)
	facts := now.Facts
	facts.Now = b.Now() // the sentence has ages
	state, why := facts.Explain()
	for _, line := range sentence(why, width, most-2) {
		lines = append(lines, paint.Paint(styleOf(state), line))
	}
	for _, q := range now.Held {
		asks := "asks: " + words.Brief(q.Question) + " (a approves, x rejects)"
		if q.Effect == "" {
			asks = q.Rests()
		}
		lines = append(lines, paint.Paint(colour.Yellow, sentence(asks, width, 1)[0]))
	}
	for _, note := range now.Notes {
		lines = append(lines, sentence("note: "+note, width, 1)...)
	}
	return lines[:min(len(lines), most)]
}

// first is the first row that is shown, so that the chosen one is.
func first(chosen, rows, count int) int {
	if rows <= count {
		return 0
	}
	return max(0, min(chosen-count/2, rows-count))
}
