package layout

import "strings"

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
