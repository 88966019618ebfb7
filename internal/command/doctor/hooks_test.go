package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBinary(t *testing.T) {
	t.Run("this one, through a link", func(t *testing.T) {
		w := newWorld(t)
		w.says("binary", "ok belongs to this command")
		link := filepath.Join(w.Home, "heartbeat-stop")
		require.NoError(t, os.Symlink(w.Stop, link))
		hook := w.hook("--inbox", w.Inbox)
		hook["command"] = link
		w.wire(w.projectSettings(), hook)
		w.says("binary", "ok belongs to this command")
	})
	for name, c := range map[string]struct {
		make func(w *world, path string)
		says string
	}{
		"another file":   {func(w *world, path string) { w.write(path, "#!/bin/sh\n", 0o755) }, "warn which belongs to this command"},
		"missing":        {func(*world, string) {}, "fail no such file"},
		"not executable": {func(w *world, path string) { w.write(path, "", 0o644) }, "fail permission denied"},
		"a directory":    {func(w *world, path string) { require.NoError(w.t, os.Mkdir(path, 0o700)) }, "fail is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := filepath.Join(w.Home, "heartbeat-stop")
			c.make(w, path)
			hook := w.hook("--inbox", w.Inbox)
			hook["command"] = path
			w.wire(w.projectSettings(), hook)
			w.says("binary", c.says)
		})
	}
	t.Run("none to wire", func(t *testing.T) {
		w := newWorld(t)
		w.StopErr = errors.New("nowhere")
		w.says("binary", "warn there is no hook for install to wire: nowhere")
	})
	t.Run("looked up", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.projectSettings(), shell("heartbeat-stop --inbox "+w.Inbox))
		w.says("binary", "warn heartbeat-stop is no absolute path: here it is "+w.Stop)
		t.Setenv("PATH", "/nowhere")
		w.says("binary", "fail not on the PATH")
		w.wire(w.projectSettings(), shell("./heartbeat-stop --inbox "+w.Inbox))
		w.says("binary", "fail ./heartbeat-stop is no absolute path")
	})
	t.Run("up to a shell", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.projectSettings(), shell("true; heartbeat-stop --inbox "+w.Inbox))
		w.says("binary")
		w.says("flags", "warn what a shell makes of this cannot be told, nor which program it starts")
	})
}

func TestFlags(t *testing.T) {
	w := newWorld(t)
	w.says("flags", "ok the hook takes --inbox")
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--modus", "drain"))
	w.says("flags", "fail unknown flag: --modus")
	w.wire(w.projectSettings(), shell("true; heartbeat-stop --inbox "+w.Inbox))
	w.says("flags", "warn what a shell makes of this")
	w.Inbox = ""
	w.wire(w.projectSettings())
	w.says("flags")
}

func TestTimeout(t *testing.T) {
	persist := func(w *world, interval string, timeout any) {
		hook := w.hook("--inbox", w.Inbox, "--mode", "persist", "--idle-interval", interval)
		hook["timeout"] = timeout
		w.wire(w.projectSettings(), hook)
	}
	w := newWorld(t)
	w.says("timeout", "ok has timeout 10m0s, and never waits")
	persist(w, "5m", 600)
	w.says("timeout", "ok waits 5m0s")
	persist(w, "10m", 600)
	w.says("timeout", "fail hooks.Stop[0].hooks[0] in .claude/settings.json has timeout 10m0s and waits 10m0s")
	assert.Contains(t, w.checks("timeout")[0].Fix, "--idle-interval 10m")
	persist(w, "5m", nil)
	w.says("timeout", "ok no timeout, which is 10m0s")
	for _, skipped := range []any{"600", -1, 0} {
		persist(w, "5m", skipped)
		w.says("timeout")
		w.says("wired", "fail has a timeout that is no number above 0: Claude Code skips the hook")
	}
	persist(w, "soon", 600)
	w.says("timeout")
}

func TestCap(t *testing.T) {
	const name = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
	w := newWorld(t)
	w.says("cap", "ok "+name+" is 0 in env of .claude/settings.json")
	w.setenv(name, "8")
	w.says("cap", "ok .claude/settings.json")
	w.settings(w.localSettings(), map[string]any{"env": map[string]any{name: 50}})
	w.says("cap", `fail is 50 in env of .claude/settings.local.json`)
	assert.Contains(t, w.checks("cap")[0].Fix, w.localSettings())
	w.settings(w.managedSettings(), map[string]any{"env": map[string]any{name: 0}})
	w.says("cap", "ok "+w.managedSettings())

	w = newWorld(t)
	require.NoError(t, os.Remove(w.projectSettings()))
	w.says("cap", "fail is not set")
	w.setenv(name, "0")
	w.says("cap", "ok in the environment")
	w.setenv(name, "1")
	w.says("cap", `fail is 1 in the environment`)
}

func TestHooksOn(t *testing.T) {
	off := map[string]any{"disableAllHooks": true}
	t.Run("disabled", func(t *testing.T) {
		w := newWorld(t)
		w.says("hooks-on", "ok no settings file")
		w.settings(filepath.Join(w.Home, ".claude", "settings.json"), off)
		w.says("hooks-on", "fail disableAllHooks is true in "+w.Home)
		w.settings(w.localSettings(), map[string]any{"disableAllHooks": false})
		w.says("hooks-on", "ok no settings file")
	})
	t.Run("by an administrator", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.managedSettings(), map[string]any{"allowManagedHooksOnly": true})
		w.says("hooks-on", "fail allowManagedHooksOnly is true in "+w.managedSettings())
		w.settings(w.localSettings(), map[string]any{"allowManagedHooksOnly": true})
		w.settings(w.managedSettings(), off)
		w.says("hooks-on", "fail disableAllHooks")
	})
	t.Run("only an administrator can allow his own", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.localSettings(), map[string]any{"allowManagedHooksOnly": true})
		w.says("hooks-on", "ok no settings file")
	})
	t.Run("wired by the administrator", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.localSettings(), off)
		w.wire(w.managedSettings(), w.hook("--inbox", w.Inbox))
		w.says("hooks-on", "ok no settings file")
	})
}
