package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSettings(t *testing.T) {
	t.Run("all are read, the weakest first", func(t *testing.T) {
		w := newWorld(t)
		extra := filepath.Join(w.Home, "extra.json")
		for _, path := range []string{
			filepath.Join(w.Home, ".claude", "settings.json"), w.localSettings(), extra, w.managedSettings(),
			filepath.Join(w.Managed, "managed-settings.d", "b.json"),
		} {
			w.write(path, "{}", 0o600)
		}
		w.Settings = []string{extra}
		all := w.checks("settings")
		require.Len(t, all, 1)
		assert.Equal(t, "read "+w.Home+"/.claude/settings.json, .claude/settings.json, .claude/settings.local.json, "+
			extra+", "+w.managedSettings()+", "+w.Managed+"/managed-settings.d/b.json", all[0].Evidence)
	})
	t.Run("CLAUDE_CONFIG_DIR is the user's", func(t *testing.T) {
		w := newWorld(t)
		w.setenv("CLAUDE_CONFIG_DIR", w.Managed)
		w.write(filepath.Join(w.Managed, "settings.json"), "{}", 0o600)
		w.says("settings", "ok "+w.Managed+"/settings.json")
	})
	t.Run("none", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, os.Remove(w.projectSettings()))
		w.says("settings", "ok there is no settings file: looked at "+w.Home)
	})
	t.Run("one that was named is missing", func(t *testing.T) {
		w := newWorld(t)
		w.Settings = []string{"/nowhere/x.json"}
		w.says("settings", "fail /nowhere/x.json")
	})
	t.Run("not JSON", func(t *testing.T) {
		w := newWorld(t)
		w.write(w.localSettings(), "{\n  \"a\": }", 0o600)
		w.says("settings", "fail .claude/settings.local.json: not valid JSON: line 2, column 8")
	})
	t.Run("the meter of an earlier release", func(t *testing.T) {
		for _, line := range []string{"/x/heartbeat-stop meter --inbox /x/inbox.jsonl --then 'l'", "'/abs/heartbeat-meter' --inbox='/x/inbox.jsonl'"} {
			w := newWorld(t)
			w.write(w.localSettings(), `{"statusLine":{"type":"command","command":"`+line+`"}}`, 0o600)
			w.says("settings", "warn .claude/settings.local.json: the status line runs the meter of an earlier release")
		}
		w := newWorld(t)
		w.write(w.localSettings(), `{"statusLine":{"type":"command","command":"tail /var/log/heartbeat-meter"}}`, 0o600)
		w.says("settings", "ok read")
	})
	t.Run("another shape", func(t *testing.T) {
		w := newWorld(t)
		w.write(w.localSettings(), `{"hooks":[]}`, 0o600)
		w.says("settings", "fail hooks at line 1")
	})
	t.Run("a comment, which the client does not read", func(t *testing.T) {
		w := newWorld(t)
		w.write(w.localSettings(), "{\n // mine\n\"env\":{\"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\":\"8\"}}", 0o600)
		w.says("settings", "fail line 2 is no plain JSON")
		w.says("cap", "ok .claude/settings.json")
	})
	t.Run("a value of the wrong kind, with which the client reads none of it", func(t *testing.T) {
		for member, says := range map[string]string{
			`"permissions":{"allow":"Edit"}`: "permissions.allow at line 1 (byte 24) is a string, want an array",
			`"permissions":{"deny":null}`:    "permissions.deny at line 1 (byte 23) is null, want an array",
			`"disableAllHooks":"true"`:       "disableAllHooks at line 1 (byte 19) is a string, want a boolean",
			`"hooks":{"PreToolUse":{}}`:      "hooks.PreToolUse at line 1 (byte 23) is an object, want an array",
		} {
			w := newWorld(t)
			w.write(w.localSettings(), "{"+member+"}", 0o600)
			w.says("settings", "fail .claude/settings.local.json: the client loads nothing from the file: "+says)
			w.says("hooks-on", "ok no settings file")
		}
		w := newWorld(t)
		w.write(w.localSettings(), `{"permissions":{"allow":["Edit"]},"disableAllHooks":false,"hooks":{"PreToolUse":null}}`, 0o600)
		w.says("settings", "ok read")
		// The hook beside it does not run.
		w.write(w.projectSettings(), `{"model":3,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"heartbeat-stop --inbox `+w.Inbox+`"}]}]}}`, 0o600)
		w.says("settings", "fail model at line 1")
		w.says("wired", "fail no hook of Stop serves")
	})
	t.Run("a byte order mark, which it does", func(t *testing.T) {
		w := newWorld(t)
		w.write(w.localSettings(), "\ufeff{}", 0o600)
		w.says("settings", "ok settings.local.json")
	})
	t.Run("a FIFO does not hold it up", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, syscall.Mkfifo(w.localSettings(), 0o600))
		w.says("settings", "fail not a regular file")
	})
	t.Run("unreadable", func(t *testing.T) {
		plainUser(t)
		w := newWorld(t)
		w.write(w.localSettings(), "{}", 0)
		w.says("settings", "fail permission denied")
	})
}
