package screen

import (
	"regexp"
	"strings"
)

// Retry is an error of the model's API that the client tries to overcome by itself,
// for minutes, before it tells its hooks.
type Retry struct {
	Cause     string // such as "401 invalid x-api-key", or "API error" at first
	Try, Most string // such as 3 of 10
}

// retrying is how the row ends that says what a turn is at.
var retrying = regexp.MustCompile(`^\S+ (.+) · retrying.* · attempt ([0-9]{1,3})/([0-9]{1,3})$`)

// Retrying is the error that the turn on a screen is at, false for none.
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
