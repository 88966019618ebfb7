package client

import (
	"regexp"
	"slices"
	"strings"

	"heartbeat/internal/screen"
)

// RecogniseClaude classifies a screen (see [screen.Screen.Text]). A conversation may quote a dialog, so positions
// count too: a dialog is at the end of the screen, where a conversation has its input line.
func RecogniseClaude(text string) screen.Sight {
	rows := rowsOf(text)
	if top, bottom, ok := inputBox(rows); ok {
		return screen.Sight{Kind: conversation(rows, top, bottom)}
	}
	if sight := recogniseRefusal(rows); sight.Kind != screen.Unknown {
		return sight
	}
	if kind := firstStart(rows); kind != screen.Unknown {
		return screen.Sight{Kind: kind}
	}
	return claudeDialog(rows)
}

func rowsOf(text string) []string { return strings.Split(strings.TrimRight(text, " \n"), "\n") }

// recogniseRefusal recognises why the client gave up, which it prints at the margin.
func recogniseRefusal(rows []string) screen.Sight {
	last := rows[max(0, len(rows)-3):]
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
		i := slices.IndexFunc(last, func(row string) bool { return strings.HasPrefix(row, w.row) })
		switch {
		case i < 0:
		case w.kind == screen.Usage:
			return screen.Sight{Kind: w.kind, Title: strings.Join(last[i:], " ")}
		default:
			return screen.Sight{Kind: w.kind}
		}
	}
	return screen.Sight{}
}

// firstStart recognises the questions of the first start, which have no frame. The greeting may
// have scrolled off a small screen.
func firstStart(rows []string) screen.Kind {
	switch greeted := strings.HasPrefix(rows[0], "Welcome to Claude Code v"); {
	case hasRow(rows, "Choose the text style that looks best with your terminal") && hasMark(rows),
		greeted && hasRow(rows, "Select login method:"),
		greeted && hasRow(rows, "Paste code here if prompted"):
		return screen.Onboarding
	case hasRow(rows, "Unable to connect to Anthropic services") && hasRowPrefix(rows, "Failed to connect to "):
		return screen.Offline
	}
	return screen.Unknown
}

// hasRow reports whether a row consists of this text, except for what [unmarked] removes.
func hasRow(rows []string, want string) bool {
	return slices.ContainsFunc(rows, func(row string) bool { return unmarked(row) == want })
}

func hasRowPrefix(rows []string, want string) bool {
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
	rows := rowsOf(text)
	top, _, ok := inputBox(rows)
	if !ok {
		return screen.Retry{}, false
	}
	row := lastAtMargin(rows[:top])
	m := retrying.FindStringSubmatch(row)
	if m == nil || !startsSpinner(row) {
		return screen.Retry{}, false
	}
	return screen.Retry{Cause: m[1], Try: m[2], Most: m[3]}, true
}

var greeting = regexp.MustCompile(`(?m)^\W*Claude Code v(\d+\.\d+\.\d+)\b`)

// marker precedes the selected option and typed text.
const marker = "❯"

// minRule is the least length of a line across the screen, in characters.
const minRule = 20

// isRule reports whether a row is a line across the screen. Such a line may contain a name.
func isRule(row string) bool {
	return slices.ContainsFunc([]string{"─", "▔"}, func(c string) bool {
		return strings.HasPrefix(row, strings.Repeat(c, 3)) && strings.HasSuffix(row, c) && strings.Count(row, c) >= minRule
	})
}

// inputBox returns the rows of the two lines around the input, at the end of the screen.
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
	above, input := rows[:top], rows[top+1]
	last := lastAtMargin(above)
	spins := startsSpinner(last) && (strings.Contains(last, "…") || retrying.MatchString(last)) // such as "✻ Brewing… (4s)"
	switch {
	case spins, strings.Contains(strings.Join(rows[bottom+1:], "\n"), "esc to interrupt"):
		return screen.Busy
	case strings.HasPrefix(input, marker+" Once fixed, resend your message") && needsLogin(above):
		return screen.Login
	}
	return screen.Ready
}

func lastAtMargin(rows []string) string {
	if at := lastOf(rows, startsAtMargin); at >= 0 {
		return rows[at]
	}
	return ""
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

func claudeDialog(rows []string) screen.Sight {
	rule := lastRule(rows)
	if rule < 0 && lastOf(rows, startsAtMargin) >= 0 {
		return screen.Sight{} // a conversation that is being drawn: a dialog has nothing at the left margin
	}
	last := rows[len(rows)-1]
	// The options of a question contain another line across the screen, so all rows must be checked.
	if strings.HasPrefix(last, "Enter to select") && hasRowPrefix(rows, "Type something") && hasRow(rows, "Chat about this") {
		return screen.Sight{Kind: screen.Question}
	}
	body := rows[rule+1:]
	sight := screen.Sight{Kind: dialogKind(body)}
	switch {
	case asksPermission(body):
		sight.Kind = screen.Permission
	case !takesEsc(last) && !takesEsc(strings.Join(rows[max(0, len(rows)-2):], " ")): // a small screen breaks the list of keys
		return screen.Sight{}
	case sight.Kind == screen.Unknown && rule >= 0:
		sight.Kind = screen.Dialog
	}
	if rule < 0 {
		return sight // the title is off the screen
	}
	for _, row := range body {
		if row = strings.TrimLeft(row, " "); row != "" && !isRule(row) {
			sight.Title = row
			break
		}
	}
	return sight
}

// dialogKind recognises a dialog by its options, since its title may have scrolled off a small screen.
func dialogKind(body []string) screen.Kind {
	selected := hasMark(body)
	switch {
	case selected && hasRow(body, "Yes, I trust this folder"):
		return screen.Untrusted
	case selected && hasRowPrefix(body, "Do you want to use this API key?"):
		return screen.APIKey
	case selected && hasRow(body, "Select login method:"):
		return screen.Login
	}
	return screen.Unknown
}

// hasMark reports whether an option is selected.
func hasMark(rows []string) bool {
	return slices.ContainsFunc(rows, func(row string) bool {
		return strings.HasPrefix(row, " ") && strings.HasPrefix(strings.TrimLeft(row, " "), marker+" ")
	})
}

// asksPermission reports whether the dialog asks to allow a tool. Not every such dialog has a foot,
// so the options must be in the last rows.
func asksPermission(body []string) bool {
	last := body[max(0, len(body)-4):]
	return hasMark(body) && (hasRowPrefix(body, "Do you want to ") || hasRowPrefix(body, "Claude wants to ")) &&
		(hasRowPrefix(body, "Yes, and ") || hasRow(body, "Yes")) && (hasRow(last, "No") || hasRowPrefix(last, "No, ")) &&
		!hasRowPrefix(body, "Do you want to use this API key?")
}

// takesEsc reports whether a list of a dialog's keys has Esc, as it always does.
func takesEsc(foot string) bool {
	return slices.ContainsFunc(strings.Split(foot, " · "), func(key string) bool {
		return strings.HasPrefix(strings.TrimLeft(key, " "), "Esc to ")
	})
}

var claudeAdvice = map[screen.Kind]screen.Advice{
	screen.Untrusted: setup("the folder is not trusted: Claude Code asks whether to trust it, and no hook runs before",
		"start claude in this folder once, and answer the dialog yourself"),
	screen.Onboarding: setup("Claude Code was never set up for this user: it asks the questions of its first start, and no hook runs before",
		"start claude once as this user, with the same HOME, and answer its questions yourself"),
	screen.Offline: setup("Claude Code reached none of its services, which its first start needs",
		"see to the network and its proxy, then start claude once and answer its questions yourself"),
	screen.Dialog: setup("",
		"start claude in this folder once, with the same arguments, and answer the dialog yourself"),
	screen.APIKey: login("the API key in the environment is not approved: Claude Code asks whether to use it, and no hook runs before",
		"start claude in this folder once, with the same ANTHROPIC_API_KEY, and answer the dialog yourself"),
	screen.Login: login("Claude Code is not logged in, or its key or login is not accepted",
		"start claude once as this user and log in with /login, or set ANTHROPIC_API_KEY to a key that is valid"),
	screen.NoConversation: setup("there is no conversation that Claude Code could go on with",
		"leave --continue or --resume out, or give the id of a session of this folder"),
	screen.BypassRefused: setup("Claude Code refuses --dangerously-skip-permissions to root",
		"run it as another user, or allow the tools it needs in the permissions of the settings instead"),
	screen.Question: setup("the model asks a person a question, and waits for the answer",
		"have the prompt say that nobody is there to answer, or disallow the tool AskUserQuestion"),
	screen.Permission: setup("Claude Code asks for permission to use a tool, and waits for the answer",
		"allow the tool in the permissions of the settings, or choose another permission mode"),
}

func setup(cause, fix string) screen.Advice {
	return screen.Advice{Matter: screen.Setup, Cause: cause, Fix: fix}
}

// login is setup for the client's account.
func login(cause, fix string) screen.Advice {
	return screen.Advice{Matter: screen.Authentication, Cause: cause, Fix: fix}
}
