package watch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// write makes a file with its folders.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// committed is an inbox of that name with a commit.
func committed(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	_, err = box.Append(t.Context(), inbox.Message{Text: "text"}, 0)
	require.NoError(t, err)
}

// below are the paths without the root.
func below(root string, paths []string) (all []string) {
	for _, path := range paths {
		all = append(all, strings.TrimPrefix(path, root+"/"))
	}
	return all
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "plain/inbox.jsonl"), "hello\n")
	write(t, filepath.Join(root, "other/data.jsonl"), "no inbox\n")
	committed(t, filepath.Join(root, "deep/down/below/jobs.jsonl"))
	committed(t, filepath.Join(root, "gone/inbox.jsonl"))
	require.NoError(t, os.Remove(filepath.Join(root, "gone/inbox.jsonl")))
	write(t, filepath.Join(root, ".hidden/inbox.jsonl"), "")
	write(t, filepath.Join(root, "project/node_modules/x/inbox.jsonl"), "")
	write(t, filepath.Join(root, "broken/.inbox-journal"), "not a journal\n")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "fifo"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo/inbox.jsonl"), 0o600))
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "inbox.jsonl"), "")
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(root, "link")))

	want := []string{"broken/inbox.jsonl", "deep/down/below/jobs.jsonl", "fifo/inbox.jsonl", "gone/inbox.jsonl", "plain/inbox.jsonl"}
	paths, failed, notes := FindInboxes([]string{root})
	assert.Equal(t, want, below(root, paths))
	assert.Empty(t, append(failed, notes...))

	write(t, filepath.Join(root, "new/inbox.jsonl"), "")
	require.NoError(t, os.RemoveAll(filepath.Join(root, "plain")))
	paths, _, _ = FindInboxes([]string{root})
	assert.Contains(t, below(root, paths), "new/inbox.jsonl")
	assert.NotContains(t, below(root, paths), "plain/inbox.jsonl")
}

func TestRoots(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a/inbox.jsonl"), "")
	write(t, filepath.Join(root, "b/jobs.jsonl"), "")
	require.NoError(t, os.Symlink(filepath.Join(root, "a"), filepath.Join(root, "link")))
	for name, c := range map[string]struct {
		roots []string
		paths []string
		notes string
	}{
		"a file":             {[]string{"b/jobs.jsonl"}, []string{"b/jobs.jsonl"}, ""},
		"not there yet":      {[]string{"b/new.jsonl"}, []string{"b/new.jsonl"}, ""},
		"nothing":            {[]string{"c"}, nil, "no such file"},
		"twice":              {[]string{"a", "."}, []string{"a/inbox.jsonl"}, ""},
		"a link to a folder": {[]string{"link"}, []string{"link/inbox.jsonl"}, ""},
		"one without":        {[]string{"a", "b"}, []string{"a/inbox.jsonl"}, "no inbox is in "},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, r := range c.roots {
				all = append(all, filepath.Join(root, r))
			}
			paths, failed, notes := FindInboxes(all)
			notes = append(notes, failed...)
			assert.Equal(t, c.paths, below(root, paths))
			if c.notes == "" {
				assert.Empty(t, notes)
			} else {
				assert.Contains(t, strings.Join(notes, "; "), c.notes)
			}
		})
	}
}

// A folder that this user may not read is counted, and the others are found.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "a/inbox.jsonl"), "")
	write(t, filepath.Join(root, "b/inbox.jsonl"), "")
	require.NoError(t, os.Chmod(filepath.Join(root, "b"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "b"), 0o700) })
	paths, failed, notes := FindInboxes([]string{root})
	assert.Empty(t, failed)
	assert.Equal(t, []string{"a/inbox.jsonl"}, below(root, paths))
	assert.Equal(t, []string{"1 folder cannot be read by this user"}, notes)
}
