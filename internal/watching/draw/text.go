package draw

import (
	"strings"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// cell is a text of others for a list: one line, clean, and without the marks by which
// several characters are drawn as one, since terminals disagree on how wide that is.
func cell(text string) string {
	return strings.TrimSpace(strings.Map(joined, words.Brief(text)))
}

func joined(r rune) rune {
	if r == '\u200c' || r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' {
		return -1
	}
	return r
}

// paragraph is a text of others in lines of at most width columns.
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

// sentence is a sentence that may quote others, in at most most lines.
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
