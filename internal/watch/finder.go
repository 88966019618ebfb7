package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

const (
	// usual is the name that finds an inbox without state, and that tells nothing. An inbox of another name is found
	// once heartbeat has committed to it.
	usual = "inbox.jsonl"
	// journal exists once anything was committed.
	journal = ".inbox-journal"

	maxDepth    = 4     // folders below a root
	maxSearched = 5_000 // in all
	maxNames    = 10_000
)

type search struct {
	found      map[string]bool
	seen       map[string]bool // folders
	left       int             // how many more folders may be read
	unreadable int
}

// FindInboxes searches folders for inboxes. A root may also be an inbox: a file, or a name that does not exist yet in a
// folder that does. The paths are sorted and unique. failed are sentences about roots that could not be searched,
// and notes about what was left out.
func FindInboxes(roots []string) (paths, failed, notes []string) {
	s := search{found: map[string]bool{}, seen: map[string]bool{}, left: maxSearched}
	for _, root := range roots {
		abs, err := filepath.Abs(root)
		if err != nil {
			failed = append(failed, err.Error())
			continue
		}
		if _, err := disk.StatDir(abs); err != nil {
			if isInbox(abs, err) {
				s.found[abs] = true
			} else {
				failed = append(failed, fmt.Sprintf("look for inboxes in %s: %v", abs, err))
			}
			continue
		}
		if err := s.walk(abs, maxDepth); err != nil {
			failed = append(failed, fmt.Sprintf("look for inboxes in %s: %v", abs, err))
		} else if len(roots) > 1 && !s.foundIn(abs) {
			notes = append(notes, "no inbox is in "+abs)
		}
	}
	if s.unreadable > 0 {
		notes = append(notes, words.Count(s.unreadable, "folder", "folders")+" cannot be read by this user")
	}
	if s.left <= 0 {
		notes = append(notes, fmt.Sprintf("only the first %d folders were searched: name the inboxes' own folders", maxSearched))
	}
	return slices.Sorted(maps.Keys(s.found)), failed, notes
}

// isInbox reports whether a root is an inbox. err says why it is no folder.
func isInbox(path string, err error) bool {
	if _, file := disk.StatFile(path); file == nil {
		return true // opening it says what is wrong with it
	}
	if !errors.Is(err, fs.ErrNotExist) || filepath.Ext(path) != ".jsonl" {
		return false
	}
	_, above := disk.StatDir(filepath.Dir(path))
	return above == nil // the first entry creates it
}

// foundIn reports whether an inbox was found in a folder, or below it.
func (s *search) foundIn(dir string) bool {
	for path := range s.found {
		if strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

func (s *search) walk(dir string, depth int) error {
	if s.left--; s.left < 0 || s.seen[dir] {
		return nil
	}
	s.seen[dir] = true
	real := dir
	if depth == maxDepth { // a person named it, so it may be a link
		if there, err := filepath.EvalSymlinks(dir); err == nil {
			real = there
		}
	}
	names, _, err := disk.Names(real, maxNames)
	if err != nil {
		s.unreadable++
		return err
	}
	slices.Sort(names)
	if path := inboxIn(dir, names); path != "" {
		s.found[path] = true
	}
	for _, name := range names {
		if depth == 0 || strings.HasPrefix(name, ".") || name == "node_modules" {
			continue
		}
		child := filepath.Join(dir, name)
		if info, err := disk.StatName(child); err == nil && info.IsDir {
			_ = s.walk(child, depth-1) // it is counted
		}
	}
	return nil
}

// inboxIn is the inbox in a folder with these names: the one its journal names, or the usual one, or "".
func inboxIn(dir string, names []string) string {
	if slices.Contains(names, journal) {
		if name, err := inbox.Named(dir); err == nil && name != "" {
			return filepath.Join(dir, name)
		}
		return filepath.Join(dir, usual) // looking at it says what is wrong
	}
	if slices.Contains(names, usual) {
		return filepath.Join(dir, usual)
	}
	return ""
}
