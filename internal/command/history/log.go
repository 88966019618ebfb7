package history

import (
	"errors"
	"slices"

	"heartbeat/inbox"
)

// Log is what happened to an inbox.
type Log struct {
	box     *inbox.Inbox
	files   []*Reading[[]Event]
	queue   inbox.Place      // how far the queue file was read
	settled bool             // leave out what waits
	seen    recent[eventKey] // events that another source may report again
	back    recent[string]   // requeued entries, whose lines are still to come
}

// Read opens the log, and returns its last n events, all if n is 0. Each file is in order of time, so it reads only the
// last n records of each and the last n waiting entries, without queue lines whose time is unknown.
func Read(box *inbox.Inbox, n int) (_ *Log, last []Event, err error) {
	l := &Log{box: box}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	// The view comes first: Next reports what is committed after it.
	current, err := l.readView(n)
	if err != nil {
		return nil, nil, err
	}
	c := collection{seen: map[eventKey]bool{}}
	for _, file := range sources(box) {
		r, err := file.Last(n, func(all []Event, _ []byte) { c.add(all...) })
		if err != nil {
			return nil, nil, err
		}
		l.files = append(l.files, r)
	}
	c.add(current...)
	timed := slices.DeleteFunc(c.Events, func(e Event) bool { return e.At == nil })
	Sort(timed)
	return l, lastOf(timed, n), nil
}

func sources(box *inbox.Inbox) []Source[[]Event] {
	return []Source[[]Event]{eventsIn(Results(box), resultEvents), eventsIn(letters(box), letterEvents), eventsIn(events(box), recordedEvents)}
}

// Follow opens the log at its present end, without what waits.
func Follow(box *inbox.Inbox) (*Log, error) {
	l := &Log{box: box, settled: true}
	for _, file := range sources(box) {
		r, err := file.fromNow()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.files = append(l.files, r)
	}
	return l, nil
}

func lastOf(all []Event, n int) []Event {
	if n > 0 && len(all) > n {
		return all[len(all)-n:]
	}
	return all
}

// readView returns the events that the journal and the queue show.
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
			all = append(all, deliveryEvents(d)...)
			l.seen.add(deliveryEvents(d)[1].key())
		}
	}
	add := func(w inbox.Waiting) {
		if e := waitingEvent(w); e.At != nil {
			all = append(all, e)
		}
	}
	if n == 0 {
		return all, v.Waits(nil, func(w inbox.Waiting) bool { add(w); return true })
	}
	return all, v.Last(n, add)
}

// Skip makes Next leave out events that were shown already.
func (l *Log) Skip(all []Event) {
	for _, e := range lastOf(all, maxRecent) {
		l.seen.add(e.key())
	}
}

// Notes returns sentences about lines that were left out, each once.
func (l *Log) Notes() (notes []string) {
	for _, file := range l.files {
		notes = append(notes, file.Notes()...)
	}
	return notes
}

// Close closes the log's files.
func (l *Log) Close() (err error) {
	for _, file := range l.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// collection holds each event once, however many sources report it.
type collection struct {
	Events []Event
	seen   map[eventKey]bool
}

func (c *collection) add(all ...Event) {
	for _, e := range all {
		if k := e.key(); !c.seen[k] {
			c.seen[k] = true
			c.Events = append(c.Events, e)
		}
	}
}

const maxRecent = 256 // bounds the memory of a log that is followed for weeks

// recent is the set of the last maxRecent keys that were added.
type recent[K comparable] struct{ keys []K }

// add reports whether the key is new to the set.
func (r *recent[K]) add(key K) bool {
	if slices.Contains(r.keys, key) {
		return false
	}
	if r.keys = append(r.keys, key); len(r.keys) > maxRecent {
		r.keys = r.keys[1:]
	}
	return true
}

// remove removes the key, and reports whether the set had it.
func (r *recent[K]) remove(key K) bool {
	i := slices.Index(r.keys, key)
	if i >= 0 {
		r.keys = slices.Delete(r.keys, i, i+1)
	}
	return i >= 0
}

// Next returns what happened since, each event once, in order of time. Lines without their time come last.
func (l *Log) Next() (news []Event, err error) {
	// The view is read before the files: a commit adds to the files before the queue's new lines appear.
	current, err := l.viewNews()
	if err != nil {
		return nil, err
	}
	for _, file := range l.files {
		_, err = file.Next(func(all []Event, _ []byte) {
			news = append(news, l.unseen(slices.DeleteFunc(all, func(e Event) bool { return e.told }))...)
		})
		if err != nil {
			return nil, err
		}
	}
	// The requeue of an entry has its own event, and its line was sent long ago.
	news = append(news, slices.DeleteFunc(current, func(e Event) bool { return e.Event == Queued && l.back.remove(e.EntryID) })...)
	for i := range news { // a line without a time goes before what followed from it
		for _, e := range news {
			if news[i].At == nil && e.At != nil && e.EntryID == news[i].EntryID {
				news[i].order = e.At.Add(-1)
				break
			}
		}
	}
	Sort(news)
	return news, nil
}

func (l *Log) viewNews() (news []Event, err error) {
	v, err := l.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if !l.settled {
		l.queue, err = v.Since(l.queue, func(w inbox.Waiting) { news = append(news, l.unseen([]Event{waitingEvent(w)})...) })
	}
	if err != nil || v.Settling() {
		return news, err // what is in flight comes with the files
	}
	if d := v.InFlight(); d != nil {
		news = append(news, l.unseen(deliveryEvents(d)[1:])...)
	}
	return news, nil
}

// unseen leaves out what another source has reported.
func (l *Log) unseen(all []Event) (fresh []Event) {
	for _, e := range all {
		if !l.seen.add(e.key()) {
			continue
		}
		if e.Event == string(inbox.EventRequeued) {
			l.back.add(e.EntryID)
		}
		fresh = append(fresh, e)
	}
	return fresh
}
