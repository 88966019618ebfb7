package screen

import (
	"strings"

	"heartbeat/internal/screen"
)

// Recognise classifies what a screen shows (see [Screen.Text]). It uses positions
// and not just words, since a conversation may quote the words of a dialog: a
// dialog is at the end of the screen, where a conversation has its input line.
func Recognise(text string) screen.Sight {
	rows := strings.Split(strings.TrimRight(text, " \n"), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(strings.ReplaceAll(row, "\u00a0", " "), " ")
	}
	if top, bottom, ok := inputBox(rows); ok {
		return screen.Sight{Kind: conversation(rows, top, bottom)}
	}
	if kind := lastWords(rows); kind != screen.Unknown {
		return screen.Sight{Kind: kind}
	}
	if kind := firstStart(rows); kind != screen.Unknown {
		return screen.Sight{Kind: kind}
	}
	return dialog(rows)
}

// lastWords recognises why the client gave up, which it prints at the margin.
func lastWords(rows []string) screen.Kind {
	for _, w := range []struct {
		row  string
		kind screen.Kind
	}{
		{"No conversation found to continue", screen.NoConversation},
		{"No conversation found with session ID", screen.NoConversation},
		{"--dangerously-skip-permissions cannot be used with root", screen.BypassRefused},
		{"Claude Code didn't start because this folder isn't trusted", screen.Untrusted},
	} {
		for _, row := range rows[max(0, len(rows)-3):] {
			if strings.HasPrefix(row, w.row) {
				return w.kind
			}
		}
	}
	return screen.Unknown
}

// firstStart recognises the questions of the first start, which have no frame. On
// a small screen the greeting may have scrolled away.
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

// has reports whether a row consists of this text, apart from what [unmarked]
// removes.
func has(rows []string, want string) bool {
	for _, row := range rows {
		if unmarked(row) == want {
			return true
		}
	}
	return false
}

func hasPrefix(rows []string, want string) bool {
	for _, row := range rows {
		if strings.HasPrefix(unmarked(row), want) {
			return true
		}
	}
	return false
}

// unmarked returns a row without its indentation, the mark of the selected option,
// and the option's number.
func unmarked(row string) string {
	row = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(row, " "), marker), " ")
	if number, rest, ok := strings.Cut(row, ". "); ok && len(number) == 1 && number >= "1" && number <= "9" {
		return rest
	}
	return row
}
