package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

const narrowest = 12 // the smallest width, in columns, at which anything can be shown

// Draw returns the lines of the board, as many as the terminal has and none wider.
func Draw(b *Board, paint layout.Palette) []string {
	switch {
	case b.Width < 1 || b.Height < 1:
		return nil
	case b.Width < narrowest:
		return append([]string{layout.Cut("heartbeat", b.Width)}, make([]string, b.Height-1)...)
	}
	var lines []string
	foot := []string{last(b, paint), layout.Cut(keys(b), b.Width)}
	if b.Height <= len(foot)+1 { // only the list has room
		foot = foot[:0]
		if said := last(b, paint); said != "" && b.Height > 1 {
			foot = append(foot, said)
		}
	}
	room := b.Height - len(foot)
	switch {
	case b.Help:
		lines = help(b.Width)
	case b.Life != nil:
		lines = life(b, room, paint)
	case b.Page != nil:
		lines = page(b, room, paint)
	default:
		lines = overview(b, room, paint)
	}
	lines = append(lines, make([]string, max(0, room-len(lines)))...)
	return append(lines[:room:room], foot...)
}

// last returns the line with the question, the action in progress, or the last sentence.
func last(b *Board, paint layout.Palette) string {
	switch {
	case b.Asking != nil:
		return paint.Paint(layout.Yellow, layout.Cut(cellOf(b.Asking.Question, b.Width-4)+" y/n", b.Width))
	case b.Doing != "":
		return layout.Cut(cellOf(b.Doing, b.Width-2)+" …", b.Width)
	case b.Failed && b.Said != "":
		return paint.Paint(layout.Red, layout.Cut(cellOf(b.Said, b.Width), b.Width))
	}
	return layout.Cut(cellOf(b.Said, b.Width), b.Width)
}

// cellOf cuts a sentence to one line of that width.
func cellOf(text string, width int) string {
	return layout.Cut(strings.Map(joined, words.Sentence(text)), max(0, width))
}

func keys(b *Board) string {
	switch {
	case b.Asking != nil:
		return "y yes   any other key no"
	case b.Help:
		return "any key closes this"
	case b.Life != nil:
		return "↑↓ scroll  esc back  c cancel  u requeue  a approve  x reject  ? keys  q quit"
	case b.Page != nil:
		return "↑↓ choose  enter open  esc back  p pause  r resume  c cancel  u requeue  ? keys"
	}
	return "↑↓ choose  enter open  p pause  r resume  a approve  x reject  ? keys  q quit"
}

func help(width int) []string {
	rows := [][2]string{
		{"↑ ↓ j k", "choose a line, or scroll"},
		{"enter →", "open the inbox, or the entry: its life and its reply"},
		{"esc ←", "go back"},
		{"p", "pause delivery in the inbox"},
		{"r", "resume it, also after a back-off"},
		{"c", "cancel the entry that is chosen, before it is delivered"},
		{"u", "put the dead letter that is chosen back into the inbox"},
		{"a", "approve what a run asks"},
		{"x", "reject it"},
		{"^Z", "stop this program; fg goes on"},
		{"q ^C", "quit; sessions and inboxes go on as they are"},
	}
	lines := []string{layout.Cut("Nothing is done before you have said y.", width), ""}
	for _, r := range rows {
		lines = append(lines, layout.Cut(fmt.Sprintf("  %-9s", r[0])+r[1], width))
	}
	return lines
}

// since returns how long ago something was, in three or four columns, or "" if that is unknown.
func since(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strings.TrimSuffix(strings.Replace(words.Ago(now, at), "just now", "0s", 1), " ago")
}

// spread puts two texts at the ends of a line. The right one is left out if there is no room.
func spread(left, right string, width int) string {
	left = layout.Cut(left, width)
	room := width - layout.Width(left) - layout.Width(right)
	if room < 2 {
		return left
	}
	return left + strings.Repeat(" ", room) + right
}

// cell makes a foreign text fit for a list: one clean line, without the joiners that draw several characters as
// one, because terminals disagree on their width.
func cell(text string) string {
	return strings.TrimSpace(strings.Map(joined, words.Brief(text)))
}

func joined(r rune) rune {
	if r == '\u200c' || r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' {
		return -1
	}
	return r
}

// paragraph wraps a foreign text into lines of at most width columns.
func paragraph(text string, width int) []string {
	clean := strings.ReplaceAll(words.Plain(strings.ReplaceAll(text, "\r\n", "\n")), "\t", "    ")
	var all []string
	for _, line := range layout.Wrap(strings.Map(joined, clean), width) {
		if layout.Width(line) <= width {
			all = append(all, line)
			continue
		}
		all = append(all, layout.Break(line, width)...) // a word without a blank
	}
	return all
}

// sentence wraps a sentence that may quote foreign text into at most that many lines.
func sentence(text string, width, most int) []string {
	if enough := 8 * width * most; len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "\uFFFD")
	}
	lines := paragraph(words.Sentence(text), width)
	if len(lines) > most {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1:most-1], layout.Cut(rest, width))
	}
	return lines
}

// page shows one inbox: why nothing moves there, and its entries.
func page(b *Board, room int, paint layout.Palette) []string {
	now, _ := b.Inbox()
	var lines []string
	if room > 8 {
		counts := fmt.Sprintf("%d wait (%s), %d scheduled, %s, %d answered", now.Backlog.Entries, words.Size(now.Backlog.Bytes), now.Scheduled.Count,
			words.Count(now.Letters.All(), "dead letter", "dead letters"), now.Totals.Answered)
		if !now.Today.IsZero() {
			counts += ", " + now.Today.String() + " today"
		}
		lines = append(reason(b, now, paint), spread(counts, b.Now.Local().Format("15:04"), b.Width), "")
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
	lines = append(lines, rows(itemTable(p.Items, b.Now), p.Selected, b.Width, room-len(lines)-len(below), paint)...)
	return append(lines, below...)
}

// rows returns the titles of a table and as many rows as fit below, the chosen one among them.
func rows(t *layout.Table, chosen, width, room int, paint layout.Palette) []string {
	count := max(1, room-1)
	first := max(0, min(chosen-count/2, t.Len()-count))
	return t.Screen(width, first, count, chosen, paint)
}

var kindStyles = map[Kind]layout.Style{Question: layout.Yellow, DeadLetter: layout.Yellow, InFlight: layout.Green}

func itemTable(items []Item, now time.Time) *layout.Table {
	t := layout.NewTable(
		layout.Column{Title: "WHERE", Least: 9, Most: 11, Keep: 8, Style: func(cell string) layout.Style { return kindStyles[Kind(cell)] }},
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
		t.Add(string(i.Kind), cell(i.name()), when, i.Price.Cell(), cell(i.Note), cell(cmp.Or(i.Reply, i.Text)))
	}
	return t
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
	add(layout.Bold, sentence(fmt.Sprintf("%s  %s  %s", l.name(), l.Kind, l.Note), b.Width, 2)...)
	if p := l.Price; !p.IsZero() {
		cost := fmt.Sprintf("cost: %s, %s tokens in %s", p, price.FormatTokens(p.Tokens.Sum()), words.Count(int(p.Requests), "request", "requests"))
		if p.Model != "" {
			cost += ", " + p.Model
		}
		add(layout.Plain, sentence(cost, b.Width, 2)...)
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
	if now, found := b.Inbox(); found && room >= 12 {
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
	lines = append(lines, make([]string, max(0, room-len(lines)-len(below)))...)
	return append(lines, below...)
}

func title(b *Board, paint layout.Palette) string {
	waiting, flying, letters, asking, today := int64(0), 0, 0, 0, price.Amount{}
	for _, i := range b.Picture.Inboxes {
		waiting, letters, today = waiting+i.Backlog.Entries, letters+i.Letters.All(), today.Plus(i.Today)
		if i.InFlight != nil {
			flying++
		}
		if slices.ContainsFunc(i.Runs, see.Run.NeedsPerson) || i.Asking() != nil {
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

// inboxTable lists inboxes. name returns the name to show, and when formats a time. withWhy adds why nothing moves.
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
			why = strings.Join(append([]string{now.Why}, see.GoOn(now.Runs, now.Path(), now.Why)...), "; ")
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

// reason explains in a few lines why nothing moves in an inbox, and what a person is asked there.
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
	for _, text := range slices.Concat(see.GoOn(now.Runs, now.Path(), why), now.Warnings) {
		lines = append(lines, sentence("note: "+text, width, 1)...)
	}
	return lines[:min(len(lines), most)]
}
