package crash

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/disk"
)

// Image is a model of a directory with two sides: what survives a power loss in any
// case, and what running programs see. [Image.Apply] changes the second; only syncs
// change the first.
//
// Names and contents are separate, as on a disk: a name leads to an inode. Names are
// slash-separated paths below the directory. Directories are not modelled; all that
// are needed exist.
type Image struct {
	root    string
	durable map[string]*inode // the names that survive a power loss
	pending []naming          // the changes to names since then, oldest first
	current map[string]*inode // the names that programs see
}

// naming is a change to names: file gets the name to and loses the name from. Either
// may be empty. A power loss keeps or loses a rename as a whole.
type naming struct {
	file         *inode
	from, to     string
	lacksSyncDir map[string]bool // the directories that must still be synced
}

func newNaming(file *inode, from, to string) naming {
	n := naming{file, from, to, map[string]bool{}}
	for _, name := range []string{from, to} {
		if name != "" {
			n.lacksSyncDir[path.Dir(name)] = true
		}
	}
	return n
}

func (n naming) isDurable() bool { return len(n.lacksSyncDir) == 0 }

func (n naming) apply(names map[string]*inode) {
	// A lost earlier change can leave another file under the old name; the
	// rename took away whatever entry was there.
	if n.from != "" {
		delete(names, n.from)
	}
	if n.to != "" {
		names[n.to] = n.file
	}
}

func newImage(root string) *Image {
	return &Image{root: root, durable: map[string]*inode{}, current: map[string]*inode{}}
}

// moved returns a copy, with everything pending, whose directory is root.
func (img *Image) moved(root string) *Image {
	files := map[*inode]*inode{nil: nil}
	file := func(f *inode) *inode {
		if _, ok := files[f]; !ok {
			c := *f
			c.pending = slices.Clone(f.pending)
			c.durable, c.current = slices.Clone(f.durable), slices.Clone(f.current)
			files[f] = &c
		}
		return files[f]
	}
	to := newImage(root)
	for name, f := range img.durable {
		to.durable[name] = file(f)
	}
	for name, f := range img.current {
		to.current[name] = file(f)
	}
	for _, n := range img.pending {
		to.pending = append(to.pending, naming{file(n.file), n.from, n.to, maps.Clone(n.lacksSyncDir)})
	}
	return to
}

// add puts a durable file into an image that has no pending changes.
func (img *Image) add(name string, file *inode) {
	img.durable[name], img.current[name] = file, file
}

// Files returns the names and contents that programs see. The content of a symbolic
// link is "-> " and its target.
func (img *Image) Files() map[string]string {
	files := map[string]string{}
	for name, file := range img.current {
		files[name] = file.String()
	}
	return files
}

// Apply makes one call. A call that would fail, such as renaming a missing file,
// changes nothing; nor does a touch.
func (img *Image) Apply(op disk.Op) error {
	name, err := img.name(op.Path)
	if err != nil {
		return err
	}
	switch op.Kind {
	case disk.OpCreate:
		if img.current[name] == nil {
			img.rename(newNaming(&inode{}, "", name))
		}
	case disk.OpRemove:
		if img.current[name] != nil {
			img.rename(newNaming(nil, name, ""))
		}
	case disk.OpRename:
		to, err := img.name(op.To)
		if err != nil {
			return err
		}
		if file := img.current[name]; file != nil && file != img.current[to] {
			img.rename(newNaming(file, name, to))
		}
	case disk.OpSyncDir:
		img.syncDir(name)
	case disk.OpWrite, disk.OpTruncate, disk.OpPunch, disk.OpSync:
		file, err := img.follow(name)
		if file != nil {
			file.apply(op)
		}
		return err
	case disk.OpTouch, disk.OpNarrow:
	default:
		return fmt.Errorf("crash: the model does not know the call %q on %s", op.Kind, op.Path)
	}
	return nil
}

func (img *Image) rename(n naming) {
	img.pending = append(img.pending, n)
	n.apply(img.current)
}

func (img *Image) syncDir(dir string) {
	for _, n := range img.pending {
		delete(n.lacksSyncDir, dir)
	}
	for len(img.pending) > 0 && img.pending[0].isDurable() {
		img.pending[0].apply(img.durable)
		img.pending = img.pending[1:]
	}
}

// names replays the pending changes that are durable or for which keep is true.
func (img *Image) names(keep func() bool) map[string]*inode {
	names := maps.Clone(img.durable)
	for _, n := range img.pending {
		if n.isDurable() || keep() {
			n.apply(names)
		}
	}
	return names
}

// follow finds the file that a name leads to, through symbolic links.
func (img *Image) follow(name string) (*inode, error) {
	for range 40 { // as many as Linux follows (path_resolution(7))
		file := img.current[name]
		if file == nil || file.link == "" {
			return file, nil
		}
		if path.IsAbs(file.link) {
			return nil, fmt.Errorf("crash: %s is a link to %s, which is outside the modelled directory", name, file.link)
		}
		name = path.Join(path.Dir(name), file.link)
	}
	return nil, fmt.Errorf("crash: too many links at %s", name)
}

// name turns a call's path into a name of the image.
func (img *Image) name(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	if name, ok := below(img.root, abs); ok {
		return name, nil
	}
	// One of the two may go through a symbolic link to the directory.
	root, rootErr := filepath.EvalSymlinks(img.root)
	dir, dirErr := filepath.EvalSymlinks(filepath.Dir(abs))
	if rootErr == nil && dirErr == nil {
		if name, ok := below(root, filepath.Join(dir, filepath.Base(abs))); ok {
			return name, nil
		}
	}
	return "", fmt.Errorf("crash: %s is outside %s, the modelled directory", p, img.root)
}

func below(root, p string) (string, bool) {
	rel, err := filepath.Rel(root, p)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}
