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
	// MaxFile is the largest settings file that is read, in bytes.
	MaxFile = 16 << 20
	// beforeName is what the name of a file ends with that is kept as it was.
	beforeName = ".before-heartbeat"
)

// Links is how a settings file behind a symbolic link is treated.
type Links bool

const (
	// RefuseLinks edits only the file that was named: a repository may contain a link to any other file.
	RefuseLinks Links = false
	// FollowLinks edits the file that the link leads to.
	FollowLinks Links = true
)

// Edit is a change of a file that is a person's, such as settings, and can be taken back. Before heartbeat's first change
// the file as it is is kept beside it. Once nothing of heartbeat's is left in it, and it is what it was but for white
// space, that very file is put back. If a person has changed it since, what heartbeat wrote is taken out, and the rest stays.
type Edit struct {
	Path  string
	Links Links
	Name  string // in errors
	// Change returns the file as it is to be. before is how it was before heartbeat's first change, nil if there was no
	// file, or if that is not known.
	Change func(file, before []byte) ([]byte, error)
	// Holds reports whether something of heartbeat's is in the file.
	Holds func(file []byte) bool
	// Same reports whether two files are the same but for white space. Nil is one with nothing in it.
	Same func(a, b []byte) bool
}

// InstallFile is the edit that applies Install to the settings file at path.
func InstallFile(path string, w Wiring, links Links) Edit { return w.file(path, links, w.install) }

// UninstallFile is the edit that takes out what [InstallFile] put in: the hooks of w's inbox, and the variable if
// no other inbox needs it. Only the inbox and the base name of Command count.
func UninstallFile(path string, w Wiring, links Links) Edit { return w.file(path, links, w.uninstall) }

func (w Wiring) file(path string, links Links, change func(file, before []byte) ([]byte, error)) Edit {
	return Edit{Path: path, Links: links, Name: "settings " + path, Change: change, Holds: w.holds, Same: same}
}

// holds reports whether a settings file has a hook of heartbeat's, of any inbox.
func (w Wiring) holds(file []byte) bool {
	d, err := parse(file)
	if err != nil {
		return false
	}
	hooks, _ := d.hooks(w.Command, w.Line)
	return slices.ContainsFunc(hooks, func(h wired) bool { return h.is(w.Inbox()) || h.neighbors(w.Inbox()) })
}

// plan is an edit of a file as it was found.
type plan struct {
	target      string
	file, after []byte
	holds       bool // something of heartbeat's is in it then
	first       bool // there was not
}

// Look returns the file as it is, and as the edit would have it; nil for no file. It writes nothing.
func (e Edit) Look() (file, after []byte, err error) {
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
	// A link does not come to lead nowhere.
	if held && !p.holds && (before != nil || !isLink(e.Path)) && e.Same(p.after, before) {
		p.after = before
	}
	return p, nil
}

// Write applies the change, and reports whether it changed the file.
//
// A missing file is created with mode 0600, missing directories with mode 0700. An existing file keeps its owner, group
// and mode. Root gives what it creates to the owner of the directory. A file that was created is removed once nothing is
// left in it, and so is a directory.
//
// After a nil error the new file survives a power loss. After an error the file is the old one, unless changed is true:
// then the new one is in place, but a crash of the machine may undo that.
func (e Edit) Write() (changed bool, err error) {
	p, err := e.plan()
	if err != nil {
		return false, err
	}
	kept := p.target + beforeName
	if !bytes.Equal(p.file, p.after) || (p.file == nil) != (p.after == nil) {
		if changed, err = p.replace(kept); err != nil {
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

// replace keeps the file, if this is the first change, and replaces it.
func (p plan) replace(kept string) (changed bool, err error) {
	if p.first {
		if err = writable(p.target); err == nil && p.file == nil {
			err = disk.Remove(kept) // of an earlier file
		} else if err == nil {
			err = write(kept, p.target, p.file, 0o600)
		}
		if err != nil {
			return false, fmt.Errorf("keep the file as it is: %w", err)
		}
	}
	changed, err = Replace(p.target, p.file, p.after, 0o600)
	if err != nil && p.first && !changed {
		_ = disk.Remove(kept)
	}
	return changed, err
}

// Read reads the file at path as an edit does, nil if there is none. Where an edit would refuse a link, so does Read.
func Read(path string, links Links) ([]byte, error) {
	_, text, err := open(path, links)
	return text, err
}

// open returns where the file is that path leads to, and what is in it.
func open(path string, links Links) (target string, text []byte, err error) {
	target, err = resolve(path)
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

// resolve follows symbolic links to the file itself. The file need not exist, unless a link leads to it.
func resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	if isLink(path) {
		return "", fmt.Errorf("%s is a symbolic link to nowhere: make the file it leads to, or remove it: %w", path, err)
	}
	return path, nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// check refuses a path that is a link, or whose .claude directory is one.
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
