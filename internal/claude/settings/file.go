package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/internal/disk"
)

const (
	MaxFile = 16 << 20 // the size in bytes of the largest settings file that is read
	// beforeName is the suffix of the kept copy of a file.
	beforeName = ".before-heartbeat"
)

// Links is how to treat a settings file behind a symbolic link.
type Links bool

const (
	RefuseLinks Links = false // edits only the named file: a repository may contain a link to any other file
	FollowLinks Links = true  // edits the link's target
)

// Edit is a reversible change of a file that belongs to a person, such as settings. Before heartbeat's first change a
// copy of the file is kept beside it. Once nothing of heartbeat is left and the file differs from the copy in layout at
// most, the copy is put back, so a forged copy adds nothing to the file. If a person has changed the file since,
// heartbeat's additions are removed, with the objects and arrays that this leaves empty and that were not there before.
// Earlier releases kept no copy; what they wrote is removed as well.
type Edit struct {
	Path  string
	Links Links
	Name  string // in errors
	// Change returns the edited file. before is the file before heartbeat's first change, or nil if there was no file
	// or it is not known.
	Change func(file, before []byte) ([]byte, error)
	Holds  func(file []byte) bool // reports whether the file contains anything of heartbeat
	// Same reports whether two files differ in layout at most. A nil file counts as empty.
	Same func(a, b []byte) bool
}

// InstallFile returns the edit that applies [Install] to the settings file at path.
func InstallFile(path string, w Wiring, links Links) Edit { return w.file(path, links, w.install) }

// UninstallFile returns the edit that undoes [InstallFile]: it removes the hooks of w's inbox, and the variable if no
// other inbox needs it. Of w only the inbox and the base name of Command count.
func UninstallFile(path string, w Wiring, links Links) Edit { return w.file(path, links, w.uninstall) }

func (w Wiring) file(path string, links Links, change func(file, before []byte) ([]byte, error)) Edit {
	return Edit{Path: path, Links: links, Name: "settings " + path, Change: change, Holds: w.holds, Same: same}
}

// holds reports whether a settings file has a heartbeat hook of any inbox.
func (w Wiring) holds(file []byte) bool {
	_, hooks, _ := parseHooks(file, w)
	return slices.ContainsFunc(hooks, func(h wired) bool { return h.ours || h.anothers })
}

// plan is an edit, computed for the file as it was found.
type plan struct {
	target      string
	file, after []byte
	holds       bool // the edited file contains something of heartbeat
	first       bool // and the file before did not
}

// Preview returns the file as it is, and as the edit would leave it, nil for no file. It writes nothing.
func (e Edit) Preview() (file, after []byte, err error) {
	p, err := e.plan()
	return p.file, p.after, err
}

func (e Edit) plan() (p plan, err error) {
	if p.target, p.file, err = open(e.Path, e.Links); err != nil {
		return p, err
	}
	before, err := read(p.target + beforeName)
	if err != nil {
		return p, fmt.Errorf("settings: the file as it was: %w: move it away", err)
	}
	if p.after, err = e.Change(p.file, before); err != nil {
		return p, fmt.Errorf("%s: %w", e.Name, err)
	}
	held := e.Holds(p.file)
	p.holds = e.Holds(p.after)
	p.first = p.holds && !held
	// A link must not be left dangling.
	if held && !p.holds && (before != nil || !isLink(e.Path)) && e.Same(p.after, before) {
		p.after = before
	}
	return p, nil
}

// Write applies the change, and reports whether it changed the file.
//
// A missing file is created with mode 0600, missing directories with mode 0700. An existing file keeps its owner,
// group and mode. Root gives what it creates to the owner of the directory. A file or directory that heartbeat created
// is removed once it is empty.
//
// After a nil error the new file survives a power loss. After an error the old file is in place, unless changed is
// true: then the new file is in place, but a crash of the machine may undo that.
func (e Edit) Write() (changed bool, err error) {
	p, err := e.plan()
	if err != nil {
		return false, err
	}
	kept := p.target + beforeName
	if !bytes.Equal(p.file, p.after) || (p.file == nil) != (p.after == nil) {
		if changed, err = p.write(kept); err != nil {
			return changed, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	if !p.holds {
		if err = disk.Remove(kept); err == nil && p.after == nil {
			removeMade(filepath.Dir(p.target))
		}
	}
	return changed, err
}

// Read reads the file at path as an edit would, nil if there is none. It refuses the same links.
func Read(path string, links Links) ([]byte, error) {
	_, text, err := open(path, links)
	return text, err
}

// open follows symbolic links to the file itself, and returns its content. The file may be missing, unless a link leads
// to it.
func open(path string, links Links) (target string, text []byte, err error) {
	target, err = filepath.EvalSymlinks(path)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && isLink(path):
		err = fmt.Errorf("%s is a symbolic link to nowhere: make the file it leads to, or remove it: %w", path, err)
	case missing:
		target, err = path, nil
	}
	if err == nil {
		err = links.check(path, target)
	}
	if err == nil {
		text, err = read(target)
	}
	if err != nil {
		return "", nil, fmt.Errorf("settings: %w", err)
	}
	return target, text, nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// check refuses a path that is a link, or whose .claude or .codex directory is one.
func (l Links) check(path, target string) error {
	through := path
	if dir := filepath.Dir(path); !isLink(path) && slices.Contains([]string{".claude", ".codex"}, filepath.Base(dir)) {
		through = dir
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			target = filepath.Join(real, filepath.Base(path))
		}
	}
	if l == FollowLinks || !isLink(through) {
		return nil
	}
	return fmt.Errorf("%s is a symbolic link, and %s would be edited: name that file, or say with --follow-links that it is meant", through, target)
}
