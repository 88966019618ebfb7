package crash

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Snapshot returns the image of a directory as it is, all of it durable, including
// files of others. It leaves out everything but files, links and directories.
func Snapshot(t testing.TB, dir string) *Image {
	t.Helper()
	root, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	img := newImage(root)
	err = filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := load(root, p, entry)
		if file != nil {
			name, _ := below(root, p)
			img.add(name, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func load(root, p string, entry fs.DirEntry) (*inode, error) {
	switch entry.Type() {
	case 0:
		b, err := os.ReadFile(p)
		return newFile(b), err
	case fs.ModeSymlink:
		target, err := os.Readlink(p)
		if inside, ok := below(root, target); ok && err == nil && filepath.IsAbs(target) {
			// Copied elsewhere, the link must not lead back to root.
			from, _ := below(root, filepath.Dir(p))
			target, err = filepath.Rel(from, inside)
		}
		file := newFile(nil)
		file.link = target
		return file, err
	}
	return nil, nil
}

// Write writes the files that programs see into dir, which should be empty, with mode
// 0600.
func (img *Image) Write(t testing.TB, dir string) {
	t.Helper()
	for _, name := range sortedKeys(img.current) {
		p := filepath.Join(dir, name)
		if err := img.current[name].write(p); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *inode) write(p string) error {
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	if f.link != "" {
		return os.Symlink(f.link, p)
	}
	return os.WriteFile(p, f.current, 0o600)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
