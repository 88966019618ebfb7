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

// verbs are those that heartbeat's help lists, but for the commands that stand beside it.
func verbs(t *testing.T) (all []string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, "heartbeat"), "help").Output()
	require.NoError(t, err)
	for _, m := range items(string(out), verbTitle) {
		if !slices.Contains([]string{"launch", "host", "nats", "hook"}, m.name) {
			all = append(all, m.name)
		}
	}
	require.Greater(t, len(all), 30)
	return all
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
