package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// apiKey is no secret: the stand-in takes any key.
const apiKey = "sk-ant-loopback-stand-in"

// Workspace is the scratch place one test runs clients in. Everything in it is
// removed after the test.
type Workspace struct {
	Home    string // the client's HOME
	Project string // the client's working folder, without symbolic links
	Model   *model.Model

	t      testing.TB
	binary string
	events string // folder of recorded hook events
}

// New builds a workspace whose client has been through its first-run questions:
// onboarding is done, the stand-in's key is approved and the project folder is
// trusted. Answering the trust question in advance is right only because the
// test made that folder itself.
func New(t testing.TB, binary string, model *model.Model) *Workspace {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return newAt(t, root, binary, model)
}

// newAt builds a workspace in an empty folder that the test removes itself.
func newAt(t testing.TB, root, binary string, model *model.Model) *Workspace {
	t.Helper()
	w := &Workspace{
		Home:    filepath.Join(root, "home"),
		Project: filepath.Join(root, "project"),
		Model:   model,
		t:       t,
		binary:  binary,
		events:  filepath.Join(root, "events"),
	}
	for _, dir := range []string{w.Home, w.Project, w.events} {
		must(t, os.Mkdir(dir, 0o700))
	}
	w.writeJSON(filepath.Join(w.Home, ".claude.json"), w.firstRun())
	t.Cleanup(func() { script.Sweep(t, "HOME="+w.Home) })
	return w
}

// firstRun is what the client remembers of its first-run questions.
func (w *Workspace) firstRun() map[string]any {
	return map[string]any{
		"hasCompletedOnboarding": true,
		"theme":                  "dark",
		"customApiKeyResponses": map[string]any{
			"approved": []string{apiKey[len(apiKey)-20:]}, // the client keeps the last 20 characters
			"rejected": []string{},
		},
		"projects": map[string]any{
			w.Project: map[string]any{"hasTrustDialogAccepted": true},
		},
	}
}

// WriteSettings writes a settings object to a file of its own, for
// Options.Settings, and returns its absolute path.
func (w *Workspace) WriteSettings(name string, settings any) string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.Home), name+".settings.json")
	w.writeJSON(path, settings)
	return path
}

// WriteProjectSettings writes the project's own .claude/settings.json.
func (w *Workspace) WriteProjectSettings(settings any) {
	w.t.Helper()
	w.writeJSON(filepath.Join(w.Project, ".claude", "settings.json"), settings)
}

// writeJSON writes v to a file, making its folder first.
func (w *Workspace) writeJSON(path string, v any) {
	w.t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	must(w.t, err)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(w.t, os.WriteFile(path, raw, 0o600))
}

// environ is the client's whole environment; extra entries of the form
// NAME=value come last and so win. Nothing but PATH is inherited.
func (w *Workspace) environ(extra []string) []string {
	return slices.Concat([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + w.Home,
		"TERM=xterm-256color",
		"ANTHROPIC_BASE_URL=" + w.Model.URL(),
		"ANTHROPIC_API_KEY=" + apiKey,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
	}, extra)
}

// must ends the test on an error of the harness itself.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("client: %v", err)
	}
}
