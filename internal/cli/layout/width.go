package layout

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width is how many columns of a terminal the text takes.
func Width(text string) int { return uniseg.StringWidth(text) }

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
