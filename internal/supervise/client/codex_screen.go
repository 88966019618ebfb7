package client

import (
	"regexp"
	"strings"

	"heartbeat/internal/screen"
)

var (
	// chosen matches the selected option of a dialog.
	chosen = regexp.MustCompile(`^[›>] [1-9]\. `)
	// foot matches the list of keys at a dialog's end.
	foot = regexp.MustCompile(`(?i)^ +(press )?enter (to )?(confirm|select|continue)\b`)
)

// composer precedes the line that a person types.
const composer = "›"

// recogniseCodex classifies a screen (see [screen.Screen.Text]). A dialog is at the end of the
// screen, where a conversation has its input line: a conversation may quote a dialog.
func recogniseCodex(text string) screen.Sight {
	rows := rowsOf(text)
	if at := lastOf(rows, chosen.MatchString); at >= 0 && foot.MatchString(rows[len(rows)-1]) {
		return codexDialog(rows, at)
	}
	if at := lastOf(rows, func(row string) bool { return strings.HasPrefix(row, "error: ") }); at >= 0 && rows[len(rows)-1] == codexUsage {
		return screen.Sight{Kind: screen.Usage, Title: rows[at]}
	}
	if strings.HasPrefix(rows[len(rows)-1], codexUntrusted) {
		return screen.Sight{Kind: screen.Untrusted}
	}
	if n := len(rows); n > 1 && rows[n-2] == "tokens used" && codexLastWords(text) == rows[n-1] {
		return screen.Sight{Kind: screen.Busy} // `codex exec` has worked, or a command that it runs has printed this
	}
	at := lastOf(rows, func(row string) bool {
		return (row == composer || strings.HasPrefix(row, composer+" ")) && !chosen.MatchString(row)
	})
	if at < 0 || len(rows)-1-at > belowInput {
		return screen.Sight{}
	}
	if last := lastOf(rows[:at], startsAtMargin); last >= 0 && strings.Contains(rows[last], "esc to interrupt") {
		return screen.Sight{Kind: screen.Busy}
	}
	return screen.Sight{Kind: screen.Ready}
}

// codexUsage is the last line that Codex prints when it refuses its arguments.
const codexUsage = "For more information, try '--help'."

// codexUntrusted begins what `codex exec` prints when it gives up in a folder that nobody has trusted.
const codexUntrusted = "Not inside a trusted directory"

// belowInput is the most rows that a conversation has below the input.
const belowInput = 12

func startsAtMargin(row string) bool { return row != "" && row[0] != ' ' }

func lastOf(rows []string, is func(string) bool) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if is(rows[i]) {
			return i
		}
	}
	return -1
}

// codexDialog recognises the dialog whose selected option is in row at.
func codexDialog(rows []string, at int) screen.Sight {
	first := at // the first row of its options
	for first > 0 && rows[first-1] != "" {
		first--
	}
	above := strings.TrimRight(strings.Join(rows[:first], "\n"), " \n")
	paragraph := above[strings.LastIndex("\n\n"+above, "\n\n"):]
	title, _, _ := strings.Cut(strings.TrimLeft(paragraph, "\n"), "\n")
	s := screen.Sight{Kind: screen.Dialog, Title: strings.TrimSpace(title)}
	switch {
	case s.Title == "Hooks need review":
		s.Kind = screen.Hooks
	case strings.Contains(rows[at], "Sign in with ChatGPT"):
		s.Kind = screen.Login
	case lastOf(rows, func(row string) bool { return strings.HasPrefix(row, "  Would you like to ") }) >= 0:
		s.Kind = screen.Permission
	}
	return s
}

// codexLastWords returns why `codex exec` gave up, in one line: the last error printed, which a
// count of tokens follows and no answer of the model, or the last line.
func codexLastWords(text string) string {
	rows := strings.Split(strings.TrimSpace(text), "\n")
	answered := lastOf(rows, func(row string) bool { return row == "codex" })
	if at := lastOf(rows, func(row string) bool { return strings.HasPrefix(row, "ERROR: ") }); at > answered {
		return strings.TrimPrefix(rows[at], "ERROR: ")
	}
	return screen.LastLine(text)
}

var codexAdvice = map[screen.Kind]screen.Advice{
	screen.Hooks: setup("there are hooks that nobody has trusted: Codex asks about them, and starts no session before",
		"start codex in this folder once, and review the hooks yourself"),
	screen.Untrusted: setup("the folder is neither trusted nor in a git repository",
		"start codex in this folder once and trust it, or add --skip-git-repo-check to codex exec"),
	screen.Login: login("Codex is not logged in",
		"run codex login once as this user, or name a provider and the variable with its key in config.toml"),
	screen.Permission: setup("Codex asks for permission to do something, and waits for the answer",
		"allow it with --sandbox or --ask-for-approval, or with a rule of your own"),
	screen.Dialog: setup("",
		"start codex in this folder once, with the same arguments, and answer the dialog yourself"),
}
