package screen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/screen"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/screens"
)

func recordings(t testing.TB) []screens.Recording { return screens.Recordings(t, "claude") }

// innocent are the kinds that a screen may have while any other is being drawn.
var innocent = []screen.Kind{screen.Unknown, screen.Busy, screen.Ready}

// Every recording is recognised at its end, and not as something else before.
func TestRecordings(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			allowed := append([]screen.Kind{screen.Kind(r.Kind)}, innocent...)
			s := screen.New(r.Rows, r.Cols)
			step := max(1, len(r.Printed)/long.Rounds(50, 400))
			for at := 0; at < len(r.Printed); at += step {
				_, _ = s.Write(r.Printed[at:min(at+step, len(r.Printed))])
				text := s.Text()
				require.Contains(t, allowed, Recognise(text).Kind, "after %d bytes:\n%s", at+step, text)
			}
			assert.Equal(t, screen.Kind(r.Kind), Recognise(s.Text()).Kind, s.Text())
		})
	}
}

// The screen does not depend on how the bytes were split.
func TestRecordingsAtOnce(t *testing.T) {
	for _, r := range recordings(t) {
		bytewise, atOnce := screen.New(r.Rows, r.Cols), screen.New(r.Rows, r.Cols)
		for i := range r.Printed {
			_, _ = bytewise.Write(r.Printed[i : i+1])
		}
		_, _ = atOnce.Write(r.Printed)
		assert.Equal(t, bytewise.Text(), atOnce.Text(), r.Name)
	}
}

// A dialog's words above an input line are part of the conversation.
func TestQuotedDialogs(t *testing.T) {
	rule := strings.Repeat("─", 80)
	for _, r := range recordings(t) {
		s := screen.New(r.Rows, r.Cols)
		_, _ = s.Write(r.Printed)
		text := "● " + s.Text() + "\n\n" + rule + "\n❯ \n" + rule + "\n  ⏵⏵ auto mode on (shift+tab to cycle)"
		assert.Contains(t, innocent, Recognise(text).Kind, "%s:\n%s", r.Name, text)
	}
}

// Each kind that stops a session says why and what to do, and the others say nothing.
func TestAdvice(t *testing.T) {
	seen := map[screen.Kind]bool{}
	for _, r := range recordings(t) {
		told := Advise(screen.Sight{Kind: screen.Kind(r.Kind), Title: "Login"})
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
	for _, kind := range []screen.Kind{screen.Untrusted, screen.Onboarding, screen.APIKey, screen.BypassWarning, screen.BypassRefused, screen.MCPServers, screen.Imports, screen.BadSettings,
		screen.BadConfig, screen.SessionPicker, screen.NoConversation, screen.Offline, screen.Dialog, screen.Login, screen.Permission, screen.Question, screen.Busy, screen.Ready} {
		assert.True(t, seen[kind], "there is no recording of %s", kind)
	}
	assert.Contains(t, Advise(screen.Sight{Kind: screen.Dialog, Title: "Managed settings"}).Cause, `"Managed settings"`)
}

func FuzzRecognise(f *testing.F) {
	f.Add("")
	f.Add("❯\n\n\n")
	for _, r := range recordings(f) {
		s := screen.New(r.Rows, r.Cols)
		_, _ = s.Write(r.Printed)
		f.Add(s.Text())
	}
	f.Fuzz(func(t *testing.T, text string) {
		told := Advise(Recognise(text))
		assert.Equal(t, told.Matter == screen.Nothing, told.Cause == "")
		assert.Equal(t, told.Cause == "", told.Fix == "")
	})
}
