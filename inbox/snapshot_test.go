package inbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// files maps a directory's file names to their content.
type files map[string]string

func snapshot(t testing.TB, box *inbox.Inbox) files {
	t.Helper()
	all := files{}
	dir := filepath.Dir(box.Path())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all[e.Name()] = read(t, filepath.Join(dir, e.Name()))
	}
	return all
}

// restore restores the directory. It leaves an unchanged inbox alone, since its times count.
func restore(t testing.TB, box *inbox.Inbox, all files) {
	t.Helper()
	now := snapshot(t, box)
	for name := range now {
		if _, ok := all[name]; !ok {
			require.NoError(t, os.Remove(beside(box, name)))
		}
	}
	for name, content := range all {
		if was, ok := now[name]; !ok || was != content {
			write(t, beside(box, name), content)
		}
	}
}
