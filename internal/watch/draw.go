package watch

import (
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// narrowest is the smallest width, in columns, at which anything can be shown.
const narrowest = 12

// Draw returns the lines of the board, as many as the terminal has and none wider.
func Draw(b *Board, paint layout.Palette) []string {
	switch {
	case b.Width < 1 || b.Height < 1:
		return nil
	case b.Width < narrowest:
		return append([]string{layout.Cut("heartbeat", b.Width)}, make([]string, b.Height-1)...)
	}
	var lines []string
	foot := footer(b, paint)
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
	if len(lines) > room {
		lines = lines[:room]
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	return append(lines, foot...)
}

// footer is the last sentence or the question, and the keys below it.
func footer(b *Board, paint layout.Palette) []string {
	said := last(b, paint)
	if b.Asking != nil {
		return []string{said, layout.Cut("y yes   any other key no", b.Width)}
	}
	return []string{said, layout.Cut(keys(b), b.Width)}
}

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

// since is how long ago something was, in three or four columns, or empty if that is unknown.
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
	if enough := 8 * width * most; len(text) > enough && most > 0 {
		text = strings.ToValidUTF8(text[:enough], "\uFFFD")
	}
	lines := paragraph(words.Sentence(text), width)
	if len(lines) > most && most > 0 {
		rest := strings.Join(lines[most-1:], " ")
		lines = append(lines[:most-1:most-1], layout.Cut(rest, width))
	}
	return lines
}
