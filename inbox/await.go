package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/machine"
)

// ErrGone says that an awaited entry left the inbox without a result or a dead letter: it was dropped, or the
// inbox was truncated or replaced.
var ErrGone = errors.New("the entry is gone")

// Outcome is how an entry ended. Exactly one member is set.
type Outcome struct {
	Result     *Result     `json:"result,omitempty"`
	DeadLetter *DeadLetter `json:"dead_letter,omitempty"`
}

// Await returns once the entry of a receipt from [Inbox.Append] was answered or became a dead letter. An
// error that matches [ErrGone] says that neither will happen. Await watches file events, looks again every
// poll (a second if 0), and holds no lock. When ctx ends it reads the outcomes one last time.
func (b *Inbox) Await(ctx context.Context, r Receipt, poll time.Duration) (_ Outcome, err error) {
	a := awaiting{box: b, entry: r}
	defer func() { err = errors.Join(err, a.results.Close(), a.deadLetters.Close()) }()
	w := b.WatchOutcomes(poll)
	defer func() { _ = w.Close() }() // only watches
	seen := r.seen
	if r.Found == FoundAnswered {
		seen = watermark{}
	}
	if a.results, err = journal.TailFrom(b.fileOf(journal.Results), seen.results); err == nil {
		a.deadLetters, err = journal.TailFrom(b.fileOf(journal.DeadLetters), seen.deadLetters)
	}
	for ; err == nil; err = a.await(ctx, w) {
		err = a.look(ctx)
		if (errors.Is(err, ErrLocked) || machine.Passes(err)) && ctx.Err() == nil {
			err = nil // it only delays the outcome
		}
		if err != nil || a.outcome != (Outcome{}) {
			break
		}
	}
	if err != nil && ctx.Err() != nil && a.deadLetters != nil {
		// An outcome that has just come is worth more than the error.
		if a.readOutcomes() == nil && a.outcome != (Outcome{}) {
			return a.outcome, nil
		}
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("wait for the entry %q: %w", r.ID, err)
	}
	return a.outcome, nil
}

// awaiting is one wait for one entry.
type awaiting struct {
	box                  *Inbox
	entry                Receipt
	results, deadLetters *Tail // nil before the wait begins
	outcome              Outcome
}

// await returns when the files may have changed.
func (a *awaiting) await(ctx context.Context, w *Watcher) error {
	var due <-chan time.Time
	if at := a.entry.NotBefore; at != nil && at.After(a.box.opts.Now()) {
		timer := time.NewTimer(at.Sub(a.box.opts.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.C:
	case <-due:
	}
	return nil
}

// look reads new outcomes, and checks that the entry can still have one.
func (a *awaiting) look(ctx context.Context) error {
	// Twice, because finishing the last commit may put the entry into the inbox.
	for range 2 {
		there, settling, err := a.stillThere(ctx)
		if err == nil && !there && settling {
			// The settling commit has not reached the files: its process still works, or was killed.
			_, err = a.box.MakeGood(ctx)
		}
		if err == nil {
			err = a.readOutcomes()
		}
		if err != nil || there || a.outcome != (Outcome{}) {
			return err
		}
	}
	return ErrGone
}

// readOutcomes keeps the entry's first outcome, wherever its line stands: somebody may have moved it.
func (a *awaiting) readOutcomes() error {
	err := a.results.Lines(func(l []byte) {
		var r Result
		if a.outcome == (Outcome{}) && mayHold(l, a.entry.EntryID) && json.Unmarshal(l, &r) == nil && r.EntryID == a.entry.EntryID {
			a.outcome.Result = &r
		}
	})
	if err != nil || a.outcome != (Outcome{}) {
		return err // a requeued entry that was then answered is a dead letter too
	}
	return a.deadLetters.Lines(func(l []byte) {
		var d DeadLetter
		if a.outcome == (Outcome{}) && mayHold(l, a.entry.EntryID) && json.Unmarshal(l, &d) == nil && d.Reason != "" && d.EntryID == a.entry.EntryID {
			a.outcome.DeadLetter = &d
		}
	})
}

// stillThere reports whether the entry waits, is in flight or is scheduled, and whether the last commit has
// yet to reach the files.
func (a *awaiting) stillThere(ctx context.Context) (there, settling bool, err error) {
	if at := a.entry.NotBefore; at != nil && !at.After(a.box.opts.Now()) {
		if err := a.box.Promote(ctx); err != nil {
			return false, false, err
		}
	}
	v, err := a.box.View()
	if err != nil {
		return false, false, err
	}
	defer func() { _ = v.Close() }() // read-only
	t := v.tx
	if slices.ContainsFunc(t.unsettled(), func(d *Delivery) bool { return d.EntryID == a.entry.EntryID }) {
		return true, v.settling, nil
	}
	if _, canceled := t.canceledAt(a.entry.Start); !canceled && a.entry.Start < a.entry.End && t.file != nil && a.entry.Start >= t.st.Cursor {
		l, err := readLine(t.file, a.entry.Start, t.queueSize(), MaxLine)
		if err == nil && (l.tooLong || entryID(l.raw) == a.entry.EntryID) {
			return true, v.settling, nil
		}
	}
	note := func(id string, p place) bool {
		if there = id == a.entry.ID && p.entryID == a.entry.EntryID; there {
			a.entry.Start, a.entry.End = p.start, p.end
		}
		return !there
	}
	goOn, err := t.findScheduled(note)
	if err == nil && goOn {
		err = t.scanQueue(t.st.Cursor, a.entry.ID, func(id string, p place, _ bool) bool { return note(id, p) })
	}
	return there, v.settling, err
}

// Watcher signals that files of an inbox may have changed.
type Watcher struct {
	// C receives a value after a change. Several changes may share one value.
	C <-chan struct{}

	events *fsnotify.Watcher // nil if the system offers no events
	stop   chan struct{}
	once   sync.Once
}

// Watch signals changes of the queue file, which need not exist yet, and every commit of another process. It
// uses file system events. Every poll (a second if 0) it also compares sizes and times, for file systems
// without events and for when the system has run out of watches. Close the watcher when done.
func (b *Inbox) Watch(poll time.Duration) *Watcher {
	var seen sighting
	return b.watch(poll, func() bool {
		before := seen
		seen = sighting{sightOf(b.path), sightOf(b.beside(journal.JournalName)), sightOf(b.fileOf(journal.Scheduled))}
		return seen != before
	}, b.name, journal.JournalName)
}

// sighting is what stat shows of the queue file, the journal and the scheduled entries.
type sighting [3]sight

type sight struct {
	dev, ino    uint64
	size, mtime int64
}

func sightOf(path string) sight {
	info, _ := disk.StatFile(path) // zero if the file does not exist
	return sight{info.Dev, info.Ino, info.Size, info.Mtime}
}

// always makes a watcher signal at every poll.
func always() bool { return true }

// WatchOutcomes signals changes of results, dead letters and events, and also at every poll.
func (b *Inbox) WatchOutcomes(poll time.Duration) *Watcher {
	var names []string
	for _, kind := range journal.OutcomeKinds {
		names = append(names, kind.Name())
	}
	return b.watch(poll, always, names...)
}

// WatchAll signals changes of every file of the inbox, and also at every poll.
func (b *Inbox) WatchAll(poll time.Duration) *Watcher { return b.watch(poll, always) }

// watch signals changes of the named files, or of all files without names. At every poll it signals if
// changedSince returns true.
func (b *Inbox) watch(poll time.Duration, changedSince func() bool, names ...string) *Watcher {
	if poll <= 0 {
		poll = time.Second
	}
	changed := make(chan struct{}, 1)
	w := &Watcher{C: changed, stop: make(chan struct{})}
	var events chan fsnotify.Event
	var errs chan error
	if all, err := fsnotify.NewWatcher(); err == nil {
		w.events = all
		if err := all.Add(b.dir); err == nil {
			events, errs = all.Events, all.Errors
		}
	}
	changedSince() // changes count from here on
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				if !changedSince() {
					continue
				}
			case e, ok := <-events:
				if !ok {
					return
				}
				if len(names) > 0 && !slices.Contains(names, filepath.Base(e.Name)) {
					continue // other state files change at every step
				}
			case _, ok := <-errs: // a queue overflow: something changed, so look
				if !ok {
					return
				}
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return w
}

// Close stops the watcher.
func (w *Watcher) Close() error {
	w.once.Do(func() { close(w.stop) })
	if w.events == nil {
		return nil
	}
	return w.events.Close()
}
