package settings_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

// file writes a settings file in a directory of its own and returns its path.
func file(t *testing.T, contents string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(path, []byte(contents), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// alone asserts that path's directory holds nothing else, such as a temporary file.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func change(t *testing.T, want bool, edit func(string, settings.Wiring, settings.Links) settings.Edit, path string) {
	t.Helper()
	changed, err := edit(path, wiring(), settings.FollowLinks).Write()
	require.NoError(t, err)
	assert.Equal(t, want, changed)
}

func TestFileRoundTrip(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o755} {
		x := documents["tabs"]
		path := file(t, x, mode)
		change(t, true, settings.InstallFile, path)
		assert.Equal(t, install(t, x, wiring()), contents(t, path))
		change(t, false, settings.InstallFile, path)
		assert.Equal(t, mode, modeOf(t, path))
		assert.Equal(t, mode, modeOf(t, path+".before-heartbeat"))
		assert.Equal(t, x, contents(t, path+".before-heartbeat"))
		change(t, true, settings.UninstallFile, path)
		change(t, false, settings.UninstallFile, path)
		assert.Equal(t, x, contents(t, path))
		assert.Equal(t, mode, modeOf(t, path))
		alone(t, path)
	}
}

func TestFileIsMadeAndRemoved(t *testing.T) {
	project := t.TempDir()
	path, err := settings.Path(settings.Local, filepath.Join(project, "new"), "", "")
	require.NoError(t, err)
	change(t, false, settings.UninstallFile, path)
	assert.NoDirExists(t, filepath.Join(project, "new"))

	change(t, true, settings.InstallFile, path)
	assert.Equal(t, install(t, "", wiring()), contents(t, path))
	assert.Equal(t, fs.FileMode(0o600), modeOf(t, path))
	assert.Equal(t, fs.ModeDir|0o700, modeOf(t, filepath.Dir(path)))
	assert.Equal(t, fs.ModeDir|0o700, modeOf(t, filepath.Dir(filepath.Dir(path))))
	change(t, true, settings.UninstallFile, path)
	assert.NoDirExists(t, filepath.Join(project, "new"))
	change(t, false, settings.UninstallFile, path)

	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	change(t, true, settings.InstallFile, path)
	change(t, true, settings.UninstallFile, path)
	assert.DirExists(t, filepath.Dir(path), "it was there before")
	require.NoError(t, os.Remove(filepath.Dir(path)))
	change(t, true, settings.InstallFile, path)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "mine"), nil, 0o600))
	change(t, true, settings.UninstallFile, path)
	assert.FileExists(t, filepath.Join(filepath.Dir(path), "mine"))
}

func TestFileThatIsEmpty(t *testing.T) {
	path := file(t, "", 0o640)
	change(t, false, settings.UninstallFile, path)
	change(t, true, settings.InstallFile, path)
	assert.Equal(t, fs.FileMode(0o640), modeOf(t, path))
	change(t, true, settings.UninstallFile, path)
	assert.Empty(t, contents(t, path))
	assert.Equal(t, fs.FileMode(0o640), modeOf(t, path))
}

func TestFileBehindASymbolicLink(t *testing.T) {
	target := file(t, "{\"a\":1}", 0o640)
	dir := t.TempDir()
	middle, link := filepath.Join(dir, "middle"), filepath.Join(dir, "settings.json")
	require.NoError(t, os.Symlink(target, middle))
	require.NoError(t, os.Symlink("middle", link))

	change(t, true, settings.InstallFile, link)
	assert.Equal(t, fs.ModeSymlink, modeOf(t, link).Type())
	assert.Equal(t, install(t, `{"a":1}`, wiring()), contents(t, target))
	assert.Equal(t, fs.FileMode(0o640), modeOf(t, target))
	change(t, true, settings.UninstallFile, link)
	assert.Equal(t, `{"a":1}`, contents(t, target))

	require.NoError(t, os.WriteFile(target, nil, 0o600))
	change(t, true, settings.InstallFile, link)
	change(t, true, settings.UninstallFile, link)
	assert.Empty(t, contents(t, link), "the link does not come to lead nowhere")
	require.NoError(t, os.WriteFile(target, []byte(install(t, "", wiring())), 0o600)) // written by an earlier release
	change(t, true, settings.UninstallFile, link)
	assert.Equal(t, "{}\n", contents(t, link), "nor here")

	require.NoError(t, os.Remove(target))
	for _, edit := range []func(string, settings.Wiring, settings.Links) settings.Edit{settings.InstallFile, settings.UninstallFile} {
		_, err := edit(link, wiring(), settings.FollowLinks).Write()
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, err, link+" is a symbolic link to nowhere")
	}
}

func TestFileInASymlinkedDirectory(t *testing.T) {
	real, dir := t.TempDir(), filepath.Join(t.TempDir(), ".claude")
	require.NoError(t, os.Symlink(real, dir))
	change(t, true, settings.InstallFile, filepath.Join(dir, "settings.json"))
	assert.FileExists(t, filepath.Join(real, "settings.json"))
	change(t, true, settings.UninstallFile, filepath.Join(dir, "settings.json"))
	assert.NoFileExists(t, filepath.Join(real, "settings.json"))
}

func TestFileThatMustNotBeTouched(t *testing.T) {
	x := `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"8"}}`
	path := file(t, x, 0o600)
	changed, err := settings.InstallFile(path, wiring(), settings.RefuseLinks).Write()
	assert.False(t, changed)
	assert.ErrorContains(t, err, "settings "+path+": env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP at line 1 is \"8\"")
	assert.Equal(t, x, contents(t, path))
	alone(t, path)
}

func TestFileReadOnly(t *testing.T) {
	path := file(t, "{}", 0o444)
	_, err := settings.InstallFile(path, wiring(), settings.RefuseLinks).Write()
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.ErrorContains(t, err, "is read-only (mode 0444): make it writable or choose another scope")
	assert.Equal(t, "{}", contents(t, path))
	change(t, false, settings.UninstallFile, path)
}

func TestFileForbidden(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read and write everything")
	}
	path := file(t, "{}", 0o200)
	_, err := settings.InstallFile(path, wiring(), settings.RefuseLinks).Write()
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.ErrorContains(t, err, "settings: open "+path)

	path = file(t, "{}", 0o600)
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
	_, err = settings.InstallFile(path, wiring(), settings.RefuseLinks).Write()
	assert.ErrorContains(t, err, "permission denied")
	assert.Equal(t, "{}", contents(t, path))

	_, err = settings.InstallFile(filepath.Join(filepath.Dir(path), "sub", "settings.json"), wiring(), settings.RefuseLinks).Write()
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestFileOfAnotherKind(t *testing.T) {
	dir := t.TempDir()
	_, err := settings.InstallFile(dir, wiring(), settings.RefuseLinks).Write()
	assert.ErrorContains(t, err, dir+" is not a regular file")

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = settings.InstallFile(pipe, wiring(), settings.RefuseLinks).Write()
	assert.ErrorContains(t, err, pipe+" is not a regular file")

	under := filepath.Join(file(t, "{}", 0o600), "settings.json")
	_, err = settings.InstallFile(under, wiring(), settings.RefuseLinks).Write()
	assert.ErrorContains(t, err, "not a directory")
}

func TestFileChangedMeanwhile(t *testing.T) {
	path := file(t, "{}", 0o600)
	settings.BeforeWrite(t, func() { require.NoError(t, os.WriteFile(path, []byte(`{"b":2}`), 0o600)) })
	changed, err := settings.InstallFile(path, wiring(), settings.RefuseLinks).Write()
	assert.False(t, changed)
	require.ErrorIs(t, err, settings.ErrChanged)
	assert.Equal(t, `{"b":2}`, contents(t, path))
	alone(t, path)
}

// A repository may contain a link to its user's settings.
func TestFileBehindALinkIsRefused(t *testing.T) {
	target := file(t, "{}", 0o600)
	link := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.Symlink(target, link))
	project := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Dir(target), filepath.Join(project, ".claude")))
	for _, edit := range []func(string, settings.Wiring, settings.Links) settings.Edit{settings.InstallFile, settings.UninstallFile} {
		for path, through := range map[string]string{
			link: link, filepath.Join(project, ".claude", "settings.json"): filepath.Join(project, ".claude"),
		} {
			changed, err := edit(path, wiring(), settings.RefuseLinks).Write()
			assert.False(t, changed)
			assert.ErrorContains(t, err, through+" is a symbolic link, and "+target+" would be edited: name that file, or say with --follow-links")
		}
	}
	assert.Equal(t, "{}", contents(t, target))
}

func TestRootKeepsOwnerGroupAndMode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	owner := func(path string) (uid, gid uint32) {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		st := info.Sys().(*syscall.Stat_t)
		return st.Uid, st.Gid
	}
	path := file(t, "{}", 0o640)
	require.NoError(t, os.Chown(path, 65501, 65502))
	change(t, true, settings.InstallFile, path)
	uid, gid := owner(path)
	assert.EqualValues(t, 65501, uid)
	assert.EqualValues(t, 65502, gid)
	assert.Equal(t, fs.FileMode(0o640), modeOf(t, path))

	project := t.TempDir()
	require.NoError(t, os.Chown(project, 65501, 65502))
	link := filepath.Join(t.TempDir(), "link") // root's own link to it
	require.NoError(t, os.Symlink(project, link))
	for _, dir := range []string{project, link} {
		path = filepath.Join(dir, "a"+filepath.Base(dir), ".claude", "settings.json")
		change(t, true, settings.InstallFile, path)
		for ; path != dir; path = filepath.Dir(path) {
			uid, gid := owner(path)
			assert.EqualValues(t, 65501, uid, path)
			assert.EqualValues(t, 65502, gid, path)
		}
	}
}

// Of several that write at once, none undoes what another wrote.
func TestWritesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			w := settings.Blocking("/opt/heartbeat-stop", []string{"--inbox", fmt.Sprintf("/q%d/inbox.jsonl", i)}, 0)
			for {
				_, err := settings.InstallFile(path, w, settings.RefuseLinks).Write()
				if errors.Is(err, settings.ErrChanged) {
					continue
				}
				assert.NoError(t, err)
				return
			}
		})
	}
	all.Wait()
	for i := range 8 {
		assert.Contains(t, contents(t, path), fmt.Sprintf("/q%d/inbox.jsonl", i))
	}
}

// What an edit leaves that was killed right before it replaced the file is gone after the next edit.
func TestAKilledEditLeavesNothing(t *testing.T) {
	path := file(t, "{}", 0o644)
	require.NoError(t, os.WriteFile(path+".heartbeat-tmp", []byte(`{"hooks":`), 0o600))
	change(t, true, settings.InstallFile, path)
	change(t, true, settings.UninstallFile, path)
	assert.Equal(t, "{}", contents(t, path))
	assert.EqualValues(t, 0o644, modeOf(t, path))
	alone(t, path)
}
