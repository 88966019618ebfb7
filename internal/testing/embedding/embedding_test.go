// Package embedding tests that other programs can use the queue as a library, and that the
// module can be given another path.
package embedding

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
	return string(out)
}

// A program of another module builds without a network, and works. It links no more modules
// than the queue itself needs.
func TestAnotherModule(t *testing.T) {
	dir := filepath.Join(root(t), "testdata/embedding")
	assert.Equal(t, "job-1: Tom, Kit and Ada\n", run(t, dir, "go", "run", "."))
	modules := strings.Fields(run(t, dir, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "."))
	slices.Sort(modules)
	assert.Equal(t, []string{"github.com/fsnotify/fsnotify", "github.com/natefinch/atomic", "golang.org/x/sys", "heartbeat"}, slices.Compact(modules))
}

// copied is this tree, committed, in another place.
func copied(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	from, dir := root(t), t.TempDir()
	files, err := exec.Command("git", "-C", from, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("this is no checkout")
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		require.NoError(t, err)
		to := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
		require.NoError(t, os.WriteFile(to, content, 0o700))
	}
	run(t, dir, "git", "init", "-q")
	run(t, dir, "git", "add", "-A")
	run(t, dir, "git", "-c", "user.name=t", "-c", "user.email=t@example.test", "commit", "-q", "-m", "x")
	return dir
}

func TestSetModulePath(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds everything anew")
	}
	dir := copied(t)
	refuse := func(says string, args ...string) {
		t.Helper()
		cmd := exec.Command("scripts/set-module-path", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.Error(t, err, args)
		assert.Contains(t, string(out), says)
		assert.Empty(t, run(t, dir, "git", "diff"))
	}
	for _, path := range []string{"", "/x", "x/", "a b", "a//b", "a/../b", "$(id)", "a\nb", "-x", "x'y", "ä"} {
		refuse("is not the path of a module", path)
	}
	refuse("one path is needed")
	refuse("one path is needed", "a", "b")
	assert.Contains(t, run(t, dir, "scripts/set-module-path", "heartbeat"), "is heartbeat already")

	const path = "example.test/team/heartbeat"
	run(t, dir, "scripts/set-module-path", path)
	diff := run(t, dir, "git", "diff")
	require.NotEmpty(t, diff)
	assert.Equal(t, path+"\n", run(t, dir, "go", "list", "-m"))
	assert.NotRegexp(t, `(?m)^\+.*"heartbeat/(inbox|internal)`, diff)
	if long.Wanted() {
		run(t, dir, "go", "vet", "./...")
		run(t, dir, "go", "test", "./internal/testing/walls")
		assert.Equal(t, "job-1: Tom, Kit and Ada\n", run(t, filepath.Join(dir, "testdata/embedding"), "go", "run", "."))
	}

	// Not beside other changes, and back.
	cmd := exec.Command("scripts/set-module-path", "heartbeat")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "not committed")
	run(t, dir, "git", "-c", "user.name=t", "-c", "user.email=t@example.test", "commit", "-q", "-a", "-m", "y")
	run(t, dir, "scripts/set-module-path", "heartbeat")
	assert.Empty(t, run(t, dir, "git", "diff", "HEAD~1"))
}
