package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// verbLine is a verb in the help of heartbeat.
var verbLine = regexp.MustCompile(`(?m)^  ([a-z][a-z-]+) {2,}\S`)

// verbs are those that heartbeat's help lists, but for the commands that stand beside it.
func verbs(t *testing.T) (all []string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, "heartbeat"), "help").Output()
	require.NoError(t, err)
	for _, m := range verbLine.FindAllStringSubmatch(string(out), -1) {
		if !slices.Contains([]string{"launch", "host", "nats", "hook"}, m[1]) {
			all = append(all, m[1])
		}
	}
	require.Greater(t, len(all), 30)
	return all
}

// The reference names each verb.
func TestReferenceHasEachVerb(t *testing.T) {
	commands := section(t, "docs/reference.md", "## The commands")
	for _, v := range verbs(t) {
		assert.True(t, strings.Contains(commands, "`"+v+"`"), "docs/reference.md lacks %s", v)
	}
}

// What the reference and json.md say of --json is true of each verb.
func TestVerbsWithoutJSON(t *testing.T) {
	h := helps{}
	var none []string
	for _, v := range verbs(t) {
		if !strings.Contains(h.of(t, "heartbeat", v), "--json") {
			none = append(none, v)
		}
	}
	var said [][]string
	for path, sentence := range map[string]string{
		"docs/reference.md": `all\s+but ([^;.]*) have\s+.--json`,
		"docs/json.md":      "(`attach`[^.]*) have no `--json`",
	} {
		m := regexp.MustCompile(sentence).FindStringSubmatch(read(t, path))
		require.NotNil(t, m, path)
		var names []string
		for _, name := range codeSpan.FindAllStringSubmatch(m[1], -1) {
			if name[1] != "help" { // it is no verb of its own
				names = append(names, name[1])
			}
		}
		said = append(said, names)
	}
	for _, names := range said {
		// These print it below a verb of their own.
		assert.ElementsMatch(t, none, append(names, "dead-letter", "breakpoint"))
	}
}

// stateFile is the name of a file beside the inbox, or how it begins, as the code writes it.
var stateFile = regexp.MustCompile(`"(\.(?:inbox|in-flight|responded|results|dead-letter|events|costs|scheduled|launch|notif|woken|entry|run|init|exit)[a-z.-]*|\.consumer-)"`)

// The reference has each file that the code keeps beside an inbox.
func TestReferenceHasEachFile(t *testing.T) {
	files, found := section(t, "docs/reference.md", "## Files"), inShipped(t, stateFile)
	require.Greater(t, len(found), 15)
	for name := range found {
		assert.True(t, strings.Contains(files, "`"+name), "docs/reference.md lacks %s", name)
	}
}

// inShipped returns what the first group of a pattern matches in the code that is shipped.
func inShipped(t *testing.T, pattern *regexp.Regexp) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, room := range []string{"inbox", "internal", "orchestrate", "recover"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testing" || d.Name() == "testdata"):
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, m := range pattern.FindAllSubmatch(text, -1) {
				found[string(m[1])] = true
			}
			return err
		}))
	}
	return found
}

// stateWord is why nothing moves, in a word, as internal/see declares it.
var stateWord = regexp.MustCompile(`State = "([a-z ]+)"`)

// exits is what a verb's help says of its exit statuses.
var exits = regexp.MustCompile(`(?s)\nExit status: (.*)$`)

// The reference has each exit status that a verb's help names, beside 0, 1 and 128+n, with the name of that verb.
func TestReferenceHasEachExitStatus(t *testing.T) {
	rows, checked := section(t, "docs/reference.md", "## Exit status"), 0
	h := helps{}
	for _, v := range verbs(t) {
		m := exits.FindStringSubmatch(h.of(t, "heartbeat", v))
		if !assert.NotNil(t, m, v) {
			continue
		}
		for _, status := range regexp.MustCompile(`\b(3|75|78|124) `).FindAllStringSubmatch(m[1], -1) {
			row := regexp.MustCompile(`(?m)^\| ` + status[1] + ` \|.*$`).FindString(rows)
			assert.Regexp(t, "`"+v+"[ `]|`[a-z]+ --wait`, `"+v+"`", row, "docs/reference.md, status %s lacks %s", status[1], v)
			checked++
		}
	}
	assert.Greater(t, checked, 8)
}

// json.md has each word that status may print as the state.
func TestJSONHasEachState(t *testing.T) {
	words := stateWord.FindAllStringSubmatch(read(t, "internal/see/explain.go"), -1)
	require.Greater(t, len(words), 20)
	said := section(t, "docs/json.md", "### `status`")
	for _, m := range words {
		assert.True(t, strings.Contains(said, "`"+m[1]+"`"), "docs/json.md lacks the state %q", m[1])
	}
}

// figure is a member of what metrics prints, which is the metric's name, too.
var figure = regexp.MustCompile("json:\"([a-z_]+)")

// json.md has each figure of metrics.
func TestJSONHasEachFigure(t *testing.T) {
	figures := figure.FindAllStringSubmatch(read(t, "internal/command/metrics/figures.go"), -1)
	require.Greater(t, len(figures), 20)
	said := section(t, "docs/json.md", "### `metrics`")
	for _, m := range figures {
		assert.True(t, strings.Contains(said, "`"+m[1]+"`"), "docs/json.md lacks the figure %s", m[1])
	}
}
