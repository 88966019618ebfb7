package history

import (
	"errors"
	"slices"

	"heartbeat/inbox"
)

// Next returns what happened since, each event once, in order of time. Lines that do
// not say when they were appended come last.
func (l *Log) Next() (news []Event, err error) {
	// The view is read before the files: what a commit adds to them is there before
	// the queue's new lines are.
	current, err := l.viewNews()
	if err != nil {
		return nil, err
	}
	add := func(all ...Event) { news = append(news, l.unseen(all)...) }
	// The first event of a settled entry is that it was queued, which the queue has
	// reported already, now or before the log was opened.
	if _, err = l.results.Next(func(r inbox.Result, _ []byte) { add(resultEvents(r)[1:]...) }); err != nil {
		return nil, err
	}
	_, err = l.letters.Next(func(d letter, _ []byte) {
		if all := letterEvents(d); d.mark {
			add(all...)
		} else {
			add(all[1:]...)
		}
	})
	if err != nil {
		return nil, err
	}
	if _, err = l.events.Next(func(e inbox.Event, _ []byte) { add(recordedEvents(e)...) }); err != nil {
		return nil, err
	}
	news = append(news, l.withoutRequeued(current)...)
	placeUntimed(news)
	sortEvents(news)
	return news, nil
}

// placeUntimed puts lines that do not say when they were appended before the events
// that followed from them.
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
	l.queue, err = v.Since(l.queue, func(w inbox.Waiting) { news = append(news, l.unseen([]Event{waitingEvent(w)})...) })
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

// withoutRequeued leaves out lines that were requeued, which has its own event: they
// were sent long ago.
func (l *Log) withoutRequeued(news []Event) []Event {
	return slices.DeleteFunc(news, func(e Event) bool { return e.Event == Queued && l.back.take(e.EntryID) })
}
