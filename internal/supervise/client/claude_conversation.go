package client

import (
	"strings"

	"heartbeat/internal/screen"
)

// marker stands before the selected option, and before what is typed.
const marker = "❯"

// minRule is the shortest line that counts as one across the screen.
const minRule = 20

// isRule reports whether a row is a line across the screen. The lines around the
// input may contain a name.
func isRule(row string) bool {
	for _, c := range []string{"─", "▔"} {
		if strings.HasPrefix(row, strings.Repeat(c, 3)) && strings.HasSuffix(row, c) && strings.Count(row, c) >= minRule {
			return true
		}
	}
	return false
}

// inputBox finds the two lines around the input, at the end of the screen.
func inputBox(rows []string) (top, bottom int, ok bool) {
	bottom = lastRule(rows)
	if bottom < 0 {
		return 0, 0, false
	}
	top = lastRule(rows[:bottom])
	return top, bottom, top >= 0 && top+1 < bottom && strings.HasPrefix(rows[top+1], marker)
}

func lastRule(rows []string) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if isRule(rows[i]) {
			return i
		}
	}
	return -1
}

// conversation recognises the state of a session whose input is between the rows
// top and bottom.
func conversation(rows []string, top, bottom int) screen.Kind {
	said, input := rows[:top], rows[top+1]
	switch {
	case strings.Contains(strings.Join(rows[bottom+1:], "\n"), "esc to interrupt"), spins(lastAtMargin(said)):
		return screen.Busy
	case strings.HasPrefix(input, marker+" Once fixed, resend your message") && needsLogin(said):
		return screen.Login
	}
	return screen.Ready
}

// lastAtMargin returns the last row that is neither empty nor indented.
func lastAtMargin(rows []string) string {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i] != "" && rows[i][0] != ' ' {
			return rows[i]
		}
	}
	return ""
}

// spins reports whether a row shows a turn's progress, such as "✻ Brewing… (4s)".
func spins(row string) bool {
	return startsSpinner(row) && (strings.Contains(row, "…") || retrying.MatchString(row))
}

func startsSpinner(row string) bool {
	for _, c := range []string{"·", "✢", "✳", "✶", "✻", "✽", "*"} {
		if strings.HasPrefix(row, c+" ") {
			return true
		}
	}
	return false
}

// needsLogin reports whether the last message says that the turn failed because
// the client is not logged in.
func needsLogin(rows []string) bool {
	for i := len(rows) - 1; i >= 0; i-- {
		row := rows[i]
		switch {
		case strings.HasPrefix(row, "  ⎿  Not logged in"), strings.HasPrefix(row, "  ⎿  Invalid API key"),
			strings.HasPrefix(row, "  ⎿  Please run /login"), strings.HasPrefix(row, "● Please run /login · API Error: 40"):
			return true
		case strings.HasPrefix(row, "●"), strings.HasPrefix(row, marker):
			return false
		}
	}
	return false
}
