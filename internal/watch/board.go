package watch

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/words"
)

// Board is the whole state of the display. The zero Board shows nothing yet.
type Board struct {
	Width, Height int
	Picture       Picture
	// Selected is the path of the chosen inbox. It stays chosen while others come and go.
	Selected string
	// Page is the open inbox, or nil.
	Page *Page
	// Life is the open entry, or nil.
	Life *Life
	// Asking is the question before something is done, or nil.
	Asking *Asking
	// Help says that the keys are explained.
	Help bool
	// Doing names what is being done now, or is empty.
	Doing string
	// Said reports the last action, and Failed says that it failed.
	Said   string
	Failed bool

	at time.Time
}

// Page is one inbox with its entries.
type Page struct {
	Path     string
	Items    []Item
	Notes    []string
	Failed   error
	Selected int
	// Seen is the state of the inbox from which the items were read.
	Seen    int64
	Loaded  bool
	loading bool
}

// Life is an open entry. Top is its first line on screen.
type Life struct {
	Item
	Events string // the entry's events, as log prints them
	Failed error
	Loaded bool
	Top    int
}

// Asking is a question. The key y means yes, and any other key no.
type Asking struct {
	Question string
	Do       Act
}

// Effect is what the caller is to do next: nil for nothing, or one of the types below.
type Effect any

// The effects.
type (
	// Quit ends the program.
	Quit struct{}
	// Suspend stops the program, as ^Z does.
	Suspend struct{}
	// Load asks for the entries of an inbox: see [Board.Loaded].
	Load struct{ Inbox Inbox }
	// Find asks for the life of an entry: see [Board.Found].
	Find struct {
		Item Item
		Act
	}
	// Act asks for a command of heartbeat to be run on an inbox: see [Board.Done].
	Act struct {
		Doing, Inbox string
		// Args follow the name heartbeat on the command line.
		Args []string
	}
)

// Look takes a new picture.
func (b *Board) Look(p Picture) Effect {
	b.Picture = p
	b.at = p.At
	if _, found := b.selected(); !found {
		b.Selected = ""
		if len(p.Inboxes) > 0 {
			b.Selected = p.Inboxes[0].Path()
		}
	}
	return b.reload()
}

// Now is the time of the display.
func (b *Board) Now() time.Time { return b.at }

// Tick sets the time.
func (b *Board) Tick(at time.Time) { b.at = at }

// reload asks for the open page's entries again if its inbox changed.
func (b *Board) reload() Effect {
	p := b.Page
	if p == nil {
		return nil
	}
	i := b.index(p.Path)
	if i < 0 {
		b.Page, b.Life = nil, nil
		b.say(true, p.Path+" is gone")
		return nil
	}
	if now := b.Picture.Inboxes[i]; !p.loading && (!p.Loaded || now.Seen != p.Seen) {
		p.loading, p.Seen = true, now.Seen
		return Load{now}
	}
	return nil
}

// Loaded takes the entries of an inbox. The chosen item stays chosen.
func (b *Board) Loaded(path string, items []Item, notes []string, err error) Effect {
	p := b.Page
	if p == nil || p.Path != path {
		return nil
	}
	before, had := p.Item()
	p.Items, p.Notes, p.Failed, p.Loaded, p.loading = items, notes, err, true, false
	if had {
		if i := slices.IndexFunc(items, func(i Item) bool { return same(i, before) }); i >= 0 {
			p.Selected = i
		}
	}
	p.Selected = max(0, min(p.Selected, len(items)-1))
	return b.reload()
}

// same reports whether two items are the same entry, wherever it has moved.
func same(a, b Item) bool {
	return a.EntryID == b.EntryID && a.ID == b.ID && (a.Start == b.Start || a.ID != "") && a.Effect == b.Effect && a.Letter == b.Letter
}

// Found takes the events of an entry.
func (b *Board) Found(of Item, events string, err error) {
	if b.Life != nil && same(b.Life.Item, of) {
		b.Life.Events, b.Life.Failed, b.Life.Loaded = events, err, true
	}
}

// Done takes the outcome of an [Act].
func (b *Board) Done(said string, err error) {
	b.Doing = ""
	if err != nil {
		b.say(true, err.Error())
		return
	}
	b.say(false, said)
}

func (b *Board) say(failed bool, said string) { b.Said, b.Failed = said, failed }

// Inbox is the open page's inbox, or else the chosen one.
func (b *Board) Inbox() (Inbox, bool) {
	if b.Page != nil {
		if i := b.index(b.Page.Path); i >= 0 {
			return b.Picture.Inboxes[i], true
		}
	}
	return b.selected()
}

func (b *Board) selected() (Inbox, bool) {
	if i := b.index(b.Selected); i >= 0 {
		return b.Picture.Inboxes[i], true
	}
	return Inbox{}, false
}

// Index is the chosen inbox's place in the list, 0 if there is none.
func (b *Board) Index() int { return max(0, b.index(b.Selected)) }

func (b *Board) index(path string) int {
	return slices.IndexFunc(b.Picture.Inboxes, func(i Inbox) bool { return i.Path() == path })
}

// Item is the chosen entry of the page.
func (p *Page) Item() (Item, bool) {
	if p == nil || p.Selected >= len(p.Items) {
		return Item{}, false
	}
	return p.Items[p.Selected], true
}

// maxFolders is how many folders a name may have beyond the short one.
const maxFolders = 64

// names gives each inbox the shortest name that no other has.
func names(p Picture) func(path string) string {
	found := map[string]string{}
	for more := 0; len(found) < len(p.Inboxes); more++ {
		called := map[string]int{}
		for _, now := range p.Inboxes {
			called[short(now.Path(), more)]++
		}
		for _, now := range p.Inboxes {
			if name := short(now.Path(), more); found[now.Path()] == "" && (called[name] == 1 || more == maxFolders) {
				found[now.Path()] = name
			}
		}
	}
	return func(path string) string { return found[path] }
}

// Short is the short name of an inbox: its folder, and its own name if that is not the usual one. Common folder
// names tell nothing, so the folder above is added.
func Short(path string) string { return short(path, 0) }

// short is [Short] with more folders in front.
func short(path string, more int) string {
	dir, name := filepath.Split(filepath.Clean(path))
	dir = filepath.Clean(dir)
	parent := filepath.Base(dir)
	if parent == "queue" || parent == "inbox" || parent == "work" {
		more++
	}
	for ; more > 0; more-- {
		dir = filepath.Dir(dir)
		if above := filepath.Base(dir); above != "/" && above != "." {
			parent = above + "/" + parent
		}
	}
	if name != usual {
		parent += "/" + name
	}
	return strings.Map(joined, words.Line(parent))
}
