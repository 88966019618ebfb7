package screen

import (
	"regexp"
	"strings"
)

// Retry is an API error that the client retries by itself, for minutes, before it
// tells its hooks.
type Retry struct {
	Cause     string // such as "401 invalid x-api-key"; "API error" at first
	Try, Most string // such as 3 of 10
}

// retrying matches the progress of a turn that is being retried.
var retrying = regexp.MustCompile(`^\S+ (.+) · retrying.* · attempt ([0-9]{1,3})/([0-9]{1,3})$`)

// Retrying returns the error that the turn on the screen is retrying, if any.
func Retrying(text string) (r Retry, ok bool) {
	rows := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\u00a0", " "), " \n"), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	top, _, ok := inputBox(rows)
	if !ok {
		return Retry{}, false
	}
	row := lastAtMargin(rows[:top])
	if !startsSpinner(row) {
		return Retry{}, false
	}
	m := retrying.FindStringSubmatch(row)
	if m == nil {
		return Retry{}, false
	}
	return Retry{Cause: m[1], Try: m[2], Most: m[3]}, true
}
