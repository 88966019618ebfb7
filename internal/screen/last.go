package screen

import "strings"

// LastLine is the last line of a screen's text, but for blanks and empty lines at its end.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
