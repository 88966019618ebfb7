package layout

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Wrap breaks the text between words into lines of at most width columns. Line breaks stay, and the indentation of a
// broken line is repeated. ASCII words longer than a line, such as paths and commands, stay whole so that they can be
// copied. Other long words, as in scripts without blanks, are broken. A width of 0 or less breaks nothing.
func Wrap(text string, width int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if width <= 0 || Width(line) <= width {
			lines = append(lines, line)
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if len(indent) > width/2 {
			indent = ""
		}
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
			for Width(now) > room && strings.ContainsFunc(now, func(r rune) bool { return r > '~' }) {
				head, rest := split(now, room)
				if head == "" || rest == "" { // one character is wider than the line
					break
				}
				lines, now = append(lines, indent+head), rest
			}
		}
		lines = append(lines, indent+now)
	}
	return lines
}

// Break splits a text without line breaks into pieces of at most width columns. A wider character stays whole.
func Break(text string, width int) (pieces []string) {
	for text != "" {
		head, rest := split(text, width)
		if head == "" {
			head, rest = split(text, width+1) // a double-width character
		}
		if head == "" {
			return append(pieces, text)
		}
		pieces, text = append(pieces, head), rest
	}
	return pieces
}

// Width returns how many terminal columns the text takes.
func Width(text string) int {
	if isPlain(text) {
		return len(text)
	}
	return uniseg.StringWidth(text)
}

// isPlain reports whether every byte is a character of one column, as in most texts.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Cut shortens the text to at most width columns and marks the cut with "…".
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

// split takes as many characters off the text as fit into width columns, each with its combining marks.
func split(text string, width int) (head, rest string) {
	if width >= 0 && width < len(text) && isPlain(text[:width+1]) { // the next byte is no combining mark
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
