package screen

import "regexp"

var greeting = regexp.MustCompile(`(?m)^\W*Claude Code v(\d+\.\d+\.\d+)\b`)

// Version is the client's, as it greets with, "" where that is not on the screen.
func Version(text string) string {
	if m := greeting.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
