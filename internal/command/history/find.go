package history

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// Errors that [Find] tells apart.
var (
	ErrUnknown   = errors.New("no such entry")
	ErrAmbiguous = errors.New("more than one entry is called that")
)

// Found is all there is to know of one entry.
type Found struct {
	ID, EntryID string
	Events      []Event // the oldest first
	// Result is the line of .results.jsonl that answered it last.
	Result []byte
	// Letter is its last dead letter, unless that was requeued or it was answered
	// since.
	Letter *inbox.Letter
	// Where it is now, in the words of [inbox.Receipt]; empty where it is settled.
	Where string
	// Notes are sentences about lines that were left out.
	Notes []string

	collection
	answered inbox.Result
	requeued map[string]bool
}

// Name is what people call the entry.
func (f *Found) Name() string { return words.Name(f.ID, f.EntryID) }

// Reply is what the entry was answered with last.
func (f *Found) Reply() string { return f.answered.Reply }

// Last are its last n events, all if n is 0.
func (f *Found) Last(n int) []Event { return lastOf(f.Events, n) }

// Is reports whether an event is one of this entry.
func (f *Found) Is(e Event) bool {
	if f.ID != "" {
		return e.ID == f.ID
	}
	return e.EntryID == f.EntryID
}

// maxCandidates is how many entries an ambiguous word is said to name.
const maxCandidates = 5

// search looks for the entries that a word may name.
type search struct {
	word
	exact map[fit]*Found
	begin map[string]*Found // by their names
	names []string          // of those, as they were met
	notes []string
}

// Find looks for an entry by its id, its entry id, or a beginning of one of them
// (four characters at least) that no other entry shares. It goes through all that
// is kept and all that waits, but decodes only what may be the entry.
func Find(box *inbox.Inbox, text string) (*Found, error) {
	s := &search{word: newWord(text), exact: map[fit]*Found{}, begin: map[string]*Found{}}
	if err := s.run(box); err != nil {
		return nil, err
	}
	f, err := s.choose(box)
	if err != nil {
		return nil, err
	}
	f.finish()
	f.Notes = s.notes
	return f, nil
}

func (s *search) run(box *inbox.Inbox) error {
	// What moves meanwhile moves from the first of these to the last: so it is
	// met, if anything twice.
	if err := s.scheduled(box); err != nil {
		return err
	}
	if err := s.view(box); err != nil {
		return err
	}
	err := scan(s, Results(box), func(r inbox.Result, line []byte) {
		s.each(r.ID, r.EntryID, func(f *Found) {
			f.Result, f.answered = bytes.Clone(line), r
			f.add(ofResult(r)...)
		})
	})
	if err != nil {
		return err
	}
	err = scan(s, letters(box), func(l letter, _ []byte) {
		s.each(l.ID, l.EntryID, func(f *Found) { f.addLetter(l) })
	})
	if err != nil {
		return err
	}
	return scan(s, events(box), func(e inbox.Event, _ []byte) {
		s.each(e.ID, e.EntryID, func(f *Found) { f.add(ofEvent(e)...) })
	})
}

// scan reads a whole source. Lines that cannot be of the entry are not decoded,
// so that what is foreign among them is nobody's business here.
func scan[T any](s *search, source Source[T], f func(T, []byte)) error {
	parse := source.Parse
	source.Parse = func(l []byte) (record T, ok bool) {
		if !s.mayHold(l, s.many()) {
			return record, true
		}
		return parse(l)
	}
	r, err := source.Last(0, f)
	if err != nil {
		return err
	}
	s.notes = append(s.notes, r.Notes()...)
	return r.Close()
}

func (s *search) scheduled(box *inbox.Inbox) error {
	all, err := box.Scheduled()
	for _, e := range all {
		s.each(e.ID, e.EntryID, func(f *Found) {
			f.Where = inbox.FoundScheduled
			f.add(Event{Event: string(inbox.EventScheduled), ID: e.ID, EntryID: e.EntryID, Until: &e.NotBefore})
		})
	}
	return err
}

func (s *search) view(box *inbox.Inbox) (err error) {
	v, err := box.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if d := v.InFlight(); d != nil {
		s.each(d.ID(), d.EntryID, func(f *Found) {
			f.Where = inbox.FoundInFlight
			f.add(ofDelivery(d)...)
		})
	}
	again := v.Redeliver()
	if d := again; d != nil {
		s.each(d.ID(), d.EntryID, func(f *Found) { f.add(ofDelivery(d)...) })
	}
	return v.Waits(func(l []byte) bool { return s.mayName(l, s.many()) }, func(w inbox.Waiting) bool {
		s.each(w.ID, w.EntryID, func(f *Found) {
			if f.Where != inbox.FoundInFlight {
				f.Where = inbox.FoundQueued
			}
			if again == nil || again.StartOffset != w.Start { // that was queued before it was delivered
				f.add(ofWaiting(w))
			}
		})
		return true
	})
}

// many reports that a beginning is shared by more than can be named: only who is
// called exactly that is looked for from then on.
func (s *search) many() bool { return len(s.names) > maxCandidates }

// each notes what is said of an entry, if the word fits it.
func (s *search) each(id, entryID string, note func(*Found)) {
	how := s.fits(id, entryID)
	switch how {
	case fitsNot:
		return
	case fitsID, fitsEntryID:
		if s.exact[how] == nil {
			s.exact[how] = newFound(id, entryID)
		}
		note(s.exact[how])
		return
	}
	name := id
	if name == "" {
		name = entryID
	}
	f := s.begin[name]
	if f == nil {
		if s.many() {
			return
		}
		f = newFound(id, entryID)
		s.begin[name], s.names = f, append(s.names, name)
	}
	note(f)
}

func newFound(id, entryID string) *Found {
	return &Found{ID: id, EntryID: entryID, collection: collection{seen: map[eventKey]bool{}}, requeued: map[string]bool{}}
}

func (s *search) choose(box *inbox.Inbox) (*Found, error) {
	for _, how := range []fit{fitsID, fitsEntryID} {
		if f := s.exact[how]; f != nil {
			return f, nil
		}
	}
	switch {
	case len(s.names) == 1:
		return s.begin[s.names[0]], nil
	case len(s.names) > 1:
		return nil, fmt.Errorf("%w: %q may be %s: give more of it", ErrAmbiguous, s.text, s.candidates())
	case len([]rune(s.text)) < minPrefix:
		return nil, fmt.Errorf("%w: nothing of %s is called %q, and a beginning needs %d characters", ErrUnknown, box.Path(), s.text, minPrefix)
	}
	return nil, fmt.Errorf("%w: nothing of %s is called %q, or begins so: it may have been rotated or trimmed away", ErrUnknown, box.Path(), s.text)
}

func (s *search) candidates() string {
	var names []string
	for _, name := range s.names[:min(len(s.names), maxCandidates)] {
		names = append(names, words.Brief(name))
	}
	if s.many() {
		return strings.Join(names, ", ") + " or others"
	}
	return strings.Join(names, " or ")
}

func (f *Found) addLetter(l letter) {
	f.add(ofLetter(l)...)
	if l.mark {
		f.requeued[l.Letter.Letter] = true
	} else {
		f.Letter = &l.Letter
	}
}

// finish puts in order what came from many sources.
func (f *Found) finish() {
	if l := f.Letter; l != nil && (f.requeued[l.Letter] || f.Result != nil && f.answered.AcknowledgedAt.After(l.DeadLetteredAt)) {
		f.Letter = nil
	}
	staged := func(e Event) bool { return e.Event == string(inbox.EventScheduled) }
	if slices.ContainsFunc(f.events, func(e Event) bool { return staged(e) && e.At != nil }) {
		f.events = slices.DeleteFunc(f.events, func(e Event) bool { return staged(e) && e.At == nil })
	}
	sortEvents(f.events)
	beginLives(f.events)
	f.Events = f.events
}

// beginLives puts what does not say when it was queued before its first delivery:
// it is known from the last one.
func beginLives(all []Event) {
	for i, e := range all {
		if e.Event != Queued || e.At != nil || e.order.IsZero() {
			continue
		}
		first := i
		for first > 0 && !endsLife(all[first-1].Event) {
			first--
		}
		copy(all[first+1:i+1], all[first:i])
		all[first] = e
	}
}

// endsLife reports whether an entry of that name comes anew, if at all, after
// such an event.
func endsLife(event string) bool {
	switch event {
	case Delivered, string(inbox.EventRedelivered), string(inbox.EventDetached), string(inbox.EventFailed):
		return false
	}
	return true
}
