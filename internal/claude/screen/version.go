package screen

import "regexp"

var greeting = regexp.MustCompile(`(?m)^\W*Claude Code v(\d+\.\d+\.\d+)\b`)

// Version returns the client's version from its greeting, or "" if that is not on
// the screen.
func Version(text string) string {
	if m := greeting.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
