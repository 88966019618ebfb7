package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
)

func TestWired(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		w := newWorld(t)
		w.says("wired", "ok Stop -> "+w.Stop+" --inbox "+w.Inbox+" (.claude/settings.json): it hands an entry over when a turn ends")
	})
	t.Run("the inbox is taken from it", func(t *testing.T) {
		w := newWorld(t)
		inbox := w.Inbox
		w.Inbox = ""
		w.says("wired", "ok "+inbox)
		w.says("directory", "ok "+filepath.Dir(inbox))
	})
	t.Run("the same in two files runs once", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.localSettings(), w.hook("--inbox", w.Inbox))
		w.says("wired", "ok (.claude/settings.json and .claude/settings.local.json, which runs once): ")
	})
	t.Run("twice, with different arguments", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.localSettings(), w.hook("--inbox", w.Inbox, "--mode", "persist"))
		w.says("wired", "warn 2 hooks serve")
	})
	t.Run("not at all", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, os.Remove(w.projectSettings()))
		w.says("wired", "fail no hook of Stop serves "+w.Inbox)
		assert.Equal(t, "heartbeat install --inbox "+w.Inbox+" --settings "+w.projectSettings(), w.checks("wired")[0].Fix)
		w.Inbox = ""
		w.says("wired", "fail no hook of Stop runs heartbeat-stop")
	})
	t.Run("by the launcher", func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, os.Remove(w.projectSettings()))
		lock, err := disk.AcquireLock(t.Context(), filepath.Join(filepath.Dir(w.Inbox), ".launch-lock"), 0)
		require.NoError(t, err)
		w.says("wired", fmt.Sprintf("ok heartbeat-launch wires the hook for its own sessions (--inbox %s), and has done so: process %d works on it now", w.Inbox, os.Getpid()))
		require.NoError(t, lock.Release())
		w.says("wired", "ok none runs now")
	})
	t.Run("by the plugin", func(t *testing.T) {
		w := newWorld(t)
		w.Inbox = filepath.Join(w.Project, "work", "inbox.jsonl")
		w.settings(w.projectSettings(), map[string]any{"enabledPlugins": map[string]any{"heartbeat@heartbeat": true}})
		w.says("wired", "ok the plugin heartbeat@heartbeat (enabledPlugins in .claude/settings.json) brings the hooks, and serves this inbox")
		w.says("cap", "ok the plugin keeps below it")
		w.setenv("HEARTBEAT_INBOX", filepath.Join(w.Home, "inbox.jsonl"))
		w.says("wired", "fail no hook of Stop serves")
		w.setenv("HEARTBEAT_INBOX", w.Inbox)
		w.wire(w.localSettings(), w.hook("--inbox", "/other/inbox.jsonl"))
		w.says("wired", "fail no hook of Stop serves work/inbox.jsonl")
		w.says("others", "warn another inbox, /other/inbox.jsonl, is wired instead (.claude/settings.local.json): sessions work on that one alone, and the plugin would stand back")
		w.settings(w.localSettings(), map[string]any{"enabledPlugins": map[string]any{"heartbeat@heartbeat": false}})
		w.says("wired", "fail no hook of Stop serves")
	})
	t.Run("another event only", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.projectSettings(), map[string]any{"hooks": map[string]any{
			"SessionStart": []any{map[string]any{"hooks": []any{w.hook("--inbox", w.Inbox)}}},
		}})
		w.says("wired", "fail no hook of Stop serves")
	})
	t.Run("a shell line", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.projectSettings(), shell("heartbeat-stop --inbox '"+w.Inbox+"'"))
		w.says("wired", "ok Stop -> heartbeat-stop --inbox")
		w.wire(w.projectSettings(), shell("cd /x && heartbeat-stop --inbox "+w.Inbox+" 2>>log"))
		w.says("wired", "ok Stop -> cd /x")
		w.wire(w.projectSettings(), shell("heartbeat-stop --inbox $HOME/inbox.jsonl"))
		w.says("wired", "warn whether this serves")
		w.wire(w.projectSettings(), shell("heartbeat-stop --inbox $HOME/other.jsonl"))
		w.says("wired", "fail no hook of Stop serves")
		w.Inbox = ""
		w.says("wired", "fail which inbox this serves cannot be told")
	})
	t.Run("a relative inbox", func(t *testing.T) {
		w := newWorld(t)
		w.Inbox = filepath.Join(w.Project, "inbox.jsonl")
		w.wire(w.projectSettings(), w.hook("--inbox", "inbox.jsonl"))
		w.says("wired", "warn depends on the folder")
	})
	t.Run("through the variable", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.projectSettings(), w.hook())
		w.says("wired", "warn whether this serves")
		w.setenv("HEARTBEAT_INBOX", w.Inbox)
		w.says("wired", "ok "+w.Stop)
		w.settings(w.localSettings(), map[string]any{"env": map[string]any{"HEARTBEAT_INBOX": "/other/inbox.jsonl"}})
		w.says("wired", "fail no hook of Stop serves")
	})
	t.Run("through a link to the directory", func(t *testing.T) {
		w := newWorld(t)
		link := filepath.Join(w.Home, "link")
		require.NoError(t, os.Symlink(filepath.Dir(w.Inbox), link))
		w.wire(w.projectSettings(), w.hook("--inbox", filepath.Join(link, "inbox.jsonl")))
		w.says("wired", "ok "+link)
	})
	t.Run("in the background", func(t *testing.T) {
		w := newWorld(t)
		for _, member := range []string{"async", "asyncRewake"} {
			hook := w.hook("--inbox", w.Inbox)
			hook[member] = true
			w.wire(w.projectSettings(), hook)
			w.says("wired", "fail runs in the background")
		}
	})
	t.Run("several inboxes", func(t *testing.T) {
		w := newWorld(t)
		w.wire(w.localSettings(), w.hook("--inbox", "/other/inbox.jsonl"))
		w.says("wired", "ok ")
		w.Inbox = ""
		w.says("wired", "fail several inboxes are wired")
		w.says("directory")
		assert.NotEmpty(t, Run(w.Input))
	})
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.says("events", "ok StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification, PostToolBatch")
	stop := map[string]any{"Stop": []any{map[string]any{"hooks": []any{w.hook("--inbox", w.Inbox, "--mode", "persist")}}}}
	w.settings(w.projectSettings(), map[string]any{"hooks": stop})
	w.says("events", "warn not wired as that of Stop is: StopFailure (why a turn failed is not known, and with --rewake nothing wakes the session after it), SessionStart (whether")
	assert.Equal(t, "heartbeat install --inbox "+w.Inbox+" --mode persist --settings "+w.projectSettings(), w.checks("events")[0].Fix,
		"the flags stay")
}

func TestOthers(t *testing.T) {
	w := newWorld(t)
	w.says("others", "ok no other inbox")
	w.wire(w.localSettings(), w.hook("--inbox", "/other/inbox.jsonl"), shell("heartbeat-stop --inbox /third.jsonl"))
	w.says("others", "warn /other/inbox.jsonl, is wired as well (.claude/settings.local.json)", "warn /third.jsonl")
}
