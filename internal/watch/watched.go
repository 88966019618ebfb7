package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
)

// lockPatience is how long a lock may be held before it is shown.
const lockPatience = 2 * time.Second

// watched is an inbox with what was last known of it.
type watched struct {
	path string
	box  *inbox.Inbox
	now  Inbox

	holder  int       // who held the lock at the last look
	held    time.Time // since when, as far as this saw
	journal disk.Info // as it was then
}

func (w *watched) dir() string { return filepath.Dir(w.path) }

// open shows an inbox that cannot be opened as broken.
func (w *watched) open(at time.Time) (changed bool) {
	if w.box != nil {
		return false
	}
	var err error
	if w.box, err = inbox.Open(w.path, inbox.Options{}); err == nil || w.now.Unreadable != nil && w.now.Unreadable.Error() == err.Error() {
		return false
	}
	w.now = Inbox{Facts: see.Facts{Now: at, Inbox: w.path, Dir: w.dir(), Reach: see.Reach{Space: -1, Unreadable: err}}, Seen: w.now.Seen + 1}
	w.now.judge()
	return true
}

// look looks at an inbox once. If its lock is held, it waits to see whether the lock is kept.
func look(ctx context.Context, path string) Inbox {
	w := &watched{path: path}
	if w.open(time.Now()); w.box != nil {
		w.survey(see.Look(ctx, w.box))
		w.now.judge()
		w.spent()
	}
	return w.now
}

// look updates what is known, and reports whether anything changed. locks returns the locks held now.
func (w *watched) look(ctx context.Context, at time.Time, locks func() machine.Locks) bool {
	if broken := w.open(at); w.box == nil {
		return broken
	}
	before := w.now
	f := see.LookAgain(ctx, w.box, &before.Facts)
	f.Now, f.LockedBy, f.LockedName, f.LockedFor = at, before.LockedBy, before.LockedName, before.LockedFor
	w.survey(f)
	w.lock(at, locks())
	w.now.judge()
	changed := differ(before, w.now)
	if changed {
		w.now.Seen++
		w.spent()
	}
	return changed
}

// differ reports whether two looks saw more than ages, the free space, and what a session at work writes. Another day
// is more, because its spending begins anew.
func differ(a, b Inbox) bool {
	days := [2]string{}
	for n, i := range []*Inbox{&a, &b} {
		days[n] = i.Now.Local().Format(time.DateOnly)
		i.Now, i.Space, i.Needed, i.Still, i.Why = time.Time{}, 0, 0, see.Still{}, ""
		kinds := make([]see.Trouble, len(i.Troubles)) // their texts have ages
		for k, t := range i.Troubles {
			kinds[k].Kind, kinds[k].Key = t.Kind, t.Key
		}
		i.Troubles = kinds
	}
	return days[0] != days[1] || !reflect.DeepEqual(a, b)
}

// survey takes what a look found, and adds what that leaves out.
func (w *watched) survey(f see.Facts) {
	was := w.now.Head
	w.now.Facts = f
	if _, err := disk.StatDir(w.dir()); errors.Is(err, fs.ErrNotExist) {
		w.now.Unreadable = fmt.Errorf("its folder %s is gone", w.dir())
	}
	if was != nil && f.Head != nil && was.At == f.Head.At && was.Since.Before(f.Head.Since) {
		f.Head.Since = was.Since // an earlier look saw it wait
	}
	w.now.Notes = slices.Concat(w.now.Warnings, w.now.Letters.Warnings)
}

// spent finds what was spent today. That takes reading transcripts, which may be long.
func (w *watched) spent() {
	w.now.Today = price.Amount{}
	if spent, err := book.Spending(w.box, nil); err == nil && w.now.Unreadable == nil { // otherwise the state is what is shown
		w.now.Today = spent.Today()
	}
}

// lock notes who has kept the lock without a commit in between.
func (w *watched) lock(at time.Time, locks machine.Locks) {
	holder := locks.Holder(filepath.Join(w.box.Dir(), inbox.LockName))
	if holder != w.holder { // the kernel may leave a lock out of its list for a moment
		holder = w.box.Lock()
	}
	// Anybody may change other files of the folder meanwhile.
	now, _ := disk.StatName(filepath.Join(w.dir(), ".inbox-journal"))
	now.Atime = 0
	if holder != w.holder || now != w.journal {
		w.holder, w.held, w.journal = holder, at, now
	}
	if at.Sub(w.held) < lockPatience {
		holder = 0
	}
	if holder != w.now.LockedBy {
		w.now.LockedBy, w.now.LockedName, w.now.LockedFor = holder, machine.Name(holder), lockPatience
	}
}
