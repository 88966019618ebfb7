package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

const (
	// findEvery is how often new inboxes are searched for. The rest after a search is findRest times as long, or longer.
	findEvery = 5 * time.Second
	findRest  = 50
)

// Picture is what was known at a moment.
type Picture struct {
	At      time.Time
	Inboxes []Inbox
	// Failed has sentences about named folders that cannot be searched, Notes sentences about what was left out.
	Failed, Notes []string
}

// Lookout looks at the inboxes below some folders. It is not safe for concurrent use.
type Lookout struct {
	// Paths are the inboxes of the last search. Failed and Notes are as in a [Picture].
	Paths, Failed, Notes []string

	roots []string
	boxes map[string]*Inbox
	due   time.Time // when to search next
}

// New returns a lookout over the inboxes in these folders and below. A root may also be an inbox: see [Find].
func New(roots ...string) *Lookout { return &Lookout{roots: roots, boxes: map[string]*Inbox{}} }

// Find searches for inboxes if that is due, and reports whether the outcome changed.
func (l *Lookout) Find(at time.Time) bool {
	if at.Before(l.due) {
		return false
	}
	began := time.Now()
	paths, failed, notes := FindInboxes(l.roots)
	l.due = at.Add(max(findEvery, findRest*time.Since(began)))
	changed := !slices.Equal(paths, l.Paths) || !slices.Equal(failed, l.Failed) || !slices.Equal(notes, l.Notes)
	l.Paths, l.Failed, l.Notes = paths, failed, notes
	before := l.boxes
	l.boxes = make(map[string]*Inbox, len(paths))
	for _, path := range paths {
		l.boxes[path] = cmp.Or(before[path], &Inbox{})
	}
	return changed
}

// Look returns what is known now, and whether anything but the time changed since the last call. If only is not
// nil, just the inboxes in those folders are looked at.
func (l *Lookout) Look(ctx context.Context, at time.Time, only map[string]bool) (p Picture, changed bool) {
	found := l.Find(at)
	news := make([]bool, len(l.Paths))
	see.Each(len(l.Paths), func(i int) {
		if path := l.Paths[i]; only == nil || only[filepath.Dir(path)] {
			news[i] = l.boxes[path].lookAgain(ctx, path, at)
		}
	})
	p = Picture{At: at, Failed: l.Failed, Notes: l.Notes}
	for _, path := range l.Paths {
		p.Inboxes = append(p.Inboxes, *l.boxes[path])
	}
	return p, found || slices.Contains(news, true)
}

const (
	// usual is the name of an inbox that is found without state, which short names leave out. Others need a commit first.
	usual = "inbox.jsonl"

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

// FindInboxes searches folders for inboxes. A root may also be an inbox, perhaps one that does not exist yet. The paths
// are sorted and unique. failed says which roots could not be searched, and notes what was left out.
func FindInboxes(roots []string) (paths, failed, notes []string) {
	s := search{found: map[string]bool{}, seen: map[string]bool{}, left: maxSearched}
	for _, root := range roots {
		abs, err := filepath.Abs(root)
		if err == nil {
			_, err = disk.StatDir(abs)
		}
		if err != nil {
			if isInbox(abs, err) {
				s.found[abs] = true
			} else {
				failed = append(failed, fmt.Sprintf("look for inboxes in %s: %v", abs, err))
			}
			continue
		}
		below := func(path string) bool { return strings.HasPrefix(path, strings.TrimSuffix(abs, "/")+"/") }
		if err := s.walk(abs, maxDepth); err != nil {
			failed = append(failed, fmt.Sprintf("look for inboxes in %s: %v", abs, err))
		} else if len(roots) > 1 && !slices.ContainsFunc(slices.Collect(maps.Keys(s.found)), below) {
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

// isInbox reports whether a root is an inbox. notDir is why the root is no folder.
func isInbox(path string, notDir error) bool {
	if _, err := disk.StatFile(path); err == nil {
		return true // opening the inbox tells what is wrong with it
	}
	if !errors.Is(notDir, fs.ErrNotExist) || filepath.Ext(path) != ".jsonl" {
		return false
	}
	_, err := disk.StatDir(filepath.Dir(path))
	return err == nil // the first entry creates the file
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
	if slices.Contains(names, inbox.JournalName) {
		name, err := inbox.Named(dir)
		if err != nil || name == "" {
			name = usual // the look at the inbox tells what is wrong
		}
		s.found[filepath.Join(dir, name)] = true
	} else if slices.Contains(names, usual) {
		s.found[filepath.Join(dir, usual)] = true
	}
	for _, name := range names {
		if depth == 0 || strings.HasPrefix(name, ".") || name == "node_modules" {
			continue
		}
		child := filepath.Join(dir, name)
		if info, err := disk.StatName(child); err == nil && info.IsDir {
			_ = s.walk(child, depth-1) // walk has counted the failure
		}
	}
	return nil
}

// Inbox is what is known of one inbox. Its texts are not cleaned.
type Inbox struct {
	see.Facts
	State    see.State
	Why      string
	Troubles []see.Trouble
	Today    price.Amount // spent since midnight, as far as the client reported it
	Seen     int64        // changes whenever anything about the inbox does
}

// Path returns the path of the inbox.
func (i Inbox) Path() string { return i.Facts.Inbox }

// lookAgain updates what is known, and reports whether anything changed.
func (i *Inbox) lookAgain(ctx context.Context, path string, at time.Time) bool {
	last := i.Facts
	return i.look(path, at, func(box *inbox.Inbox) see.Facts { return see.LookAgain(ctx, box, &last, at) })
}

// look sets i to the facts, and reports whether anything changed. An inbox that cannot be opened is shown as broken.
func (i *Inbox) look(path string, at time.Time, facts func(*inbox.Inbox) see.Facts) (changed bool) {
	before := *i
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil {
		i.Facts = see.Facts{Now: at, Inbox: path, Dir: filepath.Dir(path), Reach: see.Reach{Space: -1, Unreadable: err}}
	} else {
		i.Facts = facts(box)
	}
	if was := before.Head; was != nil && i.Head != nil && was.At == i.Head.At && was.Since.Before(i.Head.Since) {
		i.Head.Since = was.Since // an earlier look saw it wait
	}
	i.State, i.Why = i.Explain()
	i.Troubles = i.Facts.Troubles()
	if i.Today = (price.Amount{}); i.Unreadable == nil {
		if spent, err := i.Spent(); err == nil {
			i.Today = spent.Today()
		}
	}
	if changed = differ(before, *i); changed {
		i.Seen++
	}
	return changed
}

// differ reports whether two looks differ in more than ages, free space, what a session at work writes and the holder of
// the lock. A new day counts as a difference, because spending begins anew.
func differ(a, b Inbox) bool {
	for _, i := range []*Inbox{&a, &b} {
		year, month, day := i.Now.Local().Date()
		i.Now = time.Date(year, month, day, 0, 0, 0, 0, time.Local)
		i.Space, i.Needed, i.Still, i.Lock, i.Why, i.Spent = 0, 0, see.Still{}, see.Lock{}, "", nil
		kinds := make([]see.Trouble, len(i.Troubles)) // their texts have ages
		for k, t := range i.Troubles {
			kinds[k].Kind, kinds[k].Key = t.Kind, t.Key
		}
		i.Troubles = kinds
	}
	return !reflect.DeepEqual(a, b)
}
