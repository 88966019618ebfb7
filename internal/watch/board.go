package watch

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// Board is the whole state of the display, in the terminal library's terms a [tea.Model]. The zero Board shows nothing
// yet.
type Board struct {
	Width, Height int
	Picture       Picture
	Selected      string    // the path of the chosen inbox, which stays chosen while others come and go
	Page          *Page     // the open inbox, or nil
	Life          *Life     // the open entry, or nil
	Asking        *Asking   // the question before something is done, or nil
	Help          bool      // show what the keys do
	Doing         string    // the action in progress, or ""
	Said          string    // about the last action
	Failed        bool      // the last action failed
	Now           time.Time // of the display

	paint  layout.Palette
	verb   func(ctx context.Context, args []string) (output string, err error) // runs a verb of heartbeat
	acts   sync.WaitGroup                                                      // actions in progress
	gather func()                                                              // looks at the inboxes until the view ends
	drawn  string                                                              // the last frame
	alike  atomic.Int64                                                        // how many frames in a row were the same
}

// Page is one inbox with its entries.
type Page struct {
	Path     string
	Items    []Item
	Notes    []string
	Failed   error
	Selected int
	Seen     int64 // the state of the inbox from which the items were read
	Loaded   bool
	loading  bool
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
	Question, Doing string
	args            []string // of the verb
}

// update is the message that changes the board.
type update func(*Board) tea.Cmd

// Show replaces the picture. The chosen inbox stays chosen if it is still there.
func (b *Board) Show(p Picture) tea.Cmd {
	b.Picture, b.Now = p, p.At
	if b.index(b.Selected) < 0 {
		b.Selected = ""
		if len(p.Inboxes) > 0 {
			b.Selected = p.Inboxes[0].Path()
		}
	}
	return b.reload()
}

// reload asks for the open page's entries again if its inbox changed.
func (b *Board) reload() tea.Cmd {
	p := b.Page
	if p == nil {
		return nil
	}
	now, found := b.inbox(p.Path)
	if !found {
		b.Page, b.Life = nil, nil
		b.say(true, p.Path+" is gone")
		return nil
	}
	if !p.loading && (!p.Loaded || now.Seen != p.Seen) {
		p.loading, p.Seen = true, now.Seen
		return func() tea.Msg {
			items, notes, err := Entries(now)
			return update(func(b *Board) tea.Cmd { return b.loaded(now.Path(), items, notes, err) })
		}
	}
	return nil
}

// loaded sets the entries of an inbox. The chosen item stays chosen.
func (b *Board) loaded(path string, items []Item, notes []string, err error) tea.Cmd {
	p := b.Page
	if p == nil || p.Path != path {
		return nil
	}
	before, had := p.Item()
	p.Items, p.Notes, p.Failed, p.Loaded, p.loading = items, notes, err, true, false
	if i := slices.IndexFunc(items, func(i Item) bool { return same(i, before) }); had && i >= 0 {
		p.Selected = i
	}
	p.Selected = max(0, min(p.Selected, len(items)-1))
	return b.reload()
}

// same reports whether two items are the same entry, wherever it has moved.
func same(a, b Item) bool {
	return a.EntryID == b.EntryID && a.ID == b.ID && (a.Start == b.Start || a.ID != "") && a.Effect == b.Effect && a.Letter == b.Letter
}

func (b *Board) done(said string, err error) {
	if b.Doing = ""; err != nil {
		said = err.Error()
	}
	b.say(err != nil, said)
}

func (b *Board) say(failed bool, said string) { b.Said, b.Failed = said, failed }

// Inbox returns the open page's inbox, or else the chosen one.
func (b *Board) Inbox() (Inbox, bool) {
	if b.Page != nil {
		if now, found := b.inbox(b.Page.Path); found {
			return now, true
		}
	}
	return b.inbox(b.Selected)
}

func (b *Board) inbox(path string) (Inbox, bool) {
	if i := b.index(path); i >= 0 {
		return b.Picture.Inboxes[i], true
	}
	return Inbox{}, false
}

// Index returns the chosen inbox's place in the list, 0 if there is none.
func (b *Board) Index() int { return max(0, b.index(b.Selected)) }

func (b *Board) index(path string) int {
	return slices.IndexFunc(b.Picture.Inboxes, func(i Inbox) bool { return i.Path() == path })
}

// Item returns the chosen entry of the page.
func (p *Page) Item() (Item, bool) {
	if p == nil || p.Selected >= len(p.Items) {
		return Item{}, false
	}
	return p.Items[p.Selected], true
}

// names gives each inbox the shortest name that no other has.
func names(p Picture) func(path string) string {
	found := map[string]string{}
	for more := 0; len(found) < len(p.Inboxes); more++ {
		called := map[string]int{}
		for _, now := range p.Inboxes {
			called[short(now.Path(), more)]++
		}
		for _, now := range p.Inboxes {
			if name := short(now.Path(), more); found[now.Path()] == "" && (called[name] == 1 || more == 64) {
				found[now.Path()] = name
			}
		}
	}
	return func(path string) string { return found[path] }
}

// short returns a short name of an inbox: its folder, and its own name if that is not the usual one. If the folder has a
// common name, the folder above is added, and then as many more.
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

// Key handles one key, as the terminal library spells it: "a", "up", "ctrl+c".
func (b *Board) Key(key string) tea.Cmd {
	switch key {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		if orphaned() {
			return nil
		}
		return tea.Suspend
	}
	if asked := b.Asking; asked != nil {
		b.Asking = nil
		if key != "y" { // so that a key typed once too often does nothing
			b.say(false, "nothing was done")
			return nil
		}
		b.Doing, b.Said = asked.Doing, ""
		b.acts.Add(1)
		return func() tea.Msg {
			defer b.acts.Done()
			output, err := b.verb(context.Background(), asked.args)
			return update(func(b *Board) tea.Cmd { b.done(oneLine(output), err); return nil })
		}
	}
	if b.Help {
		b.Help = false
		return nil
	}
	if b.move(key) {
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "?", "h":
		b.Help = true
	case "esc", "left", "backspace":
		switch {
		case b.Life != nil:
			b.Life = nil
		case b.Page != nil:
			b.Page = nil
		default:
			b.Said = ""
		}
	case "enter", "right":
		return b.enter()
	default:
		b.ask(key)
	}
	return nil
}

// move handles the keys that choose another line, and reports whether key is one of them.
func (b *Board) move(key string) bool {
	const far = 1 << 30
	page := max(1, b.Height-6)
	by, moved := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdown": page, "space": page, "home": -far, "g": -far, "end": far, "G": far,
	}[key]
	switch {
	case !moved:
	case b.Life != nil:
		b.Life.Top = max(0, b.Life.Top+by) // drawing knows where the end is
	case b.Page != nil:
		b.Page.Selected = max(0, min(b.Page.Selected+by, len(b.Page.Items)-1))
	case len(b.Picture.Inboxes) > 0:
		i := max(0, min(b.Index()+by, len(b.Picture.Inboxes)-1))
		b.Selected = b.Picture.Inboxes[i].Path()
	}
	return moved
}

func (b *Board) enter() tea.Cmd {
	switch {
	case b.Life != nil:
		return nil
	case b.Page != nil:
		item, found := b.Page.Item()
		if !found {
			return nil
		}
		l := &Life{Item: item, Loaded: item.EntryID == ""}
		if b.Life = l; l.Loaded {
			return nil
		}
		log := commandLine(b.Page.Path, "log", "--", cmp.Or(item.ID, item.EntryID))
		return func() tea.Msg {
			events, err := b.verb(context.Background(), log)
			return update(func(*Board) tea.Cmd { l.Events, l.Failed, l.Loaded = events, err, true; return nil })
		}
	}
	if now, found := b.inbox(b.Selected); found {
		b.Page = &Page{Path: now.Path()}
		return b.reload()
	}
	return nil
}
