package screen

import "heartbeat/internal/screen"

// Advise is what a person is told of a sight.
func Advise(s screen.Sight) screen.Advice {
	switch s.Kind {
	case screen.Hooks:
		return screen.Advice{Matter: screen.Setup, Cause: "there are hooks that nobody has trusted: Codex asks about them, and starts no session before",
			Fix: "start codex in this folder once, and review the hooks yourself"}
	case screen.Login:
		return screen.Advice{Matter: screen.Authentication, Cause: "Codex is not logged in",
			Fix: "run codex login once as this user, or name a provider and the variable with its key in config.toml"}
	case screen.Permission:
		return screen.Advice{Matter: screen.Setup, Cause: "Codex asks for permission to do something, and waits for the answer",
			Fix: "allow it with --sandbox or --ask-for-approval, or with a rule of your own"}
	case screen.Dialog:
		return screen.Advice{Matter: screen.Setup, Cause: `Codex shows a dialog ("` + s.Title + `") that a person has to answer`,
			Fix: "start codex in this folder once, with the same arguments, and answer the dialog yourself"}
	}
	return screen.Advice{}
}
