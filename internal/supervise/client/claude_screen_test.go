package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/screen"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/screens"
)

func recordingsClaude(t testing.TB) []screens.Recording { return screens.Recordings(t, "claude") }

// innocent are the kinds that a screen may have while any other is being drawn.
var innocent = []screen.Kind{screen.Unknown, screen.Busy, screen.Ready}

// Every recording is recognised at its end, and not as something else before.
func TestClaudeRecordings(t *testing.T) {
	for _, r := range recordingsClaude(t) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			allowed := append([]screen.Kind{screen.Kind(r.Kind)}, innocent...)
			s := screen.New(r.Rows, r.Cols)
			step := max(1, len(r.Printed)/long.Rounds(50, 400))
			for at := 0; at < len(r.Printed); at += step {
				_, _ = s.Write(r.Printed[at:min(at+step, len(r.Printed))])
				text := s.Text()
				require.Contains(t, allowed, RecogniseClaude(text).Kind, "after %d bytes:\n%s", at+step, text)
			}
			sight := RecogniseClaude(s.Text())
			assert.Equal(t, screen.Kind(r.Kind), sight.Kind, s.Text())
			if sight.Kind == screen.Dialog && r.Rows == 50 { // as a launcher has with nobody at its terminal
				assert.NotEmpty(t, sight.Title, s.Text())
			}
		})
	}
}

// The screen does not depend on how the bytes were split.
func TestClaudeRecordingsAtOnce(t *testing.T) {
	for _, r := range recordingsClaude(t) {
		bytewise, atOnce := screen.New(r.Rows, r.Cols), screen.New(r.Rows, r.Cols)
		for i := range r.Printed {
			_, _ = bytewise.Write(r.Printed[i : i+1])
		}
		_, _ = atOnce.Write(r.Printed)
		assert.Equal(t, bytewise.Text(), atOnce.Text(), r.Name)
	}
}

// A dialog's words above an input line are part of the conversation.
func TestClaudeQuotedDialogs(t *testing.T) {
	rule := strings.Repeat("─", 80)
	for _, r := range recordingsClaude(t) {
		s := screen.New(r.Rows, r.Cols)
		_, _ = s.Write(r.Printed)
		text := "● " + s.Text() + "\n\n" + rule + "\n❯ \n" + rule + "\n  ⏵⏵ auto mode on (shift+tab to cycle)"
		assert.Contains(t, innocent, RecogniseClaude(text).Kind, "%s:\n%s", r.Name, text)
	}
}

// Each kind that stops a session says why and what to do, and the others say nothing.
func TestClaudeAdvice(t *testing.T) {
	seen := map[screen.Kind]bool{}
	for _, r := range recordingsClaude(t) {
		told := claudeCode.Advise(screen.Sight{Kind: screen.Kind(r.Kind), Title: "Login"})
		seen[screen.Kind(r.Kind)] = true
		switch screen.Kind(r.Kind) {
		case screen.Unknown, screen.Busy, screen.Ready:
			assert.Equal(t, []any{"", "", screen.Nothing}, []any{told.Cause, told.Fix, told.Matter}, screen.Kind(r.Kind))
		case screen.Login, screen.APIKey:
			assert.Equal(t, screen.Authentication, told.Matter, screen.Kind(r.Kind))
		default:
			assert.Equal(t, screen.Setup, told.Matter, screen.Kind(r.Kind))
		}
		if told.Matter != screen.Nothing {
			assert.NotEmpty(t, told.Cause, screen.Kind(r.Kind))
			assert.NotEmpty(t, told.Fix, screen.Kind(r.Kind))
			assert.False(t, strings.HasSuffix(told.Fix, "."), screen.Kind(r.Kind))
		}
	}
	for _, kind := range []screen.Kind{screen.Untrusted, screen.Onboarding, screen.APIKey, screen.BypassRefused,
		screen.NoConversation, screen.Offline, screen.Dialog, screen.Login, screen.Permission, screen.Question, screen.Busy, screen.Ready} {
		assert.True(t, seen[kind], "there is no recording of %s", kind)
	}
	assert.Contains(t, claudeCode.Advise(screen.Sight{Kind: screen.Dialog, Title: "Managed settings"}).Cause, `"Managed settings"`)
}

func FuzzRecogniseClaude(f *testing.F) {
	f.Add("")
	f.Add("❯\n\n\n")
	for _, r := range recordingsClaude(f) {
		s := screen.New(r.Rows, r.Cols)
		_, _ = s.Write(r.Printed)
		f.Add(s.Text())
	}
	f.Fuzz(func(t *testing.T, text string) {
		told := claudeCode.Advise(RecogniseClaude(text))
		assert.Equal(t, told.Matter == screen.Nothing, told.Cause == "")
		assert.Equal(t, told.Cause == "", told.Fix == "")
	})
}

var (
	line        = strings.Repeat("─", 80) + "\n"
	trustDialog = " Accessing workspace:\n\n /srv/project\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel\n"
)

// input is the input line with some text.
func input(typed string) string {
	return "\n" + line + "❯ " + typed + "\n" + line + "  ⏵⏵ auto mode on (shift+tab to cycle)\n"
}

func TestClaudeRecognise(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want screen.Sight
	}{
		"nothing":                    {"", screen.Sight{}},
		"a dialog":                   {line + trustDialog, screen.Sight{Kind: screen.Untrusted, Title: "Accessing workspace:"}},
		"its title scrolled away":    {trustDialog, screen.Sight{Kind: screen.Untrusted, Title: ""}},
		"not all of it yet":          {line + strings.TrimSuffix(trustDialog, "Esc to cancel\n"), screen.Sight{}},
		"no option is marked":        {line + strings.ReplaceAll(trustDialog, "❯", " "), screen.Sight{Kind: screen.Dialog, Title: "Accessing workspace:"}},
		"one that is not known":      {line + "  Managed settings\n\n  ❯ Yes\n    No, exit\n\n  Enter to confirm · Esc to exit", screen.Sight{Kind: screen.Dialog, Title: "Managed settings"}},
		"answered with no":           {line + trustDialog + "\nClaude Code didn't start because this folder isn't trusted.\nRun claude again", screen.Sight{Kind: screen.Untrusted}},
		"a reply about it":           {"● It says:\n\n" + line + trustDialog + input(""), screen.Sight{Kind: screen.Ready}},
		"a reply about it, drawn":    {"❯ what does it say?\n\n● It says:\n\n" + trustDialog, screen.Sight{}},
		"a prompt about it":          {input("it says\n" + trustDialog), screen.Sight{Kind: screen.Ready}},
		"amid a turn about it":       {"❯ hello\n\n" + trustDialog + "\n✻ Brewing… (4s)\n" + input(""), screen.Sight{Kind: screen.Busy}},
		"a tool that prints it":      {trustDialog + line + " Bash command\n\n echo '\n" + trustDialog + "'\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", screen.Sight{Kind: screen.Permission, Title: "Bash command"}},
		"a draft about interrupts":   {input("first\n  esc to interrupt"), screen.Sight{Kind: screen.Ready}},
		"a turn that is tried again": {"✽ 401 invalid x-api-key · retrying in 1m 2s · attempt 10/10\n" + input(""), screen.Sight{Kind: screen.Busy}},
		"a reply about that":         {"● API error · retrying in 1s · attempt 1/10\n" + input(""), screen.Sight{Kind: screen.Ready}},
		"a turn that was done":       {"✻ Cooked for 3s · done 7:36 PM\n" + input(""), screen.Sight{Kind: screen.Ready}},
		"a tool about logins":        {"● Bash\n  ⎿  Not logged in · Please run /login\n" + input(""), screen.Sight{Kind: screen.Ready}},
		"a later turn":               {"  ⎿  Not logged in · Please run /login\n❯ again\n● done\n" + input("Once fixed, resend your message"), screen.Sight{Kind: screen.Ready}},
		"no login":                   {"❯ hello\n  ⎿  Not logged in · Please run /login\n" + input("Once fixed, resend your message"), screen.Sight{Kind: screen.Login}},
		"no credit":                  {"❯ hello\n  ⎿  Credit balance too low\n" + input("Once fixed, resend your message"), screen.Sight{Kind: screen.Ready}},
		"the frame carries a name":   {strings.Repeat("─", 60) + " work ──\n❯\n" + line, screen.Sight{Kind: screen.Ready}},
		"a conversation being read":  {line + "❯ hello\n● hi", screen.Sight{}},
	} {
		assert.Equal(t, c.want, RecogniseClaude(c.text), "%s:\n%s", name, c.text)
	}
}

func TestClaudeRetrying(t *testing.T) {
	for text, want := range map[string]screen.Retry{
		"❯ begin\n\n✻ API error · retrying in 1s · attempt 1/10\n" + input(""):      {Cause: "API error", Try: "1", Most: "10"},
		"❯ begin\n\n· API error · retrying… · attempt 2/10\n" + input("typed"):      {Cause: "API error", Try: "2", Most: "10"},
		"✽ 401 invalid x-api-key · retrying in 1m 2s · attempt 10/10\n" + input(""): {Cause: "401 invalid x-api-key", Try: "10", Most: "10"},
		"":                              {},
		"✻ Brewing… (4s)\n" + input(""): {},
		"✻ Cooked for 3s\n" + input(""): {},
		"API error · retrying in 1s · attempt 1/10":                                            {},
		"● API error · retrying in 1s · attempt 1/10\n" + input(""):                            {},
		"  ✻ API error · retrying in 1s · attempt 1/10\n" + input(""):                          {},
		"✻ API error · retrying in 1s · attempt 1/10\n\n✻ Brewing… (4s)\n" + input(""):         {},
		input("✻ API error · retrying in 1s · attempt 1/10"):                                   {},
		"✻ API error · retrying in 1s · attempt 1/10000000000000000000000000000\n" + input(""): {},
	} {
		got, ok := claudeRetrying(text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, want != screen.Retry{}, ok, text)
	}
}

// How to resume a session is no reason why it ended.
func TestClaudeLastWords(t *testing.T) {
	const hint = "\nResume this session with:\nclaude --resume 5d7f8f0e-1c0e-4b57-9d0b-3b0c9d3f6a11\n"
	for text, want := range map[string]string{
		"":                            "",
		hint:                          "",
		"error: out of memory\n":      "error: out of memory",
		"error: out of memory" + hint: "error: out of memory",
		"● done\n" + input("") + hint: "",
		"it said: Resume this session with:\nnothing": "nothing",
	} {
		assert.Equal(t, want, claudeLastWords(text))
	}
}
