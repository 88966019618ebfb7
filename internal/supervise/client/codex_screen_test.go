package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/screen"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/screens"
)

func recordingsCodex(t testing.TB) []screens.Recording { return screens.Recordings(t, "codex") }

func shown(r screens.Recording) string {
	s := screen.New(r.Rows, r.Cols)
	_, _ = s.Write(r.Printed)
	return s.Text()
}

// Every recording is recognised at its end, and not as something else before.
func TestCodexRecordings(t *testing.T) {
	for _, r := range recordingsCodex(t) {
		allowed := []screen.Kind{screen.Kind(r.Kind), screen.Unknown, screen.Busy, screen.Ready}
		s := screen.New(r.Rows, r.Cols)
		step := max(1, len(r.Printed)/long.Rounds(50, 400))
		for at := 0; at < len(r.Printed); at += step {
			_, _ = s.Write(r.Printed[at:min(at+step, len(r.Printed))])
			require.Contains(t, allowed, recogniseCodex(s.Text()).Kind, "%s, after %d bytes:\n%s", r.Name, at+step, s.Text())
		}
		assert.Equal(t, screen.Kind(r.Kind), recogniseCodex(s.Text()).Kind, "%s:\n%s", r.Name, s.Text())
	}
}

// A dialog's words above an input line are part of the conversation, and say nothing where
// there is no more than text.
func TestCodexQuotedDialogs(t *testing.T) {
	for _, r := range recordingsCodex(t) {
		quoted := "• It says:\n" + shown(r)
		for _, text := range []string{quoted + "\n\n› \n\n  gpt-5 default · ~/project\n", quoted + "\ntokens used\n620"} {
			kind := recogniseCodex(text).Kind
			assert.Contains(t, []screen.Kind{screen.Unknown, screen.Ready, screen.Busy}, kind, "%s:\n%s", r.Name, text)
		}
	}
}

// What `codex exec` prints at its end says that it has worked, unless an error ended it. No prompt is there at which it
// could sit in vain, also if one of its commands prints this while it works on.
func TestCodexExecHasWorked(t *testing.T) {
	for text, want := range map[string]screen.Kind{
		"codex\nready\ntokens used\n1,010\n":                             screen.Busy,
		"ERROR: Reconnecting... 1/5\ncodex\nready\ntokens used\n1,010\n": screen.Busy,
		"ERROR: it broke\ntokens used\n1,010\n":                          screen.Unknown,
		"codex\ntokens used\n1,010\nand so it was\n":                     screen.Unknown,
	} {
		assert.Equal(t, want, recogniseCodex(text).Kind, text)
	}
}

// Each kind that stops a session says why and what to do, and the others say nothing.
func TestCodexAdvice(t *testing.T) {
	matters := map[screen.Kind]screen.Matter{
		screen.Hooks: screen.Setup, screen.Login: screen.Authentication, screen.Permission: screen.Setup, screen.Dialog: screen.Setup,
		screen.Usage: screen.Setup, screen.Ready: screen.Nothing, screen.Busy: screen.Nothing,
	}
	seen := map[screen.Kind]bool{}
	for _, r := range recordingsCodex(t) {
		sight := recogniseCodex(shown(r))
		seen[sight.Kind] = true
		told, want := codex.Advise(sight), matters[sight.Kind]
		assert.Equal(t, want, told.Matter, r.Name)
		assert.Equal(t, want == screen.Nothing, told.Cause == "" && told.Fix == "", r.Name)
		if sight.Kind == screen.Dialog {
			assert.Contains(t, told.Cause, `"Select Model and Effort"`)
		}
	}
	assert.Len(t, seen, len(matters), "there is a recording of each")
}

func TestCodexUntrusted(t *testing.T) {
	const said = "Not inside a trusted directory and --skip-git-repo-check was not specified."
	told := codex.Advise(recogniseCodex("WARNING: something\n" + said + "\n"))
	assert.Equal(t, screen.Setup, told.Matter)
	assert.Contains(t, told.Fix, "--skip-git-repo-check")
	assert.Equal(t, screen.Busy, recogniseCodex("it says:\n"+said+"\ntokens used\n620").Kind)
}

func FuzzRecogniseCodex(f *testing.F) {
	f.Add("")
	f.Add("› 1. \n\n enter confirm")
	for _, r := range recordingsCodex(f) {
		f.Add(shown(r))
	}
	f.Fuzz(func(t *testing.T, text string) {
		told := codex.Advise(recogniseCodex(text))
		assert.Equal(t, told.Matter == screen.Nothing, told.Cause == "")
	})
}

func TestCodexLastWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"Error: no such thing\n": "Error: no such thing",
		"one\nERROR: first\nERROR: it broke\ntokens used\n0\n": "it broke",
		"said ERROR: nothing\n12":                              "12",
	} {
		assert.Equal(t, want, codexLastWords(text))
	}
}
