package draw

import (
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/watching/board"
	"heartbeat/internal/words"
)

// narrowest is the fewest columns in which anything can be told.
const narrowest = 12

// Draw returns the lines of the board, as many as the terminal has and none wider.
func Draw(b *board.Board, paint colour.Palette) []string {
	switch {
	case b.Width < 1 || b.Height < 1:
		return nil
	case b.Width < narrowest:
		return append([]string{layout.Cut("heartbeat", b.Width)}, make([]string, b.Height-1)...)
	}
	var lines []string
	foot := footer(b, paint)
	if b.Height <= len(foot)+1 { // there is room for the list and nothing else
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

// footer is the last sentence, or what is asked, above the keys.
func footer(b *board.Board, paint colour.Palette) []string {
	said := last(b, paint)
	if b.Asking != nil {
		return []string{said, layout.Cut("y yes   any other key no", b.Width)}
	}
	return []string{said, layout.Cut(keys(b), b.Width)}
}

func last(b *board.Board, paint colour.Palette) string {
	switch {
	case b.Asking != nil:
		return paint.Paint(colour.Yellow, layout.Cut(cellOf(b.Asking.Question, b.Width-4)+" y/n", b.Width))
	case b.Doing != "":
		return layout.Cut(cellOf(b.Doing, b.Width-2)+" …", b.Width)
	case b.Failed && b.Said != "":
		return paint.Paint(colour.Red, layout.Cut(cellOf(b.Said, b.Width), b.Width))
	}
	return layout.Cut(cellOf(b.Said, b.Width), b.Width)
}

// cellOf is a sentence on one line of that width.
func cellOf(text string, width int) string {
	return layout.Cut(strings.Map(joined, words.Sentence(text)), max(0, width))
}

func keys(b *board.Board) string {
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

// since is how long ago something was, in at most three or four columns; empty if that
// is not known.
func since(now time.Time, at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return strings.TrimSuffix(strings.Replace(words.Ago(now, *at), "just now", "0s", 1), " ago")
}

// spread puts two texts at the ends of a line, and leaves the right one out if there is
// no room.
func spread(left, right string, width int) string {
	left = layout.Cut(left, width)
	room := width - layout.Width(left) - layout.Width(right)
	if room < 2 {
		return left
	}
	return left + strings.Repeat(" ", room) + right
}
