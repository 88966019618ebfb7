package client

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// screensVariable names a folder that the scenes are recorded to.
const screensVariable = "HEARTBEAT_SCREENS"

func containsFlat(text, want string) bool { return strings.Contains(squeeze(text), squeeze(want)) }

// stage is a workspace in a folder, for a terminal of a size. Both the home's own
// settings and those given by --settings tell of SessionStart.
func (c scene) stage(t *testing.T, root string, size [2]uint16) *staged {
	t.Helper()
	model, err := model.Start(c.answer)
	require.NoError(t, err)
	t.Cleanup(model.Close)
	w := newAt(t, root, Find(t), model)
	w.Record("SessionStart")
	given := w.WriteSettings("given", map[string]any{"hooks": hooksOf("SessionStart", w.recorder("given"))})
	return &staged{w, Options{Settings: given, Rows: size[0], Cols: size[1]}, t}
}

func (c scene) name(size [2]uint16) string {
	name := string(c.kind)
	if c.word != "" {
		name += "-" + c.word
	}
	return fmt.Sprintf("%s-%dx%d", name, size[0], size[1])
}

// Every screen of the client is recognised, in any release, and no hook has run while it
// waits for a person before the session.
func TestScreens(t *testing.T) {
	Find(t)
	size := [2]uint16{50, 200}
	for _, c := range scenes {
		t.Run(c.name(size), func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			ctx, s := within(t), c.stage(t, root, size)
			c.play(ctx, s)
			if !c.begun {
				assert.Empty(t, s.Events("SessionStart"))
				assert.Empty(t, s.Events("given"))
				return
			}
			for _, settings := range []string{"SessionStart", "given"} {
				_, err := s.WaitEvent(ctx, settings, 1)
				require.NoError(t, err)
			}
		})
	}
}

// TestRecordScreens makes new recordings for the tests of internal/claude/screen.
func TestRecordScreens(t *testing.T) {
	dir := os.Getenv(screensVariable)
	if dir == "" {
		t.Skip("set " + screensVariable + " to the absolute path of testdata/screens to record it anew")
	}
	for _, size := range [][2]uint16{{50, 200}, {24, 80}} {
		for _, c := range scenes {
			t.Run(c.name(size), func(t *testing.T) {
				_, printed := c.play(within(t), c.stage(t, neutral(t), size))
				name := filepath.Join(dir, c.name(size)+".ans")
				require.NoError(t, os.WriteFile(name, printed, 0o600))
				assert.False(t, bytes.Contains(printed, []byte(hostname(t))), "%s names this machine", name)
			})
		}
	}
}

// neutral is a folder whose path says nothing about the machine: it is on the
// screens.
func neutral(t *testing.T) string {
	t.Helper()
	root := filepath.Join(os.TempDir(), "agent")
	require.NoError(t, os.Mkdir(root, 0o700), "it is removed in the end, so it must not be there")
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(root)) })
	return root
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	require.NoError(t, err)
	return name + ":" // alone it may be any syllable
}
