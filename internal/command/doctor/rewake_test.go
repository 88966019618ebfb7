package doctor

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRewakeIsRight(t *testing.T) {
	w := newWorld(t)
	w.wireWakers(w.projectSettings(), nil)
	w.says("wired", "ok Stop -> "+w.Stop+" --inbox "+w.Inbox+" --rewake (.claude/settings.json): it wakes the idle session")
	w.says("events", "ok StopFailure, SessionStart, SessionEnd, UserPromptSubmit, Notification, PostToolBatch are wired as well")
	w.says("timeout", "ok each hook in the background has at least 24h0m0s")
	w.says("flags", "ok --rewake")
	w.says("cap", "ok no hook of Stop blocks it")
	for _, c := range Run(w.Input) {
		if c.Name != "file-system" { // the machine's own
			assert.Equal(t, OK, c.State, "%+v", c)
		}
	}
}

func TestRewakeInTheWrongPlace(t *testing.T) {
	forms := map[string]struct {
		async, asyncRewake bool
		says               string
	}{
		"waited for": {false, false, "fail is not in the background by asyncRewake: it wakes nobody"},
		"async":      {true, false, "fail is not in the background by asyncRewake: it wakes nobody"},
		"both":       {true, true, "ok "},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hook := w.waker()
			hook["async"], hook["asyncRewake"] = form.async, form.asyncRewake
			install := "heartbeat install --inbox " + w.Inbox + " --rewake --settings " + w.projectSettings()
			w.wireWakers(w.projectSettings(), map[string][]map[string]any{"Stop": {hook}})
			w.says("wired", form.says)
			if !form.asyncRewake {
				assert.Equal(t, install, w.checks("wired")[0].Fix)
			}
			for _, event := range []string{"StopFailure", "SessionStart"} {
				w.wireWakers(w.projectSettings(), map[string][]map[string]any{event: {hook}})
				w.says("wired", "ok ")
				if form.asyncRewake {
					w.says("events", "ok ")
					continue
				}
				w.says("events", form.says)
				assert.Contains(t, w.checks("events")[0].Evidence, event+" -> ")
				assert.Equal(t, install, w.checks("events")[0].Fix)
			}
		})
	}
	t.Run("right in one file and wrong in another", func(t *testing.T) {
		w := newWorld(t)
		w.wireWakers(w.projectSettings(), nil)
		hook := w.waker()
		delete(hook, "asyncRewake")
		w.wireWakers(w.localSettings(), map[string][]map[string]any{"Stop": {hook}})
		w.says("wired", "fail (.claude/settings.local.json) waits for an entry")
	})
	t.Run("a shell line", func(t *testing.T) {
		w := newWorld(t)
		line := shell("cd /x && heartbeat-stop --inbox " + w.Inbox + " --rewake")
		w.wireWakers(w.projectSettings(), map[string][]map[string]any{"Stop": {line}})
		w.says("wired", "fail is not in the background by asyncRewake")
		line["asyncRewake"] = true
		w.wireWakers(w.projectSettings(), map[string][]map[string]any{"Stop": {line}})
		w.says("wired", "ok it wakes the idle session")
	})
}

func TestRewakeEvents(t *testing.T) {
	const failure, start, prompt = "not wired as that of Stop is: StopFailure (why a turn failed is not known, and with --rewake nothing wakes the session after it), ",
		"SessionStart (whether a session lives is not known, and with --rewake it is woken only after its first turn), ",
		"UserPromptSubmit (a person's prompts are not known: with --rewake the answer to an entry cannot be told from other turns)"
	w := newWorld(t)
	waker, plain := w.waker(), w.hook("--inbox", w.Inbox)
	for _, test := range []struct {
		name   string
		change map[string][]map[string]any
		want   []string
	}{
		{"missing", map[string][]map[string]any{"StopFailure": nil, "SessionStart": nil, "UserPromptSubmit": nil},
			[]string{"fail " + failure + start + prompt}},
		{"without the flag", map[string][]map[string]any{"StopFailure": {plain}, "SessionStart": {plain}, "UserPromptSubmit": {plain}},
			[]string{"fail " + failure + start + prompt}},
		{"in the background", map[string][]map[string]any{"UserPromptSubmit": {waker}},
			[]string{"fail runs in the background: what it decides"}},
		{"those that only note", map[string][]map[string]any{"SessionEnd": nil, "Notification": nil},
			[]string{"warn not wired as that of Stop is: SessionEnd (that a session has ended is not known), Notification ("}},
		{"perhaps", map[string][]map[string]any{"UserPromptSubmit": {shell("heartbeat-stop --inbox $X --rewake")}},
			[]string{"ok StopFailure, SessionStart, SessionEnd, Notification, PostToolBatch are"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.wireWakers(w.projectSettings(), test.change)
			w.says("events", test.want...)
			for _, c := range w.checks("events") {
				if c.State != OK {
					assert.Equal(t, "heartbeat install --inbox "+w.Inbox+" --rewake --settings "+w.projectSettings(), c.Fix)
				}
			}
		})
	}
}

func TestBothWirings(t *testing.T) {
	const says = "warn 2 hooks serve "
	t.Run("in one file", func(t *testing.T) {
		w := newWorld(t)
		w.wireWakers(w.projectSettings(), map[string][]map[string]any{"Stop": {w.hook("--inbox", w.Inbox), w.waker()}})
		w.says("wired", says+w.Inbox+", and each takes entries that the other waits for: Stop -> "+w.Stop)
		install := "heartbeat install --inbox " + w.Inbox
		assert.Equal(t, "keep one of them: "+install+" --settings "+w.projectSettings()+", or "+install+" --rewake --settings "+w.projectSettings(),
			w.checks("wired")[0].Fix)
		w.says("cap", "fail is not set")
	})
	t.Run("in two files", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.localSettings(), map[string]any{"hooks": map[string]any{
			"Stop": []any{map[string]any{"hooks": []any{w.waker()}}},
		}})
		w.says("wired", says+w.Inbox)
		uninstall := "heartbeat uninstall --inbox " + w.Inbox + " --settings "
		assert.Equal(t, "take one of them out: "+uninstall+w.projectSettings()+", or "+uninstall+w.localSettings(), w.checks("wired")[0].Fix)
	})
	t.Run("in another event", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.localSettings(), map[string]any{"hooks": map[string]any{
			"SessionStart": []any{map[string]any{"hooks": []any{w.waker()}}},
		}})
		w.says("wired", says+w.Inbox)
		assert.Contains(t, w.checks("wired")[0].Evidence, "; SessionStart -> "+w.Stop+" --inbox "+w.Inbox+" --rewake (.claude/settings.local.json)")
	})
	t.Run("an event that only notes something", func(t *testing.T) {
		w := newWorld(t)
		w.settings(w.localSettings(), map[string]any{"hooks": map[string]any{
			"SessionEnd": []any{map[string]any{"hooks": []any{w.hook("--inbox", w.Inbox, "--rewake")}}},
		}})
		w.says("wired", "ok ")
	})
	t.Run("another inbox", func(t *testing.T) {
		w := newWorld(t)
		hook := w.waker()
		hook["args"] = []string{"--inbox", "/other/inbox.jsonl", "--rewake"}
		w.settings(w.localSettings(), map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{hook}}}}})
		w.says("wired", "ok ")
		w.says("others", "warn /other/inbox.jsonl")
	})
}

func TestTimeoutInTheBackground(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		timeout any
		says    string
	}{
		{nil, "fail hooks.Stop[0].hooks[0] in .claude/settings.json has no timeout, which is 10m0s in the background: the client ends it then"},
		{600, "fail hooks.Stop[0].hooks[0] in .claude/settings.json has timeout 10m0s in the background"},
		{86399, "fail timeout 23h59m59s"},
		{86400, "ok "},
		{1e12, "ok "},
	} {
		hook := w.waker()
		hook["timeout"] = test.timeout
		w.wireWakers(w.projectSettings(), map[string][]map[string]any{"Stop": {hook}})
		w.says("timeout", test.says)
		w.wireWakers(w.projectSettings(), map[string][]map[string]any{"Stop": {hook}, "StopFailure": {hook}})
		if test.says != "ok " {
			w.says("timeout", test.says, "fail hooks.StopFailure[0].hooks[0]")
			assert.Contains(t, w.checks("timeout")[0].Fix, " --rewake --settings ")
		}
	}
}

func TestCapWhereNothingBlocks(t *testing.T) {
	w := newWorld(t)
	w.wireWakers(w.projectSettings(), nil)
	w.says("cap", "ok no hook of Stop blocks it")
	w.wire(w.localSettings(), w.hook("--inbox", "/other/inbox.jsonl"))
	w.says("cap", "ok is 0")
	w.settings(w.managedSettings(), map[string]any{"env": map[string]any{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "8"}})
	w.says("cap", "fail is 8 in")
	assert.NoError(t, os.Remove(w.localSettings()))
	w.says("cap", "ok no hook of Stop blocks it")
}
