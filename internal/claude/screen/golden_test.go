package screen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
)

// recording is one file of testdata/screens, KIND[-WORD]-ROWSxCOLS.ans.
type recording struct {
	name       string
	kind       Kind
	rows, cols int
	printed    []byte
}

func recordings(t testing.TB) []recording {
	t.Helper()
	paths, err := filepath.Glob("../../../testdata/screens/*.ans")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := make([]recording, len(paths))
	for i, path := range paths {
		r := &all[i]
		r.name = strings.TrimSuffix(filepath.Base(path), ".ans")
		kind, _, _ := strings.Cut(r.name, "-")
		if kind != "unknown" {
			r.kind = Kind(kind)
		}
		_, err := fmt.Sscanf(r.name[strings.LastIndex(r.name, "-")+1:], "%dx%d", &r.rows, &r.cols)
		require.NoError(t, err, "%s: it takes KIND[-WORD]-ROWSxCOLS.ans", path)
		r.printed, err = os.ReadFile(path)
		require.NoError(t, err)
	}
	return all
}

// innocent are the kinds that a screen may have while any other is being drawn.
var innocent = []Kind{Unknown, Busy, Ready}

// Every recording is recognised at its end, and not as something else before.
func TestRecordings(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			allowed := append([]Kind{r.kind}, innocent...)
			s := New(r.rows, r.cols)
			step := max(1, len(r.printed)/long.Rounds(50, 400))
			for at := 0; at < len(r.printed); at += step {
				_, _ = s.Write(r.printed[at:min(at+step, len(r.printed))])
				text := s.Text()
				require.Contains(t, allowed, Recognise(text).Kind, "after %d bytes:\n%s", at+step, text)
			}
			assert.Equal(t, r.kind, Recognise(s.Text()).Kind, s.Text())
		})
	}
}

// The screen does not depend on how the bytes were split.
func TestRecordingsAtOnce(t *testing.T) {
	for _, r := range recordings(t) {
		bytewise, atOnce := New(r.rows, r.cols), New(r.rows, r.cols)
		for i := range r.printed {
			_, _ = bytewise.Write(r.printed[i : i+1])
		}
		_, _ = atOnce.Write(r.printed)
		assert.Equal(t, bytewise.Text(), atOnce.Text(), r.name)
	}
}

// A dialog's words above an input line are part of the conversation.
func TestQuotedDialogs(t *testing.T) {
	rule := strings.Repeat("─", 80)
	for _, r := range recordings(t) {
		s := New(r.rows, r.cols)
		_, _ = s.Write(r.printed)
		text := "● " + s.Text() + "\n\n" + rule + "\n❯ \n" + rule + "\n  ⏵⏵ auto mode on (shift+tab to cycle)"
		assert.Contains(t, innocent, Recognise(text).Kind, "%s:\n%s", r.name, text)
	}
}

// Each kind that stops a session says why and what to do, and the others say nothing.
func TestAdvice(t *testing.T) {
	seen := map[Kind]bool{}
	for _, r := range recordings(t) {
		sight := Sight{Kind: r.kind, Title: "Login"}
		seen[r.kind] = true
		switch r.kind {
		case Unknown, Busy, Ready:
			assert.Equal(t, []any{"", "", Nothing}, []any{sight.Cause(), sight.Fix(), sight.Matter()}, r.kind)
		case Login, APIKey:
			assert.Equal(t, Authentication, sight.Matter(), r.kind)
		default:
			assert.Equal(t, Setup, sight.Matter(), r.kind)
		}
		if sight.Matter() != Nothing {
			assert.NotEmpty(t, sight.Cause(), r.kind)
			assert.NotEmpty(t, sight.Fix(), r.kind)
			assert.False(t, strings.HasSuffix(sight.Fix(), "."), r.kind)
		}
	}
	for _, kind := range []Kind{Untrusted, Onboarding, APIKey, BypassWarning, BypassRefused, MCPServers, Imports, BadSettings,
		BadConfig, SessionPicker, NoConversation, Offline, Dialog, Login, Permission, Question, Busy, Ready} {
		assert.True(t, seen[kind], "there is no recording of %s", kind)
	}
	assert.Contains(t, Sight{Kind: Dialog, Title: "Managed settings"}.Cause(), `"Managed settings"`)
}
