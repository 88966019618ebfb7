package configfile_test

import (
	"bytes"
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

// files are contents that a person may have.
var files = map[string]string{
	"none":                "",
	"a key":               "model = \"gpt-5\"\n",
	"no end":              "model = \"gpt-5\"",
	"an empty line":       "model = \"gpt-5\"\n\n",
	"only an empty line":  "\n",
	"only a comment":      "# mine",
	"carriage returns":    "model = \"gpt-5\"\r\n\r\n[tui]\r\nx = 1\r\n",
	"only an order mark":  "\ufeff",
	"a byte order mark":   "\ufeffmodel = \"gpt-5\"\r\n",
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

// owned is a person's config.toml.
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

// install adds the server, and checks that a second edit changes nothing.
func (o owned) install() error {
	o.Helper()
	edit := configfile.File(o.path, settings.RefuseLinks, tools, true)
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

func (o owned) uninstall() {
	o.Helper()
	_, err := configfile.File(o.path, settings.RefuseLinks, tools, false).Write()
	require.NoError(o, err)
}

// Whatever is in a file, an edit takes effect, a second one changes nothing, and it is undone byte for byte.
func TestEverythingIsTakenBack(t *testing.T) {
	for name, text := range files {
		o := owns(t, text)
		o.uninstall()
		require.Equal(t, text, o.text(), name)
		if err := o.install(); err != nil {
			require.Equal(t, "servers, inline", name, err)
			continue
		}
		checkServer(t, name, []byte(o.text()))
		o.uninstall()
		require.Equal(t, text, o.text(), name)
		names, err := os.ReadDir(filepath.Dir(o.path))
		require.NoError(t, err)
		require.LessOrEqual(t, len(names), 1)
	}
}

func TestWhatAFileSaysOfHooks(t *testing.T) {
	for name, text := range files {
		on, said, err := configfile.HooksIn([]byte(text))
		require.NoError(t, err, name)
		assert.Equal(t, !strings.HasPrefix(name, "off"), on, name)
		assert.Equal(t, strings.HasPrefix(name, "off") || name == "on", said, name)
	}
}

// An editor that changes the line ends of the whole file leaves heartbeat's block what it is.
func TestOtherLineEndsInBetween(t *testing.T) {
	o := owns(t, "[tui]\nx = 1\n")
	require.NoError(t, o.install())
	require.NoError(t, os.WriteFile(o.path, []byte(strings.ReplaceAll(o.text(), "\n", "\r\n")), 0o600))
	o.uninstall()
	assert.Equal(t, "[tui]\r\nx = 1", strings.TrimSpace(o.text()))
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
	require.NoError(t, toml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &have), "%s: %s", name, text)
	got := have.Servers["heartbeat"]
	require.Equal(t, tools.Command, got.Command, name)
	require.Equal(t, tools.Args, got.Args, name)
	require.Equal(t, "approve", got.Mode, name)
}

// Changes that a person made after an install stay.
func TestChangesInBetweenStay(t *testing.T) {
	o := owns(t, "[tui]\nx = 1\n")
	require.NoError(t, o.install())
	require.NoError(t, os.WriteFile(o.path, []byte("model = 'x'\n"+o.text()+"\n# mine\n[other]\ny = 2\n"), 0o600))
	o.uninstall()
	assert.Equal(t, "model = 'x'\n[tui]\nx = 1\n\n\n# mine\n[other]\ny = 2\n", o.text())

	// A person's additions to heartbeat's own block are for the person to move.
	o = owns(t, "")
	require.NoError(t, o.install())
	mixed := strings.Replace(o.text(), "# heartbeat: end", "[mine]\n# heartbeat: end", 1)
	require.NoError(t, os.WriteFile(o.path, []byte(mixed), 0o600))
	_, err := configfile.File(o.path, settings.RefuseLinks, tools, false).Write()
	require.ErrorContains(t, err, "has more in or behind it")
	assert.Equal(t, mixed, o.text())

	// A string that looks like the block is left alone.
	const like = "x = \"\"\"\n# heartbeat: begin\n# heartbeat: end\n\"\"\"\n"
	o = owns(t, like)
	o.uninstall()
	assert.Equal(t, like, o.text())
	require.ErrorContains(t, o.install(), "by hand")
	assert.Equal(t, like, o.text())
}

func TestServerOfAnotherInstall(t *testing.T) {
	// Another program for the same inbox is replaced, and a person's additions stay.
	const older = "# heartbeat: begin\n[mcp_servers.heartbeat] # tools\ncommand = \"/old/heartbeat-mcp\"\nargs = [\n  \"--inbox\", '''/srv/it's \"here\"/inbox.jsonl''',\n]\ntool_timeout_sec = 5\n\n[mcp_servers.heartbeat.env]\nA = \"b\"\n# heartbeat: end\n\n# mine\n[tui]\n"
	o := owns(t, older)
	require.NoError(t, o.install())
	checkServer(t, "older", []byte(o.text()))
	for _, kept := range []string{"# heartbeat: begin\n", "tool_timeout_sec = 5\n", "A = 'b'\n", "# mine\n[tui]\n"} {
		assert.Contains(t, o.text(), kept)
	}
	assert.Equal(t, 1, strings.Count(o.text(), "[mcp_servers.heartbeat]"))
	o.uninstall()
	assert.Equal(t, "# mine\n[tui]\n", strings.TrimSpace(o.text())+"\n")

	// A server of that name for another inbox, or another program.
	for _, text := range []string{
		"x = 1\n[mcp_servers.heartbeat]\ncommand = \"/old/heartbeat-mcp\"\nargs = [\"--inbox\", \"/other/inbox.jsonl\"]\n",
		"\n[mcp_servers.heartbeat]\ncommand = \"nc\"\n",
		"\nmcp_servers.heartbeat = 5\n",
	} {
		o := owns(t, text)
		require.ErrorContains(t, o.install(), "mcp_servers.heartbeat at line 2 is another server")
		o.uninstall()
		assert.Equal(t, text, o.text())
	}

	// The same server outside heartbeat's block is left to the person, with a sentence.
	o = owns(t, "mcp_servers.heartbeat = { command = \"/old/heartbeat-mcp\", args = [\"--inbox\", '''"+tools.Args[1]+"'''] }\n")
	require.ErrorContains(t, o.install(), "by hand")
	_, err := configfile.File(o.path, settings.RefuseLinks, tools, false).Write()
	require.ErrorContains(t, err, "mcp_servers.heartbeat is not in heartbeat's part of the file, ")
}

func TestNotTOML(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\nb = \n":              "not valid TOML at line 2, column 5: ",
		"[a]\n[a]\n":                 "not valid TOML",
		"a = 1\na = 2\n":             "not valid TOML",
		"\xff":                       "not valid TOML",
		strings.Repeat("[", 200_000): "not valid TOML",
	} {
		_, _, err := configfile.HooksIn([]byte(text))
		require.ErrorContains(t, err, want)
		err = owns(t, text).install()
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, ": correct the file, then try again")
	}
}

// FuzzEdit undoes its edits of any file, or leaves the file alone with an error.
func FuzzEdit(f *testing.F) {
	for _, text := range files {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "# heartbeat") || text == "" {
			t.Skip("a mark is taken back, whoever wrote it")
		}
		o := owns(t, text)
		if o.install() == nil {
			o.uninstall()
		}
		require.Equal(t, text, o.text())
	})
}
