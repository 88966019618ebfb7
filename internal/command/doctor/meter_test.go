package doctor

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
)

// shows adds a status line to a settings file.
func (w *world) shows(path, command string) {
	w.t.Helper()
	content := map[string]any{}
	if text, err := os.ReadFile(path); err == nil {
		require.NoError(w.t, json.Unmarshal(text, &content))
	}
	content["statusLine"] = map[string]any{"type": "command", "command": command}
	w.settings(path, content)
}

func TestMeter(t *testing.T) {
	start := func(t *testing.T) (w *world, line string) {
		t.Helper()
		w = newWorld(t)
		return w, w.Meter + " --inbox " + w.Inbox
	}
	t.Run("none", func(t *testing.T) {
		w, _ := start(t)
		w.says("meter", "ok no status line runs heartbeat-stop meter: what entries cost is not held against the client's own total")
		w.shows(w.localSettings(), "theirs")
		w.says("meter", "ok no status line runs heartbeat-stop meter")
		w.shows(w.localSettings(), w.Meter+" --inbox /y.jsonl")
		w.says("meter", "ok no status line runs heartbeat-stop meter")
		w.Inbox = ""
		w.wire(w.localSettings(), w.hook("--inbox", "/y.jsonl"))
		w.says("meter")
	})
	t.Run("hidden by another file's", func(t *testing.T) {
		w, line := start(t)
		w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox))
		w.shows(w.projectSettings(), line)
		w.shows(w.localSettings(), "theirs")
		w.says("meter", "warn which runs heartbeat-stop meter: what entries cost is not held against the client's own total")
		w.shows(w.localSettings(), line)
		w.says("meter", "ok the status line runs")
	})
	t.Run("wired", func(t *testing.T) {
		w, line := start(t)
		w.shows(w.projectSettings(), line+" --then 'theirs'")
		w.says("meter", "ok the status line runs "+w.Meter+" before what it shows (.claude/settings.json)")
		w.shows(w.projectSettings(), "/x | "+line)
		w.says("meter", "ok a status line that a person wrote runs "+w.Meter)
		w.shows(w.projectSettings(), "heartbeat-meter --inbox "+w.Inbox)
		w.says("meter", "ok the status line runs heartbeat-meter")
	})
	t.Run("behind that of another inbox", func(t *testing.T) {
		w, line := start(t)
		w.shows(w.projectSettings(), "/b/heartbeat-meter --inbox /y.jsonl --then '"+line+"'")
		w.says("meter", "ok the status line runs "+w.Meter)
	})
	t.Run("hidden", func(t *testing.T) {
		w, line := start(t)
		w.shows(w.projectSettings(), line)
		w.shows(w.localSettings(), "theirs")
		w.says("meter", "warn the status line of .claude/settings.local.json has precedence over the one in .claude/settings.json")
		assert.Contains(t, w.checks("meter")[0].Fix, "heartbeat install --inbox "+w.Inbox+" --settings "+w.localSettings())
		w.shows(w.localSettings(), line)
		w.says("meter", "ok the status line runs "+w.Meter+" before what it shows (.claude/settings.local.json)")
		w.shows(w.managedSettings(), "theirs")
		w.says("meter", "warn "+w.managedSettings()+" has precedence")
		assert.Contains(t, w.checks("meter")[0].Fix, "ask the administrator")
	})
	t.Run("hidden by settings of the command", func(t *testing.T) {
		w, line := start(t)
		given := filepath.Join(w.Home, "given.json")
		w.shows(w.projectSettings(), line)
		w.shows(given, "theirs")
		w.Settings = []string{given}
		w.says("meter", "warn "+given+" has precedence")
	})
	t.Run("gone", func(t *testing.T) {
		w, line := start(t)
		w.shows(w.projectSettings(), line)
		require.NoError(t, os.Remove(w.Meter))
		w.says("meter", "warn the status line's heartbeat-stop meter cannot be started, and nothing of yours is shown: exec: \""+w.Meter)
		w.write(w.Meter, "", 0o600)
		w.says("meter", "warn permission denied")
	})
	t.Run("of another build", func(t *testing.T) {
		w, _ := start(t)
		old := filepath.Join(w.Home, "heartbeat-meter")
		w.write(old, "#!/bin/sh\n", 0o755)
		w.shows(w.projectSettings(), old+" --inbox "+w.Inbox)
		w.says("meter", "warn "+old+" is another file than "+w.Meter)
		w.MeterErr = errors.New("none")
		w.says("meter", "ok the status line runs "+old)
	})
	t.Run("by the launcher", func(t *testing.T) {
		w, _ := start(t)
		require.NoError(t, os.Remove(w.projectSettings()))
		lock, err := disk.AcquireLock(t.Context(), filepath.Join(filepath.Dir(w.Inbox), ".launch-lock"), 0)
		require.NoError(t, err)
		require.NoError(t, lock.Release())
		w.says("meter", "ok heartbeat-launch wires it")
		w.MeterErr = errors.New("none here")
		w.says("meter", "warn none here")
	})
}
