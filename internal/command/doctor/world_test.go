package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
)

// world is a home, a project and an inbox that nothing is wrong with.
type world struct {
	Input
	t   *testing.T
	bin string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{t: t, bin: filepath.Join(root, "bin")}
	w.Input = Input{
		Project: filepath.Join(root, "project"), Home: filepath.Join(root, "home"), Managed: filepath.Join(root, "etc"),
		Inbox: filepath.Join(root, "box", "inbox.jsonl"), Stop: filepath.Join(w.bin, "heartbeat-stop"),
		Now: time.Now(), Driven: orchestrate.Driven,
	}
	for _, dir := range []string{w.Project, w.Home, w.Managed, w.bin, filepath.Dir(w.Inbox)} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	t.Setenv("PATH", w.bin)
	w.write(w.Stop, "#!/bin/sh\n", 0o755)
	w.program("claude", "echo '2.1.329 (Claude Code)'")
	w.account(fmt.Sprintf(`{"hasCompletedOnboarding":true,"projects":{%q:{"hasTrustDialogAccepted":true}}}`, w.Project))
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox))
	return w
}

func (w *world) projectSettings() string { return filepath.Join(w.Project, ".claude", "settings.json") }
func (w *world) localSettings() string {
	return filepath.Join(w.Project, ".claude", "settings.local.json")
}
func (w *world) managedSettings() string { return filepath.Join(w.Managed, "managed-settings.json") }

func (w *world) write(path, content string, mode os.FileMode) {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(content), mode))
	require.NoError(w.t, os.Chmod(path, mode))
}

func (w *world) account(content string) {
	w.t.Helper()
	w.write(filepath.Join(w.Home, ".claude.json"), content, 0o600)
}

// hook is one in exec form.
func (w *world) hook(args ...string) map[string]any {
	return map[string]any{"type": "command", "command": w.Stop, "args": args, "timeout": 600}
}

// shell is a hook in shell form.
func shell(line string) map[string]any { return map[string]any{"type": "command", "command": line} }

// waker is a hook in the background.
func (w *world) waker() map[string]any {
	hook := w.hook("--inbox", w.Inbox, "--rewake")
	hook["timeout"], hook["asyncRewake"] = 31536000, true
	return hook
}

// wireWakers writes a settings file with hooks that wake the session, as install
// does, but for those that change makes.
func (w *world) wireWakers(path string, change map[string][]map[string]any) {
	w.t.Helper()
	hooks := map[string][]map[string]any{}
	for _, event := range []string{"Stop", "StopFailure", "SessionStart"} {
		hooks[event] = []map[string]any{w.waker()}
	}
	for _, event := range []string{"SessionEnd", "UserPromptSubmit", "Notification", "PostToolBatch"} {
		hooks[event] = []map[string]any{w.hook("--inbox", w.Inbox, "--rewake")}
	}
	maps.Copy(hooks, change)
	events := map[string]any{}
	for event, list := range hooks {
		events[event] = []any{map[string]any{"hooks": list}}
	}
	w.settings(path, map[string]any{"hooks": events})
}

// wire writes a settings file with hooks of all events, and the cap lifted.
func (w *world) wire(path string, hooks ...map[string]any) {
	w.t.Helper()
	events := map[string]any{}
	for _, event := range []string{"Stop", "StopFailure", "SessionStart", "SessionEnd", "UserPromptSubmit", "Notification", "PostToolBatch"} {
		events[event] = []any{map[string]any{"hooks": hooks}}
	}
	w.settings(path, map[string]any{"env": map[string]string{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}, "hooks": events})
}

func (w *world) settings(path string, content any) {
	w.t.Helper()
	text, err := json.Marshal(content)
	require.NoError(w.t, err)
	w.write(path, string(text), 0o600)
}

func (w *world) setenv(name, value string) { w.Environ = append(w.Environ, name+"="+value) }

// program puts a shell script on the PATH.
func (w *world) program(name, script string) {
	w.t.Helper()
	w.write(filepath.Join(w.bin, name), "#!/bin/sh\n"+script+"\n", 0o755)
}

// checks are what one check finds.
func (w *world) checks(id string) []Check {
	return slices.DeleteFunc(Run(w.Input), func(c Check) bool { return c.Name != id })
}

// says holds a check to lines of the form "STATE TEXT", where TEXT is in the
// evidence.
func (w *world) says(id string, want ...string) {
	w.t.Helper()
	all := w.checks(id)
	require.Len(w.t, all, len(want), "%+v", all)
	for i, c := range all {
		state, text, _ := strings.Cut(want[i], " ")
		assert.Equal(w.t, state, c.State, "%+v", c)
		assert.Contains(w.t, c.Evidence, text)
		assert.Equal(w.t, state == OK, c.Fix == "", "a fix for all but what is ok: %+v", c)
	}
}

func plainUser(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
}
