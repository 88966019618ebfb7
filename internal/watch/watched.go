package watch

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
)

// Inbox is what is known of one inbox. Its texts are not cleaned.
type Inbox struct {
	see.Facts
	State see.State
	Why   string
	// Troubles are what is wrong.
	Troubles []see.Trouble
	// Today is what was spent since midnight, as far as the client reported it.
	Today price.Amount
	// Seen changes whenever anything of the inbox does.
	Seen  int64
	Notes []string
}

// Path names the inbox.
func (i Inbox) Path() string { return i.Facts.Inbox }

// Asks reports whether a person is asked for something.
func (i Inbox) Asks() bool { return len(i.Held) > 0 || i.Asking() != nil }

// lookAt looks at an inbox once. If its lock is held, it waits to see whether the lock is kept.
func lookAt(ctx context.Context, path string) (i Inbox) {
	i.look(path, time.Now(), func(box *inbox.Inbox) see.Facts { return see.Look(ctx, box) })
	return i
}

// lookAgain updates what is known, and reports whether anything changed.
func (i *Inbox) lookAgain(ctx context.Context, path string, at time.Time) bool {
	last := i.Facts
	return i.look(path, at, func(box *inbox.Inbox) see.Facts { return see.LookAgain(ctx, box, &last, at) })
}

// look takes what is found. An inbox that cannot be opened is shown as broken.
func (i *Inbox) look(path string, at time.Time, find func(*inbox.Inbox) see.Facts) (changed bool) {
	before := *i
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil {
		i.Facts = see.Facts{Now: at, Inbox: path, Dir: filepath.Dir(path), Reach: see.Reach{Space: -1, Unreadable: err}}
	} else {
		i.Facts = find(box)
	}
	if was := before.Head; was != nil && i.Head != nil && was.At == i.Head.At && was.Since.Before(i.Head.Since) {
		i.Head.Since = was.Since // an earlier look saw it wait
	}
	i.State, i.Why = i.Explain()
	i.Troubles, i.Notes = i.Facts.Troubles(), slices.Concat(i.Warnings, i.Letters.Warnings)
	if !differ(before, *i) {
		return false
	}
	i.Seen++
	i.Today = price.Amount{}
	if i.Unreadable == nil { // otherwise the state is what is shown
		if spent, err := book.Spending(box, nil); err == nil { // this takes reading transcripts, which may be long
			i.Today = spent.Today()
		}
	}
	return true
}

// differ reports whether two looks saw more than what [see.Facts.Lasting] leaves out. Another day is more, because its
// spending begins anew.
func differ(a, b Inbox) bool {
	days := [2]string{}
	for n, i := range []*Inbox{&a, &b} {
		days[n] = i.Now.Local().Format(time.DateOnly)
		i.Facts, i.Why = i.Lasting(), ""
		kinds := make([]see.Trouble, len(i.Troubles)) // their texts have ages
		for k, t := range i.Troubles {
			kinds[k].Kind, kinds[k].Key = t.Kind, t.Key
		}
		i.Troubles = kinds
	}
	return days[0] != days[1] || !reflect.DeepEqual(a, b)
}
