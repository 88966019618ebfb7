package screen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/screen"
)

var (
	line  = strings.Repeat("─", 80) + "\n"
	trust = " Accessing workspace:\n\n /srv/project\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel\n"
)

// input is the input line with some text.
func input(typed string) string {
	return "\n" + line + "❯ " + typed + "\n" + line + "  ⏵⏵ auto mode on (shift+tab to cycle)\n"
}

func TestRecognise(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want screen.Sight
	}{
		"nothing":                   {"", screen.Sight{}},
		"a dialog":                  {line + trust, screen.Sight{Kind: screen.Untrusted, Title: "Accessing workspace:"}},
		"its title scrolled away":   {trust, screen.Sight{Kind: screen.Untrusted, Title: ""}},
		"not all of it yet":         {line + strings.TrimSuffix(trust, "Esc to cancel\n"), screen.Sight{}},
		"no option is marked":       {line + strings.ReplaceAll(trust, "❯", " "), screen.Sight{Kind: screen.Dialog, Title: "Accessing workspace:"}},
		"one that is not known":     {line + "  Managed settings\n\n  ❯ Yes\n    No, exit\n\n  Enter to confirm · Esc to exit", screen.Sight{Kind: screen.Dialog, Title: "Managed settings"}},
		"answered with no":          {line + trust + "\nClaude Code didn't start because this folder isn't trusted.\nRun claude again", screen.Sight{Kind: screen.Untrusted}},
		"a reply about it":          {"● It says:\n\n" + line + trust + input(""), screen.Sight{Kind: screen.Ready}},
		"a reply about it, drawn":   {"❯ what does it say?\n\n● It says:\n\n" + trust, screen.Sight{}},
		"a prompt about it":         {input("it says\n" + trust), screen.Sight{Kind: screen.Ready}},
		"amid a turn about it":      {"❯ hello\n\n" + trust + "\n✻ Brewing… (4s)\n" + input(""), screen.Sight{Kind: screen.Busy}},
		"a tool that prints it":     {trust + line + " Bash command\n\n echo '\n" + trust + "'\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", screen.Sight{Kind: screen.Permission, Title: "Bash command"}},
		"a draft about interrupts":  {input("first\n  esc to interrupt"), screen.Sight{Kind: screen.Ready}},
		"a turn that was done":      {"✻ Cooked for 3s · done 7:36 PM\n" + input(""), screen.Sight{Kind: screen.Ready}},
		"a tool about logins":       {"● Bash\n  ⎿  Not logged in · Please run /login\n" + input(""), screen.Sight{Kind: screen.Ready}},
		"a later turn":              {"  ⎿  Not logged in · Please run /login\n❯ again\n● done\n" + input("Once fixed, resend your message"), screen.Sight{Kind: screen.Ready}},
		"no login":                  {"❯ hello\n  ⎿  Not logged in · Please run /login\n" + input("Once fixed, resend your message"), screen.Sight{Kind: screen.Login}},
		"no credit":                 {"❯ hello\n  ⎿  Credit balance too low\n" + input("Once fixed, resend your message"), screen.Sight{Kind: screen.Ready}},
		"the frame carries a name":  {strings.Repeat("─", 60) + " work ──\n❯\n" + line, screen.Sight{Kind: screen.Ready}},
		"a conversation being read": {line + "❯ hello\n● hi", screen.Sight{}},
	} {
		assert.Equal(t, c.want, Recognise(c.text), "%s:\n%s", name, c.text)
	}
}
