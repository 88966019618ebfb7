package screen

import "heartbeat/internal/screen"

// Advise is what a person is told of a sight.
func Advise(s screen.Sight) screen.Advice {
	told := advice[s.Kind]
	if s.Kind == screen.Dialog {
		told.Cause = `Codex shows a dialog ("` + s.Title + `") that a person has to answer`
	}
	return told
}

var advice = map[screen.Kind]screen.Advice{
	screen.Hooks: {
		Matter: screen.Setup,
		Cause:  "there are hooks that nobody has trusted: Codex asks about them, and starts no session before",
		Fix:    "start codex in this folder once, and review the hooks yourself",
	},
	screen.Login: {
		Matter: screen.Authentication,
		Cause:  "Codex is not logged in",
		Fix:    "run codex login once as this user, or name a provider and the variable with its key in config.toml",
	},
	screen.Permission: {
		Matter: screen.Setup,
		Cause:  "Codex asks for permission to do something, and waits for the answer",
		Fix:    "allow it with --sandbox or --ask-for-approval, or with a rule of your own",
	},
	screen.Dialog: {
		Matter: screen.Setup,
		Fix:    "start codex in this folder once, with the same arguments, and answer the dialog yourself",
	},
}
