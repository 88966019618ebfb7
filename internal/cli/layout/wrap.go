package layout

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Wrap breaks the text between words into lines of at most width columns. Line
// breaks in the text stay, and a line's indentation is repeated on the lines it
// is broken into. A path, a command or another word of ASCII that is longer than
// a line stays whole, so that it can be copied; other long words, as in scripts
// without blanks, are broken. At width 0 or less nothing is broken.
func Wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if width <= 0 || Width(line) <= width {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, wrapLine(line, width)...)
	}
	return lines
}

func wrapLine(line string, width int) []string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if len(indent) > width/2 {
		indent = ""
	}
	var lines []string
	now, room := "", width-len(indent)
	for _, word := range strings.Fields(line) {
		if now != "" && Width(now)+1+Width(word) <= room {
			now += " " + word
			continue
		}
		if now != "" {
			lines = append(lines, indent+now)
		}
		now = word
		for Width(now) > room && !isASCII(now) {
			head, rest := split(now, room)
			if head == "" || rest == "" { // a character wider than the line
				break
			}
			lines, now = append(lines, indent+head), rest
		}
	}
	return append(lines, indent+now)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}

// Break divides a text without line breaks into pieces of at most width columns,
// wherever that falls. A character that is wider stays whole.
func Break(text string, width int) (pieces []string) {
	for text != "" {
		head, rest := split(text, width)
		if head == "" {
			head, rest = split(text, width+1) // a wide one
		}
		if head == "" {
			return append(pieces, text)
		}
		pieces, text = append(pieces, head), rest
	}
	return pieces
}

// Width is how many columns of a terminal the text takes.
func Width(text string) int {
	if isPlain(text) {
		return len(text)
	}
	return uniseg.StringWidth(text)
}

// isPlain recognises what most texts are: each byte a character of one column.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Cut shortens the text to at most width columns. The last one is then "…".
func Cut(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	head, _ := split(text, width-1)
	return strings.TrimRight(head, " ") + "…"
}

// split takes as many characters off the text as fit into width columns. A
// character with its combining marks is never divided.
func split(text string, width int) (head, rest string) {
	if width >= 0 && width < len(text) && isPlain(text[:width+1]) { // no mark belongs to the last one
		return text[:width], text[width:]
	}
	rest = text
	for used, state := 0, -1; rest != ""; {
		_, after, w, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if used += w; used > width {
			break
		}
		rest, state = after, next
	}
	return text[:len(text)-len(rest)], rest
}
