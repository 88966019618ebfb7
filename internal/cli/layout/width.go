package layout

import (
	"strings"

	"github.com/rivo/uniseg"
)

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
