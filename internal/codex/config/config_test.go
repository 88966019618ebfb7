package config_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/codex/config"
)

var tools = settings.Server{
	Name: "heartbeat", Command: "/opt/heartbeat/heartbeat-mcp",
	Args: []string{"--inbox", `/srv/it's "here"/inbox.jsonl`, "--role", "agent"},
}

// files are what a person may have.
var files = map[string]string{
	"none":                 "",
	"a key":                "model = \"gpt-5\"\n",
	"no end":               "model = \"gpt-5\"",
	"an empty line":        "model = \"gpt-5\"\n\n",
	"only an empty line":   "\n",
	"only a comment":       "# mine",
	"carriage returns":     "model = \"gpt-5\"\r\n\r\n[tui]\r\nx = 1\r\n",
	"off":                  "[features]\nhooks = false\n",
	"off, no end":          "[features]\nhooks = false",
	"off, with comments":   "# a\n[features] # b\n  hooks=false# c\n# d\nother = true\n[tui]\n",
	"off by its old name":  "[features]\ncodex_hooks = false\nx = 1\n",
	"off twice":            "[features]\ncodex_hooks = false\nhooks = false\n",
	"off and on":           "[features]\ncodex_hooks = false\nhooks = true\n",
	"off, dotted":          "features.hooks = false\nmodel = \"x\"\n",
	"off, quoted":          "[ \"features\" ]\n'hooks' = false\n",
	"off, inline":          "features = { other = true, hooks = false, x = \"# false\" } # mine\n",
	"off, both inline":     "features = { codex_hooks = false, hooks = false }",
	"on":                   "[features]\nhooks = true\n",
	"other features":       "[features]\nother = true\n\n[tui]\nx = [1,\n # two\n 2]\n",
	"features, no end":     "[features]",
	"features, empty":      "[features]\n\n[tui]\n",
	"features below":       "[features.other]\nx = 1\n",
	"features, inline":     "features = { other = true }\n",
	"servers":              "[mcp_servers.mine]\ncommand = \"x\"\n[mcp_servers.mine.env]\nA = \"b\"\n",
	"servers, inline":      "mcp_servers = { mine = { command = \"x\" } }\n",
	"a string like a mark": "x = \"\"\"\n# heartbeat install: features.hooks was false\nhooks = true # heartbeat install\n\"\"\"\n",
	"an array of tables":   "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"",
}

// Whatever is in a file, what an edit did is taken back byte for byte, in either order; a second edit changes nothing; and
// what the edit is for is in the file.
func TestEverythingIsTakenBack(t *testing.T) {
	for name, text := range files {
		for _, below := range []config.Hooks{config.Unsaid, config.On, config.Off} {
			on, onErr := config.SwitchOn(bytes(text), below)
			both, bothErr := config.InstallServer(bytes(text), tools)
			if onErr == nil {
				checkOn(t, name, text, below, on)
				both, bothErr = config.InstallServer(on, tools)
			}
			if bothErr != nil {
				assert.Equal(t, "servers, inline", name, bothErr)
				continue
			}
			checkServer(t, name, both)
			again, err := config.InstallServer(both, tools)
			require.NoError(t, err, name)
			require.Equal(t, string(both), string(again), name)

			serverFirst, err := config.UninstallServer(both, tools)
			require.NoError(t, err, name)
			serverFirst, err = config.SwitchBack(serverFirst)
			require.NoError(t, err, name)
			assert.Equal(t, text, string(serverFirst), name)
			flagFirst, err := config.SwitchBack(both)
			require.NoError(t, err, name)
			flagFirst, err = config.UninstallServer(flagFirst, tools)
			require.NoError(t, err, name)
			assert.Equal(t, text, string(flagFirst), name)
		}
	}
}

func checkOn(t *testing.T, name, text string, below config.Hooks, on []byte) {
	t.Helper()
	before, err := config.HooksIn(bytes(text))
	require.NoError(t, err, name)
	said, err := config.HooksIn(on)
	require.NoError(t, err, name)
	if before == config.Off || before == config.Unsaid && below == config.Off {
		require.Equal(t, config.On, said, "%s: %s", name, on)
	} else {
		require.Equal(t, text, string(on), name)
	}
	again, err := config.SwitchOn(on, below)
	require.NoError(t, err, name)
	require.Equal(t, string(on), string(again), name)
	back, err := config.SwitchBack(on)
	require.NoError(t, err, name)
	require.Equal(t, text, string(back), name)
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

func bytes(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// What a person changed after an install stays.
func TestChangesInBetweenStay(t *testing.T) {
	installed, err := config.SwitchOn(nil, config.Off)
	require.NoError(t, err)
	installed, err = config.InstallServer(installed, tools)
	require.NoError(t, err)
	changed := strings.Replace(string(installed), "hooks = true # heartbeat install\n", "hooks = true # heartbeat install\nother = true\n", 1) + "\n[tui]\nx = 1\n"
	back, err := config.SwitchBack([]byte(changed))
	require.NoError(t, err)
	back, err = config.UninstallServer(back, tools)
	require.NoError(t, err)
	assert.Equal(t, "[features]\nother = true\n\n[tui]\nx = 1\n", string(back))

	// A feature that a person has switched off again since is no longer ours to switch.
	for text, want := range map[string]string{
		"[features]\n# heartbeat install: features.hooks was false\nhooks = false\n":      "[features]\nhooks = false\n",
		"[features]\n# heartbeat install: features.hooks was false\nother = true\n":       "[features]\nother = true\n",
		"[features]\n# heartbeat install: features.hooks was false\n# mine\nhooks = true": "[features]\n# mine\nhooks = false",
		"[features]\n# heartbeat install: features.hooks was false\n":                     "[features]\n",
		"[features] # heartbeat install\nhooks = true\n":                                  "[features]\nhooks = true\n",
		"[features] # heartbeat install\n":                                                "",
	} {
		back, err := config.SwitchBack([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, want, string(back))
	}
}

func TestServerOfAnotherInstall(t *testing.T) {
	// Another program or other flags for the same inbox: changed in place, with what a person added.
	const older = "[mcp_servers.heartbeat] # tools\ncommand = \"/old/heartbeat-mcp\" # here\nargs = [\n  \"--inbox\", '''/srv/it's \"here\"/inbox.jsonl''',\n]\ntool_timeout_sec = 5\n\n[mcp_servers.heartbeat.env]\nA = \"b\"\n\n[tui]\n"
	text, err := config.InstallServer([]byte(older), tools)
	require.NoError(t, err)
	checkServer(t, "older", text)
	for _, kept := range []string{"# tools\n", " # here\n", "tool_timeout_sec = 5\n", "A = \"b\"\n", "[tui]\n"} {
		assert.Contains(t, string(text), kept)
	}
	text, err = config.UninstallServer(text, tools)
	require.NoError(t, err)
	assert.Equal(t, "\n[tui]\n", string(text))

	// Another inbox's, or another program, under the name.
	for _, text := range []string{
		"x = 1\n[mcp_servers.heartbeat]\ncommand = \"/old/heartbeat-mcp\"\nargs = [\"--inbox\", \"/other/inbox.jsonl\"]\n",
		"\n[mcp_servers.heartbeat]\ncommand = \"nc\"\n",
		"\nmcp_servers.heartbeat = 5\n",
	} {
		_, err := config.InstallServer([]byte(text), tools)
		var another *settings.ServerError
		require.ErrorAs(t, err, &another)
		assert.Equal(t, 2, another.Line)
		assert.Equal(t, "mcp_servers.heartbeat", another.Member)
		has, err := config.HasServer([]byte(text), tools)
		require.NoError(t, err)
		assert.False(t, has)
		after, err := config.UninstallServer([]byte(text), tools)
		require.NoError(t, err)
		assert.Equal(t, text, string(after))
	}

	// The same one in a form that install does not write: left to the person, with a sentence.
	inline := []byte("mcp_servers.heartbeat = { command = \"/old/heartbeat-mcp\", args = [\"--inbox\", '''" + tools.Args[1] + "'''] }\n")
	_, err = config.InstallServer(inline, tools)
	require.ErrorContains(t, err, "mcp_servers.heartbeat is not a table of its own, and cannot be edited: write or remove it by hand")
	_, err = config.UninstallServer(inline, tools)
	require.ErrorContains(t, err, "by hand")
}

func TestNotTOML(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\nb = \n":              "not valid TOML at line 2, column 5: ",
		"[a]\n[a]\n":                 "not valid TOML",
		"a = 1\na = 2\n":             "not valid TOML",
		"\xff":                       "not valid TOML",
		strings.Repeat("[", 200_000): "not valid TOML",
	} {
		for _, edit := range []func() error{
			func() error { _, err := config.HooksIn([]byte(text)); return err },
			func() error { _, err := config.SwitchOn([]byte(text), config.Off); return err },
			func() error { _, err := config.SwitchBack([]byte(text)); return err },
			func() error { _, err := config.InstallServer([]byte(text), tools); return err },
			func() error { _, err := config.UninstallServer([]byte(text), tools); return err },
		} {
			err := edit()
			require.ErrorContains(t, err, want)
			assert.ErrorContains(t, err, ": correct the file, then try again")
		}
	}
	_, err := config.SwitchOn([]byte("features = { other = true }\n"), config.Off)
	require.ErrorContains(t, err, "add hooks = true to them")
}

// FuzzEdit takes back what was done to any file, or leaves it alone with an error.
func FuzzEdit(f *testing.F) {
	for _, text := range files {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, off bool) {
		if strings.Contains(text, "# heartbeat install") {
			t.Skip("a mark is taken back, whoever wrote it")
		}
		below := config.Unsaid
		if off {
			below = config.Off
		}
		if on, err := config.SwitchOn([]byte(text), below); err == nil {
			back, err := config.SwitchBack(on)
			require.NoError(t, err)
			require.Equal(t, text, string(back))
		}
		if has, err := config.HasServer([]byte(text), tools); err == nil && !has {
			if with, err := config.InstallServer([]byte(text), tools); err == nil {
				back, err := config.UninstallServer(with, tools)
				require.NoError(t, err)
				require.Equal(t, text, string(back))
			}
		}
	})
}

// A path of very many names above many keys takes no memory for each of them.
func TestDeepPaths(t *testing.T) {
	text := "[" + strings.Repeat("a.", 100_000) + "a]\n"
	for i := range 500 {
		text += "k" + strconv.Itoa(i) + " = true\n"
	}
	on, err := config.SwitchOn([]byte(text), config.Off)
	require.NoError(t, err)
	back, err := config.SwitchBack(on)
	require.NoError(t, err)
	assert.Equal(t, text, string(back))
}
