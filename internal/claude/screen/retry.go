package screen

import (
	"regexp"
	"strings"

	"heartbeat/internal/screen"
)

// retrying matches the progress of a turn that is being retried.
var retrying = regexp.MustCompile(`^\S+ (.+) · retrying.* · attempt ([0-9]{1,3})/([0-9]{1,3})$`)

// Retrying returns the error that the turn on the screen is retrying, if any.
func Retrying(text string) (r screen.Retry, ok bool) {
	rows := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\u00a0", " "), " \n"), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	top, _, ok := inputBox(rows)
	if !ok {
		return screen.Retry{}, false
	}
	row := lastAtMargin(rows[:top])
	if !startsSpinner(row) {
		return screen.Retry{}, false
	}
	m := retrying.FindStringSubmatch(row)
	if m == nil {
		return screen.Retry{}, false
	}
	return screen.Retry{Cause: m[1], Try: m[2], Most: m[3]}, true
}
