// Package finder finds inboxes in folders.
package finder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

const (
	// usual is the name of an inbox whose folder has no state yet. One of another name
	// is found once heartbeat has committed to it.
	usual = "inbox.jsonl"
	// journal is there once anything was committed.
	journal = ".inbox-journal"

	maxDepth   = 4     // folders below a root
	maxFolders = 5_000 // in all
	maxNames   = 10_000

	// coarse is more than the step of any file system's times: a name that came within
	// it may leave the folder's time as it is.
	coarse = 3 * time.Second
)

// Finder finds inboxes below its roots, again and again. A folder that has not changed
// is not read again.
type Finder struct {
	roots []string
	known map[string]*folder
	left  int // folders that may still be read
}

// folder is what was in a folder when it was read.
type folder struct {
	seen     stamp
	inbox    string // its path, empty for none
	unsure   bool   // its name may change without a change of the folder
	children []string
	err      error
}

// stamp changes whenever a name in the folder comes or goes.
type stamp struct {
	dev, ino uint64
	mtime    int64
}

// New returns a finder for these folders. A root may also be an inbox itself: a file,
// or a name that does not exist yet in a folder that does.
func New(roots ...string) *Finder { return &Finder{roots: roots, known: map[string]*folder{}} }

// Find returns the paths of the inboxes, sorted, each once. failed are sentences about
// roots that could not be searched, and notes about what was left out.
func (f *Finder) Find() (paths, failed, notes []string) {
	before := f.known
	f.known, f.left = make(map[string]*folder, len(before)), maxFolders
	found := map[string]bool{}
	unreadable := 0
	for _, root := range f.roots {
		abs, err := filepath.Abs(root)
		if err != nil {
			failed = append(failed, err.Error())
			continue
		}
		if _, err := disk.StatDir(abs); err != nil {
			if why := inboxOrNote(abs, err); why != "" {
				failed = append(failed, why)
				continue
			}
			found[abs] = true
			continue
		}
		if err := f.walk(abs, maxDepth, before, found, &unreadable); err != nil {
			failed = append(failed, fmt.Sprintf("look for inboxes in %s: %v", abs, err))
		} else if len(f.roots) > 1 && !anyIn(found, abs) {
			notes = append(notes, "no inbox is in "+abs)
		}
	}
	if unreadable > 0 {
		notes = append(notes, words.Count(unreadable, "folder", "folders")+" cannot be read by this user")
	}
	if f.left <= 0 {
		notes = append(notes, fmt.Sprintf("only the first %d folders were searched: name the inboxes' own folders", maxFolders))
	}
	for path := range found {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, failed, notes
}

// anyIn reports whether an inbox was found in a folder, or below it.
func anyIn(found map[string]bool, dir string) bool {
	for path := range found {
		if strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// inboxOrNote says why a root that is no folder is no inbox either, or nothing.
func inboxOrNote(path string, err error) string {
	if _, file := disk.StatFile(path); file == nil {
		return "" // opening it says what is wrong with it
	}
	if errors.Is(err, fs.ErrNotExist) && filepath.Ext(path) == ".jsonl" {
		if _, above := disk.StatDir(filepath.Dir(path)); above == nil {
			return "" // the first entry creates it
		}
	}
	return fmt.Sprintf("look for inboxes in %s: %v", path, err)
}

func (f *Finder) walk(dir string, depth int, before map[string]*folder, found map[string]bool, unreadable *int) error {
	if f.left--; f.left < 0 || f.known[dir] != nil {
		return nil
	}
	info, err := disk.StatName(dir)
	if depth == maxDepth { // a person named it: it may be a link
		info, err = disk.StatDir(dir)
	}
	if err != nil || !info.IsDir {
		return err
	}
	seen := stamp{info.Dev, info.Ino, info.Mtime}
	now := before[dir]
	if now == nil || now.seen != seen || now.unsure || now.err != nil {
		now = read(dir, depth)
		now.seen = seen
		if time.Since(time.Unix(0, info.Mtime)) < coarse {
			now.unsure = true
		}
	}
	f.known[dir] = now
	if now.inbox != "" {
		found[now.inbox] = true
	}
	if now.err != nil {
		*unreadable++
		return now.err
	}
	for _, child := range now.children {
		_ = f.walk(child, depth-1, before, found, unreadable) // it is counted
	}
	return nil
}

// read looks into one folder.
func read(dir string, depth int) *folder {
	names, _, err := disk.Names(resolved(dir, depth), maxNames)
	if err != nil {
		return &folder{err: err}
	}
	f := &folder{}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(dir, name)
		switch {
		case name == journal:
			if f.inbox, f.unsure = named(dir); f.inbox == "" && !slices.Contains(names, usual) {
				f.inbox = filepath.Join(dir, usual) // looking at it says what is wrong
			}
		case name == usual && f.inbox == "":
			f.inbox = path
		case depth > 0 && !strings.HasPrefix(name, ".") && name != "node_modules":
			if info, err := disk.StatName(path); err == nil && info.IsDir {
				f.children = append(f.children, path)
			}
		}
	}
	return f
}

// resolved is where a root leads that is a link.
func resolved(dir string, depth int) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil && depth == maxDepth {
		return real
	}
	return dir
}

// named is the inbox that a folder's journal names. It is unsure where the journal says
// nothing yet.
func named(dir string) (path string, unsure bool) {
	name, err := inbox.Named(dir)
	if err != nil || name == "" {
		return "", true
	}
	return filepath.Join(dir, name), false
}
