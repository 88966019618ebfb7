package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const maxLines = 250

func TestReadmeIsShort(t *testing.T) {
	assert.LessOrEqual(t, strings.Count(read(t, "README.md"), "\n"), maxLines)
}

// The README's commands work in its order, with a stand-in for the client.
func TestReadme(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	home := t.TempDir()
	cmd, err := Follow(t.Context(), root, home, self)
	require.NoError(t, err)
	combined, err := cmd.CombinedOutput()
	out := string(combined)
	require.NoError(t, err, out)
	t.Log(out)

	rest, found := out, false
	for _, want := range Said {
		_, rest, found = strings.Cut(rest, want)
		require.True(t, found, "%q is not in its place in\n%s", want, out)
	}
	blocks, _ := split(t, "README.md")
	for _, b := range blocks {
		if b.Language == "" {
			assertLooksLike(t, b.Text, out)
		}
	}
	settings, err := os.ReadFile(filepath.Join(home, "agent", ".claude", "settings.json"))
	if err == nil {
		assert.NotContains(t, string(settings), "heartbeat", "it was uninstalled")
	}
}

func TestCronIsStrict(t *testing.T) {
	for _, table := range []string{"A=b\n", "*/10 * * * * date +%s\n", "heartbeat\n"} {
		_, err := cron(table, "/home/you")
		assert.Error(t, err, table)
	}
}

// varies is what differs from run to run, and from agent to agent.
var varies = []struct{ pattern, name string }{
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
	{`(session \w+) [0-9a-zA-Z-]+`, "$1 ID"},
	{`(in|session,) [0-9.]+m?s`, "$1 DURATION"},
	{`(DURATION:) .*`, "$1 REPLY"},
}

// assertLooksLike holds an example of output to what was printed: each of its lines is
// there, in its order, but for what varies.
func assertLooksLike(t *testing.T, example, out string) {
	t.Helper()
	for _, v := range varies {
		pattern := regexp.MustCompile(v.pattern)
		example, out = pattern.ReplaceAllString(example, v.name), pattern.ReplaceAllString(out, v.name)
	}
	rest := out
	for line := range strings.Lines(example) {
		_, behind, found := strings.Cut(rest, line)
		if !assert.True(t, found, "the README shows %q, which is not in its place in\n%s", line, out) {
			return
		}
		rest = behind
	}
}
