package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/codex/configfile"
)

var tools = settings.Server{
	Name: "heartbeat", Command: "/opt/heartbeat/heartbeat-mcp",
	Args: []string{"--inbox", `/srv/it's "here"/inbox.jsonl`, "--role", "agent"},
}

// files are what a person may have.
var files = map[string]string{
	"none":                "",
	"a key":               "model = \"gpt-5\"\n",
	"no end":              "model = \"gpt-5\"",
	"an empty line":       "model = \"gpt-5\"\n\n",
	"only an empty line":  "\n",
	"only a comment":      "# mine",
	"carriage returns":    "model = \"gpt-5\"\r\n\r\n[tui]\r\nx = 1\r\n",
	"off":                 "[features]\nhooks = false\n",
	"off, no end":         "[features]\nhooks = false",
	"off, with comments":  "# a\n[features] # b\n  hooks=false# c\n# d\nother = true\n[tui]\n",
	"off by its old name": "[features]\ncodex_hooks = false\nx = 1\n",
	"off twice":           "[features]\ncodex_hooks = false\nhooks = false\n",
	"off and on":          "[features]\ncodex_hooks = false\nhooks = true\n",
	"off, dotted":         "features.hooks = false\nmodel = \"x\"\n",
	"off, quoted":         "[ \"features\" ]\n'hooks' = false\n",
	"off, inline":         "features = { other = true, hooks = false, x = \"# false\" } # mine\n",
	"off, both inline":    "features = { codex_hooks = false, hooks = false }",
	"on":                  "[features]\nhooks = true\n",
	"other features":      "[features]\nother = true\n\n[tui]\nx = [1,\n # two\n 2]\n",
	"features, no end":    "[features]",
	"features, empty":     "[features]\n\n[tui]\n",
	"features below":      "[features.other]\nx = 1\n",
	"features, inline":    "features = { other = true }\n",
	"servers":             "[mcp_servers.mine]\ncommand = \"x\"\n[mcp_servers.mine.env]\nA = \"b\"\n",
	"servers, inline":     "mcp_servers = { mine = { command = \"x\" } }\n",
	"an array of tables":  "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"",
}

// owned is a config.toml of a person's.
type owned struct {
	testing.TB
	path string
}

func owns(t testing.TB, text string) owned {
	t.Helper()
	o := owned{t, filepath.Join(t.TempDir(), "config.toml")}
	if text != "" {
		require.NoError(t, os.WriteFile(o.path, []byte(text), 0o600))
	}
	return o
}

func (o owned) text() string {
	o.Helper()
	text, err := os.ReadFile(o.path)
	if !os.IsNotExist(err) {
		require.NoError(o, err)
	}
	return string(text)
}

// install edits the file, and a second time changes nothing.
func (o owned) install(below configfile.Hooks, wanted bool) error {
	o.Helper()
	edit := configfile.InstallFile(o.path, settings.RefuseLinks, below, tools, wanted)
	if _, err := edit.Write(); err != nil {
		return err
	}
	text := o.text()
	changed, err := edit.Write()
	require.NoError(o, err)
	require.False(o, changed)
	require.Equal(o, text, o.text())
	return nil
}

func (o owned) uninstall(last bool) {
	o.Helper()
	_, err := configfile.UninstallFile(o.path, settings.RefuseLinks, tools, last).Write()
	require.NoError(o, err)
}

// Whatever is in a file, what an edit did is taken back byte for byte; a second edit changes nothing; and what the edit is
// for is in the file.
func TestEverythingIsTakenBack(t *testing.T) {
	for name, text := range files {
		for _, below := range []configfile.Hooks{configfile.Unsaid, configfile.On, configfile.Off} {
			o := owns(t, text)
			if err := o.install(below, false); err != nil {
				require.Equal(t, "features, inline", name, err)
				continue
			}
			before, err := configfile.HooksIn([]byte(text))
			require.NoError(t, err, name)
			if before == configfile.Off || before == configfile.Unsaid && below == configfile.Off {
				said, err := configfile.HooksIn([]byte(o.text()))
				require.NoError(t, err, name)
				require.Equal(t, configfile.On, said, "%s: %s", name, o.text())
			} else {
				require.Equal(t, text, o.text(), name)
			}
			o.uninstall(true)
			require.Equal(t, text, o.text(), name)
			if err := o.install(below, true); err != nil {
				require.Equal(t, "servers, inline", name, err)
				continue
			}
			checkServer(t, name, []byte(o.text()))
			o.uninstall(false)
			require.NotContains(t, o.text(), "heartbeat-mcp")
			require.NoError(t, o.install(below, true))
			o.uninstall(true)
			require.Equal(t, text, o.text(), name)
			names, err := os.ReadDir(filepath.Dir(o.path))
			require.NoError(t, err)
			require.LessOrEqual(t, len(names), 1)
		}
	}
}

func checkServer(t *testing.T, name string, text []byte) {
	t.Helper()
	var have struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Mode    string `toml:"default_tools_approval_mode"`
		} `toml:"mcp_servers"`
	}
	require.NoError(t, toml.Unmarshal(text, &have), "%s: %s", name, text)
	got := have.Servers["heartbeat"]
	require.Equal(t, tools.Command, got.Command, name)
	require.Equal(t, tools.Args, got.Args, name)
	require.Equal(t, "approve", got.Mode, name)
}

// What a person changed after an install stays.
func TestChangesInBetweenStay(t *testing.T) {
	o := owns(t, "[tui]\nx = 1\n")
	require.NoError(t, o.install(configfile.Off, true))
	require.NoError(t, os.WriteFile(o.path, []byte("model = 'x'\n"+o.text()+"\n# mine\n[other]\ny = 2\n"), 0o600))
	o.uninstall(true)
	assert.Equal(t, "model = 'x'\n[tui]\nx = 1\n\n\n# mine\n[other]\ny = 2\n", o.text())

	// What is in heartbeat's own block is a person's to move.
	o = owns(t, "")
	require.NoError(t, o.install(configfile.Off, true))
	mixed := strings.Replace(o.text(), "hooks = true\n", "hooks = true\nother = true\n", 1)
	require.NoError(t, os.WriteFile(o.path, []byte(mixed), 0o600))
	_, err := configfile.UninstallFile(o.path, settings.RefuseLinks, tools, true).Write()
	require.ErrorContains(t, err, "there is more in or behind heartbeat's part of it")
	assert.Equal(t, mixed, o.text())

	// Nor is a string taken for it.
	const likeMark = "x = \"\"\"\n# heartbeat install: features.hooks was false\nhooks = true # heartbeat install\n\"\"\"\n"
	o = owns(t, likeMark)
	_, err = configfile.UninstallFile(o.path, settings.RefuseLinks, tools, true).Write()
	require.ErrorContains(t, err, "by hand")
	assert.Equal(t, likeMark, o.text())
}

// A feature that a person has switched since an install stays so.
func TestWhatAPersonSwitchedStays(t *testing.T) {
	for text, want := range map[string]string{
		"[features]\n# heartbeat install: features.hooks was false\nhooks = false\n":      "[features]\nhooks = false\n",
		"[features]\n# heartbeat install: features.hooks was false\nother = true\n":       "[features]\nother = true\n",
		"[features]\n# heartbeat install: features.hooks was false\n# mine\nhooks = true": "[features]\n# mine\nhooks = false",
		"[features]\n# heartbeat install: features.hooks was false\n":                     "[features]\n",
	} {
		o := owns(t, text)
		o.uninstall(true)
		assert.Equal(t, want, o.text())
	}
}

func TestServerOfAnotherInstall(t *testing.T) {
	// Another program for the same inbox: moved over, with what a person added.
	const older = "# heartbeat: begin\n[mcp_servers.heartbeat] # tools\ncommand = \"/old/heartbeat-mcp\"\nargs = [\n  \"--inbox\", '''/srv/it's \"here\"/inbox.jsonl''',\n]\ntool_timeout_sec = 5\n\n[mcp_servers.heartbeat.env]\nA = \"b\"\n# heartbeat: end\n\n# mine\n[tui]\n"
	o := owns(t, older)
	require.NoError(t, o.install(configfile.Unsaid, true))
	checkServer(t, "older", []byte(o.text()))
	for _, kept := range []string{"# heartbeat: begin\n", "tool_timeout_sec = 5\n", "A = 'b'\n", "# mine\n[tui]\n"} {
		assert.Contains(t, o.text(), kept)
	}
	assert.Equal(t, 1, strings.Count(o.text(), "[mcp_servers.heartbeat]"))
	o.uninstall(true)
	assert.Equal(t, "# mine\n[tui]\n", strings.TrimSpace(o.text())+"\n")

	// Another inbox's, or another program, under the name.
	for _, text := range []string{
		"x = 1\n[mcp_servers.heartbeat]\ncommand = \"/old/heartbeat-mcp\"\nargs = [\"--inbox\", \"/other/inbox.jsonl\"]\n",
		"\n[mcp_servers.heartbeat]\ncommand = \"nc\"\n",
		"\nmcp_servers.heartbeat = 5\n",
	} {
		o := owns(t, text)
		require.ErrorContains(t, o.install(configfile.Unsaid, true), "mcp_servers.heartbeat at line 2 is another server")
		o.uninstall(true)
		assert.Equal(t, text, o.text())
	}

	// The same one elsewhere than install writes it: left to the person, with a sentence.
	o = owns(t, "mcp_servers.heartbeat = { command = \"/old/heartbeat-mcp\", args = [\"--inbox\", '''"+tools.Args[1]+"'''] }\n")
	require.ErrorContains(t, o.install(configfile.Unsaid, true), "by hand")
	_, err := configfile.UninstallFile(o.path, settings.RefuseLinks, tools, true).Write()
	require.ErrorContains(t, err, "mcp_servers.heartbeat is not in heartbeat's part of the file, or that cannot have it: write or remove it by hand")
}

func TestNotTOML(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\nb = \n":              "not valid TOML at line 2, column 5: ",
		"[a]\n[a]\n":                 "not valid TOML",
		"a = 1\na = 2\n":             "not valid TOML",
		"\xff":                       "not valid TOML",
		strings.Repeat("[", 200_000): "not valid TOML",
	} {
		_, err := configfile.HooksIn([]byte(text))
		require.ErrorContains(t, err, want)
		err = owns(t, text).install(configfile.Off, true)
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, ": correct the file, then try again")
	}
	require.ErrorContains(t, owns(t, "features = { other = true }\n").install(configfile.Off, false), "add hooks = true to them")
}

// FuzzEdit takes back what was done to any file, or leaves it alone with an error.
func FuzzEdit(f *testing.F) {
	for _, text := range files {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, wanted bool) {
		if strings.Contains(text, "# heartbeat") || text == "" {
			t.Skip("a mark is taken back, whoever wrote it")
		}
		o := owns(t, text)
		if o.install(configfile.Off, wanted) == nil {
			o.uninstall(true)
		}
		require.Equal(t, text, o.text())
	})
}
