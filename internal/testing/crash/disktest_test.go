package crash_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{
		"append": func() int { return status(appendTwice(os.Args[1])) },
		"echo":   echo,
		"exit":   func() int { return 7 },
	})
}

func status(err error) int {
	if err != nil {
		println(err.Error())
		return 1
	}
	return 0
}

// appendTwice makes a log in dir: create, write, sync, sync of the directory,
// then a second write and sync; then it publishes a cursor, which takes away
// the old temporary file first.
func appendTwice(dir string) error {
	f, _, err := disk.OpenAppend(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer f.Close()
	for i, text := range []string{"first\n", "second\n"} {
		_, err := f.Append([]byte(text))
		err = errors.Join(err, f.Sync())
		if i == 0 && err == nil {
			err = disk.SyncDir(dir)
		}
		if err != nil {
			return err
		}
		crash.Promise(text)
	}
	return disk.Publish(filepath.Join(dir, "cursor"), []byte("13"), true)
}

// appendOps are the kinds of call that appendTwice makes.
var appendOps = []disk.Kind{
	disk.OpCreate, disk.OpWrite, disk.OpSync, disk.OpSyncDir, disk.OpWrite, disk.OpSync,
	disk.OpRemove, disk.OpCreate, disk.OpWrite, disk.OpSync, disk.OpRename, disk.OpSyncDir,
}

func kinds(ops []disk.Op) []disk.Kind {
	var kinds []disk.Kind
	for _, op := range ops {
		kinds = append(kinds, op.Kind)
	}
	return kinds
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(b)
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

func TestRecord(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cursor", "0")
	rec := crash.Record(t, dir, func() { require.NoError(t, appendTwice(dir)) })

	assert.Equal(t, appendOps, kinds(rec.Ops))
	assert.Equal(t, disk.Op{Kind: disk.OpWrite, Path: filepath.Join(dir, "log"), Offset: -1, Data: []byte("first\n")}, rec.Ops[1])
	assert.Equal(t, map[string]string{"cursor": "0"}, rec.Before.Files())
	assert.Equal(t, map[string]string{"cursor": "13", "log": "first\nsecond\n"}, rec.After.Files())
	assert.Empty(t, rec.Promised(3))
	assert.Equal(t, []string{"first\n"}, rec.Promised(4))
	assert.Equal(t, []string{"first\n", "second\n"}, rec.Promised(len(rec.Ops)))
	assert.Nil(t, disk.TestOnlyObserver, "the observer must be gone")
}

func TestRecordCopiesData(t *testing.T) {
	dir := t.TempDir()
	rec := crash.Record(t, dir, func() {
		f, _, err := disk.OpenWrite(filepath.Join(dir, "f"))
		require.NoError(t, err)
		b := []byte("old")
		require.NoError(t, f.WriteAt(b, 0))
		copy(b, "new")
		require.NoError(t, f.Close())
	})
	assert.Equal(t, "old", string(rec.Ops[1].Data))
}
