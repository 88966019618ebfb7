package doctor

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
	clients "heartbeat/internal/supervise/client"
)

// codexWorld is a world whose project is wired for Codex, and trusted.
func codexWorld(t *testing.T) (w *world, hooks *[]clients.CodexHook) {
	w = newWorld(t)
	w.program("codex", "echo codex-cli 0.169.0")
	w.Codex = true
	all := []clients.CodexHook{{Event: "stop", Command: "/bin/lint", Enabled: true, Trust: "trusted"}}
	for _, event := range []string{"stop", "sessionStart", "sessionEnd", "userPromptSubmit"} {
		all = append(all, clients.CodexHook{
			Event: event, Path: filepath.Join(w.Project, ".codex", "hooks.json"), Command: settings.CommandLine(w.Stop, []string{"--inbox", w.Inbox}),
			Timeout: 600, Enabled: true, Trust: "trusted",
		})
	}
	w.Hooks = func(context.Context, []string, []string, string) ([]clients.CodexHook, error) { return all, nil }
	return w, &all
}

// amiss are the checks that are not ok, a line each.
func amiss(in Input) (lines []string) {
	for _, c := range Amiss(Run(in)) {
		lines = append(lines, c.State+" "+c.Name+" "+c.Evidence+" -> "+c.Fix)
	}
	return lines
}

func TestCodexIsWell(t *testing.T) {
	w, _ := codexWorld(t)
	assert.Empty(t, amiss(w.Input))
	all := Run(w.Input)
	assert.Equal(t, "client", all[0].Name)
	assert.Contains(t, all[0].Evidence, "is codex-cli 0.169.0")

	w.says("flags", "ok the hook takes --inbox "+w.Inbox)
	assert.NotContains(t, w.checks("flags")[0].Evidence, "; ", "once, for all events")

	w.Inbox = ""
	assert.Empty(t, amiss(w.Input), "it is found by what is wired")
}

func TestCodexIsNot(t *testing.T) {
	ours := 1 // the first hook of ours
	for name, c := range map[string]struct {
		change func(w *world, hooks *[]clients.CodexHook)
		want   string
	}{
		"no codex":     {func(w *world, _ *[]clients.CodexHook) { w.t.Setenv("PATH", "/nowhere") }, "fail client there is no codex on the PATH"},
		"another form": {func(w *world, _ *[]clients.CodexHook) { w.refuses() }, "fail client codex-cli 0.169.0: it refuses hooks/list"},
		"no hooks":     {func(_ *world, h *[]clients.CodexHook) { *h = nil }, "or they are disabled"},
		"not ours":     {func(_ *world, h *[]clients.CodexHook) { *h = (*h)[:1] }, "none of the hooks that Codex has for"},
		"another inbox": {func(w *world, h *[]clients.CodexHook) {
			for i := range *h {
				(*h)[i].Command = strings.ReplaceAll((*h)[i].Command, w.Inbox, "/srv/other.jsonl")
			}
		}, "fail wired no hook of Stop serves"},
		"untrusted":     {func(_ *world, h *[]clients.CodexHook) { (*h)[ours].Trust = "untrusted" }, "fail trust nobody has trusted hooks, or they were changed since: Stop:"},
		"switched off":  {func(_ *world, h *[]clients.CodexHook) { (*h)[ours].Enabled = false }, "fail trust hooks are switched off: Stop"},
		"twice":         {func(_ *world, h *[]clients.CodexHook) { *h = append(*h, (*h)[ours]) }, "warn wired 2 hooks serve"},
		"events":        {func(_ *world, h *[]clients.CodexHook) { *h = (*h)[:2] }, "warn events not wired as that of Stop is: SessionStart (whether a session lives is not known, and with --rewake it is woken only after its first turn), SessionEnd ("},
		"rewake":        {func(_ *world, h *[]clients.CodexHook) { (*h)[ours].Command += " --rewake" }, " --rewake (.codex/hooks.json) has --rewake, and Codex runs no hooks in the background"},
		"a shell's":     {func(_ *world, h *[]clients.CodexHook) { (*h)[ours].Command += " $FLAGS" }, "warn flags what a shell makes of this cannot be told"},
		"unknown flags": {func(_ *world, h *[]clients.CodexHook) { (*h)[ours].Command += " --nonsense" }, "fail flags the hook does not take --inbox "},
		"gone":          {func(w *world, h *[]clients.CodexHook) { (*h)[ours].Command = "/gone/heartbeat-stop --inbox " + w.Inbox }, "fail binary the hook cannot be started"},
		"short": {func(_ *world, h *[]clients.CodexHook) {
			(*h)[ours].Command += " --mode persist"
			(*h)[ours].Timeout = 1
		}, "fail timeout hooks.Stop in .codex/hooks.json has timeout 1s and waits 2s"},
		"relative": {func(w *world, _ *[]clients.CodexHook) { w.Inbox = filepath.Join(w.Project, "none", "inbox.jsonl") }, "fail wired"},
	} {
		t.Run(name, func(t *testing.T) {
			w, hooks := codexWorld(t)
			c.change(w, hooks)
			lines := amiss(w.Input)
			require.NotEmpty(t, lines)
			assert.Contains(t, strings.Join(lines, "\n"), c.want)
		})
	}
}

// refuses makes Codex one that cannot be asked.
func (w *world) refuses() {
	w.Hooks = func(context.Context, []string, []string, string) ([]clients.CodexHook, error) {
		return nil, errors.New("it refuses hooks/list")
	}
}
