package crash_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

type files = map[string]string

func TestImage(t *testing.T) {
	write := func(name, data string, off int64) disk.Op {
		return disk.Op{Kind: disk.OpWrite, Path: name, Offset: off, Data: []byte(data)}
	}
	op := func(kind disk.Kind, name string) disk.Op { return disk.Op{Kind: kind, Path: name} }
	rename := func(from, to string) disk.Op { return disk.Op{Kind: disk.OpRename, Path: from, To: to} }
	truncate := func(name string, size int64) disk.Op {
		return disk.Op{Kind: disk.OpTruncate, Path: name, Offset: size}
	}
	create, sync, syncDir := disk.OpCreate, disk.OpSync, op(disk.OpSyncDir, ".")

	for _, test := range []struct {
		name                                string
		before                              files
		ops                                 []disk.Op
		worst, all, names, lengths, content files
	}{
		{
			name: "a snapshot is durable", before: files{"a": "old"},
			worst: files{"a": "old"}, all: files{"a": "old"}, names: files{"a": "old"}, lengths: files{"a": "old"}, content: files{"a": "old"},
		},
		{
			name: "create and write", ops: []disk.Op{op(create, "a"), write("a", "new", 0)},
			worst: files{}, all: files{"a": "new"}, names: files{"a": ""}, lengths: files{"a": "\x00\x00\x00"}, content: files{},
		},
		{
			name: "sync keeps content, not the name", ops: []disk.Op{op(create, "a"), write("a", "new", 0), op(sync, "a")},
			worst: files{}, all: files{"a": "new"}, names: files{"a": "new"}, lengths: files{"a": "new"}, content: files{},
		},
		{
			name: "syncdir keeps the name, not content", ops: []disk.Op{op(create, "a"), write("a", "new", 0), syncDir},
			worst: files{"a": ""}, all: files{"a": "new"}, names: files{"a": ""}, lengths: files{"a": "\x00\x00\x00"}, content: files{"a": "new"},
		},
		{
			name: "append and overwrite", before: files{"a": "old"},
			ops:   []disk.Op{write("a", "+", -1), write("a", "+", -1), write("a", "n", 0)},
			worst: files{"a": "old"}, all: files{"a": "nld++"}, names: files{"a": "old"}, lengths: files{"a": "old\x00\x00"}, content: files{"a": "nld++"},
		},
		{
			name: "truncate, then append", before: files{"a": "old\nto"}, ops: []disk.Op{truncate("a", 4), write("a", "new", -1)},
			worst: files{"a": "old\nto"}, all: files{"a": "old\nnew"}, names: files{"a": "old\nto"}, lengths: files{"a": "old\n\x00\x00\x00"}, content: files{"a": "old\nnew"},
		},
		{
			name: "truncate to more", before: files{"a": "o"}, ops: []disk.Op{truncate("a", 2), op(sync, "a")},
			worst: files{"a": "o\x00"}, all: files{"a": "o\x00"}, names: files{"a": "o\x00"}, lengths: files{"a": "o\x00"}, content: files{"a": "o\x00"},
		},
		{
			name: "rename over a file, content not synced", before: files{"a": "old"},
			ops:   []disk.Op{op(create, "t"), write("t", "new", 0), rename("t", "a")},
			worst: files{"a": "old"}, all: files{"a": "new"}, names: files{"a": ""}, lengths: files{"a": "\x00\x00\x00"}, content: files{"a": "old"},
		},
		{
			name: "rename back and forth", before: files{"a": "old"}, ops: []disk.Op{rename("a", "b"), syncDir, rename("b", "a")},
			worst: files{"b": "old"}, all: files{"a": "old"}, names: files{"a": "old"}, lengths: files{"a": "old"}, content: files{"b": "old"},
		},
		{
			name: "remove", before: files{"a": "old"}, ops: []disk.Op{op(disk.OpRemove, "a")},
			worst: files{"a": "old"}, all: files{}, names: files{}, lengths: files{}, content: files{"a": "old"},
		},
		{
			name: "calls that fail or change nothing", before: files{"a": "old"},
			ops: []disk.Op{
				op(create, "a"), op(disk.OpTouch, "a"), op(disk.OpRemove, "x"), rename("x", "a"), rename("a", "a"),
				write("x", "lost", 0), op(sync, "x"),
			},
			worst: files{"a": "old"}, all: files{"a": "old"}, names: files{"a": "old"}, lengths: files{"a": "old"}, content: files{"a": "old"},
		},
		{
			name: "a rename between directories waits for both", before: files{"d/a": "old"},
			ops:   []disk.Op{rename("d/a", "a"), syncDir},
			worst: files{"d/a": "old"}, all: files{"a": "old"}, names: files{"a": "old"}, lengths: files{"a": "old"}, content: files{"d/a": "old"},
		},
		{
			name: "and is there after both", before: files{"d/a": "old"},
			ops:   []disk.Op{rename("d/a", "a"), syncDir, op(disk.OpSyncDir, "d")},
			worst: files{"a": "old"}, all: files{"a": "old"}, names: files{"a": "old"}, lengths: files{"a": "old"}, content: files{"a": "old"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			img := imageOf(t, test.before, test.ops...)
			assert.Equal(t, test.worst, img.Worst().Files(), "worst")
			assert.Equal(t, test.all, img.All().Files(), "all")
			assert.Equal(t, test.names, img.NamesAlone().Files(), "names")
			assert.Equal(t, test.lengths, img.LengthsAlone().Files(), "lengths")
			assert.Equal(t, test.content, img.ContentsAlone().Files(), "contents")
			assert.Equal(t, test.all, img.Files(), "the image itself")

			dir := filepath.Join(t.TempDir(), "fresh")
			require.NoError(t, os.Mkdir(dir, 0o700))
			img.Write(t, dir)
			assert.Equal(t, test.all, crash.Snapshot(t, dir).Files(), "written")
		})
	}
}

// imageOf snapshots files and makes ops, whose paths are below the directory.
func imageOf(t *testing.T, before files, ops ...disk.Op) *crash.Image {
	t.Helper()
	dir := t.TempDir()
	for name, content := range before {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		write(t, dir, name, content)
	}
	img := crash.Snapshot(t, dir)
	for _, op := range ops {
		op.Path = filepath.Join(dir, op.Path)
		if op.To != "" {
			op.To = filepath.Join(dir, op.To)
		}
		require.NoError(t, img.Apply(op))
	}
	return img
}

// TestRandom looks for the mixtures that a test of a crash must meet, and for
// ones that no power loss makes.
func TestRandom(t *testing.T) {
	img := imageOf(t, files{"log": "old\n", "cursor": "0"},
		disk.Op{Kind: disk.OpWrite, Path: "log", Offset: -1, Data: []byte("ab")},
		disk.Op{Kind: disk.OpWrite, Path: "log", Offset: -1, Data: []byte("cd")},
		disk.Op{Kind: disk.OpCreate, Path: "tmp"},
		disk.Op{Kind: disk.OpWrite, Path: "tmp", Data: []byte("1")},
		disk.Op{Kind: disk.OpSync, Path: "tmp"},
		disk.Op{Kind: disk.OpRename, Path: "tmp", To: "cursor"},
	)
	logs, cursors := map[string]int{}, map[string]int{}
	for seed := range uint64(2000) {
		got := img.Random(rand.New(rand.NewPCG(seed, 0))).Files()
		again := img.Random(rand.New(rand.NewPCG(seed, 0))).Files()
		require.Equal(t, got, again, "the same seed gives the same image")
		logs[got["log"]]++
		cursors[got["cursor"]+" "+got["tmp"]]++
	}
	for _, want := range []string{"old\n", "old\nabcd", "old\nab", "old\na", "old\nab\x00\x00", "old\n\x00\x00cd", "old\na\x00cd", "old\n\x00\x00\x00\x00"} {
		assert.Contains(t, logs, want)
	}
	for log := range logs {
		assert.Regexp(t, `^old\n(a|\x00)?(b|\x00)?(c|\x00)?(d|\x00)?$`, log)
	}
	assert.ElementsMatch(t, []string{"0 ", "0 1", "1 "}, sortedKeys(cursors), "tmp was synced, so nothing is ever empty")
}

// TestRandomSectors looks for a long write whose end came and whose start did
// not, and makes sure that it is cut only between sectors of the file.
func TestRandomSectors(t *testing.T) {
	before := make([]byte, 500)
	data := make([]byte, 2000)
	for i := range data {
		data[i] = 'n'
	}
	img := imageOf(t, files{"f": string(before)}, disk.Op{Kind: disk.OpWrite, Path: "f", Offset: -1, Data: data})
	starts := map[int]int{}
	for seed := range uint64(500) {
		got := img.Random(rand.New(rand.NewPCG(seed, 0))).Files()["f"]
		if len(got) == 2500 && got[500] == 0 && got[2499] == 'n' {
			start := 500
			for got[start] == 0 {
				start++
			}
			starts[start]++
		}
	}
	assert.ElementsMatch(t, []int{512, 1024, 1536, 2048}, sortedKeys(starts))
}

func TestSnapshotLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "real", "old")
	require.NoError(t, os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "outside")))
	img := crash.Snapshot(t, dir)
	assert.Equal(t, files{"real": "old", "link": "-> real", "outside": "-> /etc/passwd"}, img.Files())

	require.NoError(t, img.Apply(disk.Op{Kind: disk.OpWrite, Path: dir + "/link", Offset: -1, Data: []byte("+")}))
	assert.Equal(t, "old+", img.Files()["real"])
	assert.ErrorContains(t, img.Apply(disk.Op{Kind: disk.OpSync, Path: dir + "/outside"}), "is outside")

	fresh := t.TempDir()
	img.Write(t, fresh)
	assert.Equal(t, "old+", read(t, fresh, "link"))
}

func TestApplyRefuses(t *testing.T) {
	dir := t.TempDir()
	img := crash.Snapshot(t, dir)
	assert.ErrorContains(t, img.Apply(disk.Op{Kind: disk.OpCreate, Path: dir + "/../x"}), "the modelled directory")
	assert.ErrorContains(t, img.Apply(disk.Op{Kind: "mkdir", Path: dir + "/x"}), `does not know the call "mkdir"`)

	// Another spelling of the same directory is not outside.
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	require.NoError(t, img.Apply(disk.Op{Kind: disk.OpCreate, Path: link + "/x"}))
	assert.Equal(t, files{"x": ""}, img.Files())
}
