package settings_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/testing/long"
)

// person has a settings file in a directory of its own.
type person struct {
	testing.TB
	path string
}

// owns writes the file if there is one.
func owns(t testing.TB, text string, there bool) person {
	t.Helper()
	p := person{t, filepath.Join(t.TempDir(), "settings.json")}
	if there {
		p.write(text)
	}
	return p
}

func (p person) write(text string) {
	p.Helper()
	require.NoError(p, os.WriteFile(p.path, []byte(text), 0o600))
}

func (p person) text() string {
	p.Helper()
	text, err := os.ReadFile(p.path)
	require.NoError(p, err)
	return string(text)
}

// install installs w, and checks that a second install changes nothing.
func (p person) install(w settings.Wiring) string {
	p.Helper()
	_, err := settings.InstallFile(p.path, w, settings.RefuseLinks).Write()
	require.NoError(p, err)
	text := p.text()
	changed, err := settings.InstallFile(p.path, w, settings.RefuseLinks).Write()
	require.NoError(p, err)
	require.False(p, changed, "a second install changes nothing")
	require.Equal(p, text, p.text())
	return text
}

func (p person) uninstall(w settings.Wiring) {
	p.Helper()
	_, err := settings.UninstallFile(p.path, w, settings.RefuseLinks).Write()
	require.NoError(p, err)
}

// has asserts that the file has this text again, with nothing beside it.
func (p person) has(text string, there bool, says string) {
	p.Helper()
	names, err := os.ReadDir(filepath.Dir(p.path))
	require.NoError(p, err)
	if !there {
		require.Empty(p, names, says)
		return
	}
	require.Len(p, names, 1, says)
	require.Equal(p, text, p.text(), says)
}

// checkFile checks the promises on a file without heartbeat's parts: for one case of each kind, chosen by n, or for
// all of them in long runs.
func checkFile(t testing.TB, x string, there bool, n int) {
	t.Helper()
	chosen := func(i, of int) bool { return long.Wanted() || n%of == i }
	a, r, tools := wiring(), rewake(), wiring()
	tools.Server, tools.Allowed = "heartbeat", true
	moved := settings.Blocking("/moved/heartbeat-stop", []string{"--park", "--inbox", inbox}, time.Hour)
	lines := settings.Lines("/abs dir/heartbeat-stop", []string{"--inbox", inbox, "--preamble", "it's $HOME \"quoted\" \\ é"}, 0)
	p := owns(t, x, there)
	for i, w := range []settings.Wiring{a, r, tools, lines} {
		if !chosen(i, 4) {
			continue
		}
		name := []string{"blocks", "wakes", "tools", "lines"}[i]
		y := p.install(w)
		if name != "tools" {
			require.Equal(t, foreignMeaning(t, x), foreignMeaning(t, y), "%s: the meaning of everything else is the same", name)
		}
		require.True(t, isSubsequence(x, y), "%s: every byte of the file survives, in order", name)
		p.uninstall(w)
		p.has(x, there, name+": every byte is restored")
	}
	if chosen(1, 3) {
		blocks := p.install(a)
		p.install(moved)
		wakes := p.install(r)
		require.Equal(t, meaning(t, blocks), meaning(t, p.install(a)), "into the background, and out of it")
		p.uninstall(a)
		p.has(x, there, "after changes")
		require.Equal(t, meaning(t, wakes), meaning(t, p.install(r)), "as if there had been no other wiring")
		p.uninstall(a)
		p.install(tools)
		drop := wiring()
		drop.Server = "heartbeat"
		require.Equal(t, meaning(t, blocks), meaning(t, p.install(drop)), "without the tools, as if they had never been there")
	}
	for i, order := range [][]settings.Wiring{{a, otherInbox(r)}, {otherInbox(r), a}} {
		if !chosen(i, 3) {
			continue
		}
		p.install(a)
		p.install(otherInbox(r))
		p.uninstall(order[0])
		p.uninstall(order[1])
		p.has(x, there, "two inboxes")
	}
}

func TestRoundTripOfDocuments(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(documents)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFile(t, documents[name], name != "no file", i)
		})
	}
	t.Run("empty file", func(t *testing.T) { checkFile(t, "", true, 0) })
}

func TestRoundTripOfGeneratedDocuments(t *testing.T) {
	for seed := range long.Rounds(18, 200) {
		x := generate(rand.New(rand.NewPCG(uint64(seed), 7)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkFile(t, x, true, seed) })
	}
}

// Changes by others in between stay, with all comments, and nothing of ours does.
func TestEditsInBetweenStay(t *testing.T) {
	edits := map[string]func(string) string{
		"value":       func(s string) string { return strings.Replace(s, "opus", "sonnet", 1) },
		"first":       func(s string) string { return strings.Replace(s, "{", "{\"zz\": [true],", 1) },
		"comment":     func(s string) string { return s + "/* looked at */" },
		"before ours": func(s string) string { return strings.Replace(s, `"token": "`, `"new": "x", "token": "`, 1) },
	}
	for seed := range long.Rounds(20, 300) {
		x := generate(rand.New(rand.NewPCG(uint64(seed), 11)))
		if !strings.Contains(x, `"token"`) || strings.Contains(x, "/*/") {
			continue
		}
		for name, edit := range edits {
			p := owns(t, x, true)
			y := p.install(wiring())
			p.write(edit(y))
			p.uninstall(wiring())
			got := p.text()
			says := fmt.Sprintf("seed %d, %s: %s", seed, name, y)
			require.Equal(t, meaning(t, edit(x)), meaning(t, got), says)
			require.Equal(t, strings.Count(edit(x), "/* c */"), strings.Count(got, "/* c */"), says)
			require.Equal(t, strings.Count(edit(x), "// c"), strings.Count(got, "// c"), says)
			require.NoFileExists(t, p.path+".before-heartbeat")
		}
	}
}

// isSubsequence reports whether y is x with bytes inserted, apart from white space.
func isSubsequence(x, y string) bool {
	x = strings.Join(strings.Fields(x), "")
	for _, c := range []byte(x) {
		i := strings.IndexByte(y, c)
		if i < 0 {
			return false
		}
		y = y[i+1:]
	}
	return true
}

// FuzzDocument lets the fuzzer write the settings file.
func FuzzDocument(f *testing.F) {
	for _, x := range documents {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x string) {
		if strings.Contains(x, "eart") || strings.Contains(x, `\u`) && strings.Contains(x, "CAP") {
			t.Skip("may have parts of ours in it already")
		}
		tools := wiring()
		tools.Server, tools.Allowed = "heartbeat", true
		if _, err := settings.Install([]byte(x), tools); err == nil {
			checkFile(t, x, true, len(x))
		}
	})
}

// An install of an earlier release, which kept no copy, is removed without a trace.
func TestInstallOfAnEarlierReleaseGoes(t *testing.T) {
	old := `{
  "model": "opus", // mine
  "hooks": {
    "Stop": [
      {"matcher": "", "hooks": [{"type": "command", "command": "/old/heartbeat-stop", "args": ["--inbox", "/x/inbox.jsonl"], "timeout": 600}]}

    ],
    "SubagentStop": [
      {"matcher": "", "hooks": [{"type": "command", "command": "/old/heartbeat-stop", "args": ["--inbox", "/x/inbox.jsonl"], "timeout": 600}]}
    ]
  },
  "env": {
    "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"
  },
  "enabledMcpjsonServers": ["heartbeat"],
  "permissions": {"allow": ["mcp__heartbeat"]}
}
`
	want := map[string]any{"model": "opus"}
	w := wiring()
	w.Server, w.Allowed = "heartbeat", true
	for _, again := range []bool{false, true} {
		p := owns(t, old, true)
		if again {
			p.install(w)
			require.NotContains(t, p.text(), "/old/")
			require.NoFileExists(t, p.path+".before-heartbeat", "it is not as it was before the first change")
		}
		p.uninstall(w)
		assert.Equal(t, want, meaning(t, p.text()))
		assert.Contains(t, p.text(), "// mine")
	}
}

// An install or uninstall that was killed between any two of its writes is run again, and leaves nothing beside the
// file.
func TestKilledBetweenTheWrites(t *testing.T) {
	const x = `{"a":  1}`
	kept := func(p person) { require.NoError(t, os.WriteFile(p.path+".before-heartbeat", []byte(x), 0o600)) }
	p := owns(t, x, true)
	kept(p)
	p.uninstall(wiring())
	p.has(x, true, "the file was kept, and not edited")
	kept(p)
	p.install(wiring())
	p.uninstall(wiring())
	p.has(x, true, "installed after that")
	kept(p)
	p.uninstall(wiring())
	p.has(x, true, "put back, and still kept")
}

// The copy of an install that was undone by hand is not put back.
func TestAFileKeptEarlierIsNotPutBack(t *testing.T) {
	p := owns(t, `{"a":  1}`, true)
	p.install(wiring())
	p.write(`{"b":   2}`)
	p.uninstall(wiring())
	p.has(`{"b":   2}`, true, "it was cleared")
	p.install(wiring())
	p.write(`{"c":    3}`)
	p.install(wiring())
	p.uninstall(wiring())
	p.has(`{"c":    3}`, true, "it is that of the last first change")

	// A person replaces the copy, and the replacement is not trusted.
	p.install(wiring())
	require.NoError(t, os.WriteFile(p.path+".before-heartbeat", []byte(`{"c":3,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"evil"}]}]}}`), 0o600))
	p.uninstall(wiring())
	assert.Equal(t, meaning(t, `{"c":3,"hooks":{"Stop":[]}}`), meaning(t, p.text()), "but for what is empty")
}
