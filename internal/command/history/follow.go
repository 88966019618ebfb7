package history

import (
	"errors"
	"slices"

	"heartbeat/inbox"
)

// Next returns what happened since, each event once, in the order of time; lines
// that do not say when they were appended come last.
func (l *Log) Next() (news []Event, err error) {
	// The view comes first, and its files after it: what a commit adds to them
	// is there before the queue's new lines are.
	current, err := l.viewNews()
	if err != nil {
		return nil, err
	}
	add := func(all ...Event) { news = append(news, l.unseen(all)...) }
	// The first of what a settled entry went through is that it was queued: the
	// queue told of that, now or before the log was opened.
	if _, err = l.results.Next(func(r inbox.Result, _ []byte) { add(ofResult(r)[1:]...) }); err != nil {
		return nil, err
	}
	_, err = l.letters.Next(func(d letter, _ []byte) {
		if all := ofLetter(d); d.mark {
			add(all...)
		} else {
			add(all[1:]...)
		}
	})
	if err != nil {
		return nil, err
	}
	if _, err = l.events.Next(func(e inbox.Event, _ []byte) { add(ofEvent(e)...) }); err != nil {
		return nil, err
	}
	news = append(news, l.withoutRequeued(current)...)
	placeUntimed(news)
	sortEvents(news)
	return news, nil
}

// placeUntimed puts lines that do not say when they were appended before what is
// known to have come of them.
func placeUntimed(news []Event) {
	for i := range news {
		for _, e := range news {
			if news[i].At == nil && e.At != nil && e.EntryID == news[i].EntryID {
				news[i].order = e.At.Add(-1)
				break
			}
		}
	}
}

func (l *Log) viewNews() (news []Event, err error) {
	v, err := l.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	l.queue, err = v.Since(l.queue, func(w inbox.Waiting) { news = append(news, l.unseen([]Event{ofWaiting(w)})...) })
	if err != nil || v.Settling() {
		return news, err // what is in flight comes with the files, in its order
	}
	if d := v.InFlight(); d != nil {
		news = append(news, l.unseen(ofDelivery(d)[1:])...)
	}
	return news, nil
}

// unseen leaves out what another source told before.
func (l *Log) unseen(all []Event) (fresh []Event) {
	for _, e := range all {
		if l.seen.has(e.identity()) {
			continue
		}
		l.seen.add(e.identity())
		if e.Event == string(inbox.EventRequeued) {
			l.back.add(e.EntryID)
		}
		fresh = append(fresh, e)
	}
	return fresh
}

// withoutRequeued leaves out the lines that were requeued: that is told, and when
// they were sent is long ago.
func (l *Log) withoutRequeued(news []Event) []Event {
	return slices.DeleteFunc(news, func(e Event) bool { return e.Event == Queued && l.back.take(e.EntryID) })
}
