package client

import (
	"regexp"
	"slices"
	"strings"

	"heartbeat/internal/screen"
)

// RecogniseClaude classifies a screen (see [screen.Screen.Text]). It uses positions too, since a
// conversation may quote a dialog: a dialog is at the end of the screen, where a conversation has
// its input line.
func RecogniseClaude(text string) screen.Sight {
	rows := claudeRows(text)
	if top, bottom, ok := inputBox(rows); ok {
		return screen.Sight{Kind: conversation(rows, top, bottom)}
	}
	if sight := lastWords(rows); sight.Kind != screen.Unknown {
		return sight
	}
	if kind := firstStart(rows); kind != screen.Unknown {
		return screen.Sight{Kind: kind}
	}
	return claudeDialog(rows)
}

// claudeRows are the rows of a screen without trailing blanks.
func claudeRows(text string) []string {
	rows := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\u00a0", " "), " \n"), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	return rows
}

// lastWords recognises why the client gave up, which it prints at the margin.
func lastWords(rows []string) screen.Sight {
	for _, w := range []struct {
		row  string
		kind screen.Kind
	}{
		{"No conversation found to continue", screen.NoConversation},
		{"No conversation found with session ID", screen.NoConversation},
		{"--dangerously-skip-permissions cannot be used with root", screen.BypassRefused},
		{"Claude Code didn't start because this folder isn't trusted", screen.Untrusted},
		{"error: unknown option '", screen.Usage},
		{"error: option '", screen.Usage}, // a missing or invalid value
		{"Error: Invalid MCP configuration:", screen.Usage},
	} {
		for i, row := range rows[max(0, len(rows)-3):] {
			if !strings.HasPrefix(row, w.row) {
				continue
			}
			s := screen.Sight{Kind: w.kind}
			if w.kind == screen.Usage {
				s.Title = strings.Join(rows[max(0, len(rows)-3)+i:], " ")
			}
			return s
		}
	}
	return screen.Sight{}
}

// firstStart recognises the questions of the first start, which have no frame. The greeting may
// have scrolled off a small screen.
func firstStart(rows []string) screen.Kind {
	switch greeted := strings.HasPrefix(rows[0], "Welcome to Claude Code v"); {
	case has(rows, "Choose the text style that looks best with your terminal") && hasMark(rows),
		greeted && has(rows, "Select login method:"),
		greeted && has(rows, "Paste code here if prompted"):
		return screen.Onboarding
	case has(rows, "Unable to connect to Anthropic services") && hasPrefix(rows, "Failed to connect to "):
		return screen.Offline
	}
	return screen.Unknown
}

// has reports whether a row consists of this text, except for what [unmarked] removes.
func has(rows []string, want string) bool {
	return slices.ContainsFunc(rows, func(row string) bool { return unmarked(row) == want })
}

func hasPrefix(rows []string, want string) bool {
	return slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(unmarked(row), want) })
}

// unmarked returns a row without its indentation, the mark of the selected option and the option's number.
func unmarked(row string) string {
	row = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(row, " "), marker), " ")
	if number, rest, ok := strings.Cut(row, ". "); ok && len(number) == 1 && number >= "1" && number <= "9" {
		return rest
	}
	return row
}

// retrying matches the progress of a turn that is being retried.
var retrying = regexp.MustCompile(`^\S+ (.+) · retrying.* · attempt ([0-9]{1,3})/([0-9]{1,3})$`)

// claudeRetrying returns the error that the turn on the screen is retrying, if any.
func claudeRetrying(text string) (r screen.Retry, ok bool) {
	rows := claudeRows(text)
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

var greeting = regexp.MustCompile(`(?m)^\W*Claude Code v(\d+\.\d+\.\d+)\b`)

// claudeVersion returns the client's version from its greeting, "" if that is not on the screen.
func claudeVersion(text string) string {
	if m := greeting.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// marker precedes the selected option and typed text.
const marker = "❯"

// minRule is the shortest line that counts as one across the screen.
const minRule = 20

// isRule reports whether a row is a line across the screen. The lines around the input may contain a name.
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

func lastRule(rows []string) int { return lastOf(rows, isRule) }

// conversation recognises the state of a session whose input is between the rows top and bottom.
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
	if at := lastOf(rows, startsAtMargin); at >= 0 {
		return rows[at]
	}
	return ""
}

// spins reports whether a row shows a turn's progress, such as "✻ Brewing… (4s)".
func spins(row string) bool {
	return startsSpinner(row) && (strings.Contains(row, "…") || retrying.MatchString(row))
}

func startsSpinner(row string) bool {
	mark, _, _ := strings.Cut(row, " ")
	return row != mark && slices.Contains([]string{"·", "✢", "✳", "✶", "✻", "✽", "*"}, mark)
}

// needsLogin reports whether the last message says that the turn failed for want of a login.
func needsLogin(rows []string) bool {
	for _, row := range slices.Backward(rows) {
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
