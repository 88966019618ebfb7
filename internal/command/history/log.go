package history

import (
	"errors"
	"slices"

	"heartbeat/inbox"
)

// Log is what happened to an inbox.
type Log struct {
	box     *inbox.Inbox
	results *Reading[inbox.Result]
	letters *Reading[letter]
	events  *Reading[inbox.Event]
	queue   inbox.Place      // how far the queue file was read
	seen    recent[eventKey] // events that another source may tell of once more
	back    recent[string]   // entries that were requeued, and come as lines
}

// Read opens the log, and returns its last n events, all if n is 0. It reads no
// more than the last n records of each file, and the last n entries that wait:
// every one of them tells of something that is no older than what it follows.
//
// Lines of the queue that do not tell when they were appended are left out.
func Read(box *inbox.Inbox, n int) (_ *Log, last []Event, err error) {
	l := &Log{box: box}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	// The view comes first: what is committed after it comes with Next.
	current, err := l.readView(n)
	if err != nil {
		return nil, nil, err
	}
	c := collection{seen: map[eventKey]bool{}}
	if l.results, err = Results(box).Last(n, func(r inbox.Result, _ []byte) { c.add(ofResult(r)...) }); err != nil {
		return nil, nil, err
	}
	if l.letters, err = letters(box).Last(n, func(d letter, _ []byte) { c.add(ofLetter(d)...) }); err != nil {
		return nil, nil, err
	}
	if l.events, err = events(box).Last(n, func(e inbox.Event, _ []byte) { c.add(ofEvent(e)...) }); err != nil {
		return nil, nil, err
	}
	c.add(current...)
	timed := slices.DeleteFunc(c.events, func(e Event) bool { return e.At == nil })
	sortEvents(timed)
	return l, lastOf(timed, n), nil
}

func lastOf(all []Event, n int) []Event {
	if n > 0 && len(all) > n {
		return all[len(all)-n:]
	}
	return all
}

// readView is what the journal and the queue tell.
func (l *Log) readView(n int) (all []Event, err error) {
	v, err := l.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if l.queue, err = v.End(); err != nil {
		return nil, err
	}
	for _, d := range []*inbox.Delivery{v.Redeliver(), v.InFlight()} {
		if d != nil {
			all = append(all, ofDelivery(d)...)
			l.seen.add(ofDelivery(d)[1].identity())
		}
	}
	add := func(w inbox.Waiting) {
		if e := ofWaiting(w); e.At != nil {
			all = append(all, e)
		}
	}
	if n == 0 {
		return all, v.Waits(nil, func(w inbox.Waiting) bool { add(w); return true })
	}
	return all, v.Last(n, add)
}

// Told has the log leave out events that somebody has seen already.
func (l *Log) Told(all []Event) {
	for _, e := range lastOf(all, maxRecent) {
		l.seen.add(e.identity())
	}
}

// Notes are sentences about lines that were left out, each told once.
func (l *Log) Notes() []string {
	return slices.Concat(l.results.Notes(), l.letters.Notes(), l.events.Notes())
}

// Close ends the reading of the log.
func (l *Log) Close() error {
	var err error
	if l.results != nil {
		err = l.results.Close()
	}
	if l.letters != nil {
		err = errors.Join(err, l.letters.Close())
	}
	if l.events != nil {
		err = errors.Join(err, l.events.Close())
	}
	return err
}

// collection has each event once, whichever sources tell of it.
type collection struct {
	events []Event
	seen   map[eventKey]bool
}

func (c *collection) add(all ...Event) {
	for _, e := range all {
		if k := e.key(); k != (eventKey{}) {
			if c.seen[k] {
				continue
			}
			c.seen[k] = true
		}
		c.events = append(c.events, e)
	}
}

// maxRecent bounds what is kept in mind while following for weeks.
const maxRecent = 256

// recent is what came last of many things.
type recent[K comparable] struct{ keys []K }

func (r *recent[K]) add(key K) {
	if r.has(key) {
		return
	}
	if r.keys = append(r.keys, key); len(r.keys) > maxRecent {
		r.keys = r.keys[1:]
	}
}

func (r *recent[K]) has(key K) bool { return slices.Contains(r.keys, key) }

// take reports whether it has the key, and forgets it.
func (r *recent[K]) take(key K) bool {
	i := slices.Index(r.keys, key)
	if i >= 0 {
		r.keys = slices.Delete(r.keys, i, i+1)
	}
	return i >= 0
}
