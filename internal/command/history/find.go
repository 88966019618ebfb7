package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"heartbeat/inbox"
	"heartbeat/internal/lines"
	"heartbeat/internal/words"
)

// Errors of [Find].
var (
	ErrUnknown   = errors.New("no such entry")
	ErrAmbiguous = errors.New("more than one entry is called that")
)

// Found is everything that is known about one entry.
type Found struct {
	ID, EntryID string
	// Result is the line of .results.jsonl with the entry's last answer, and Answered that line parsed.
	Result   []byte
	Answered inbox.Result
	Letter   *inbox.Letter // the last dead letter, unless it was requeued or answered since
	Where    string        // the place now, in the words of [inbox.Receipt], empty if the entry is settled
	Notes    []string      // sentences about lines that were left out

	collection // the events, oldest first
	requeued   map[string]bool
}

// Name returns the entry's id, or else its entry id.
func (f *Found) Name() string { return words.Name(f.ID, f.EntryID) }

// Last returns the last n events, all if n is 0.
func (f *Found) Last(n int) []Event { return lastOf(f.Events, n) }

// Is reports whether an event belongs to this entry.
func (f *Found) Is(e Event) bool {
	if f.ID != "" {
		return e.ID == f.ID
	}
	return e.EntryID == f.EntryID
}

const maxCandidates = 5 // how many entries an error names for an ambiguous word

// search looks for the entries that a word may name.
type search struct {
	word
	found map[match]*Found
	names []string // of entries that begin with the word, in the order of discovery
	notes []string
}

// Find looks for an entry by its id, its entry id, or a unique prefix of either of at least four characters. It
// reads everything that is kept or waits, but decodes only what may match.
func Find(box *inbox.Inbox, text string) (*Found, error) {
	s := &search{word: word(text), found: map[match]*Found{}}
	if err := s.run(box); err != nil {
		return nil, err
	}
	f, err := s.choose(box)
	if err != nil {
		return nil, err
	}
	if l := f.Letter; l != nil && (f.requeued[l.Letter] || f.Result != nil && f.Answered.AcknowledgedAt.After(l.DeadLetteredAt)) {
		f.Letter = nil
	}
	staged := func(e Event) bool { return e.Event == string(inbox.EventScheduled) }
	if slices.ContainsFunc(f.Events, func(e Event) bool { return staged(e) && e.At != nil }) {
		f.Events = slices.DeleteFunc(f.Events, func(e Event) bool { return staged(e) && e.At == nil })
	}
	Sort(f.Events)
	beginLives(f.Events)
	f.Notes = s.notes
	return f, nil
}

// run reads the sources. Entries move from the first towards the last, so a moving one is found at least once.
func (s *search) run(box *inbox.Inbox) error {
	return cmp.Or(
		box.EachScheduled(func(e inbox.Scheduled) bool {
			s.each(e.ID, e.EntryID, func(f *Found) {
				f.Where = inbox.FoundScheduled
				f.add(Event{Event: string(inbox.EventScheduled), ID: e.ID, EntryID: e.EntryID, Until: &e.NotBefore})
			})
			return true
		}),
		s.view(box),
		scan(s, Results(box), func(r inbox.Result, line []byte) {
			s.each(r.ID, r.EntryID, func(f *Found) {
				f.Result, f.Answered = bytes.Clone(line), r
				f.add(resultEvents(r)...)
			})
		}),
		scan(s, letters(box), func(l letter, _ []byte) {
			s.each(l.ID, l.EntryID, func(f *Found) {
				f.add(letterEvents(l)...)
				if l.mark {
					f.requeued[l.Letter.Letter] = f.requeued[l.Letter.Letter] || l.RequeuedAt != nil
				} else {
					f.Letter = &l.Letter
				}
			})
		}),
		scan(s, events(box), func(e inbox.Event, _ []byte) {
			s.each(e.ID, e.EntryID, func(f *Found) { f.add(recordedEvents(e)...) })
		}),
	)
}

// scan reads a whole source. It neither decodes nor reports lines that cannot belong to the entry.
func scan[T any](s *search, source Source[T], f func(T, []byte)) error {
	parse := source.Parse
	source.Parse = func(l []byte) (record T, ok bool) {
		if !s.namesLine(l) {
			return record, true
		}
		return parse(l)
	}
	notes, err := source.Each(0, f)
	s.notes = append(s.notes, notes...)
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
			f.add(deliveryEvents(d)...)
		})
	}
	again := v.Redeliver()
	if again != nil {
		s.each(again.ID(), again.EntryID, func(f *Found) { f.add(deliveryEvents(again)...) })
	}
	return v.Waits(s.namesQueued, func(w inbox.Waiting) bool {
		s.each(w.ID, w.EntryID, func(f *Found) {
			if f.Where != inbox.FoundInFlight {
				f.Where = inbox.FoundQueued
			}
			if again == nil || again.StartOffset != w.Start { // a redelivered entry was queued before
				f.add(waitingEvent(w))
			}
		})
		return true
	})
}

// isFull reports whether more entries share the prefix than an error names. From then on only an exact name counts.
func (s *search) isFull() bool { return len(s.names) > maxCandidates }

// each calls note with an entry that a source has, if the word fits.
func (s *search) each(id, entryID string, note func(*Found)) {
	m := match{fit: s.fits(id, entryID)}
	switch m.fit {
	case fitsNot:
		return
	case fitsBeginning:
		m.name = cmp.Or(id, entryID)
	}
	if s.found[m] == nil {
		if m.fit == fitsBeginning {
			if s.isFull() {
				return
			}
			s.names = append(s.names, m.name)
		}
		s.found[m] = &Found{ID: id, EntryID: entryID, collection: collection{seen: map[eventKey]bool{}}, requeued: map[string]bool{}}
	}
	note(s.found[m])
}

func (s *search) choose(box *inbox.Inbox) (*Found, error) {
	for _, how := range []fit{fitsID, fitsOwn} {
		if f := s.found[match{fit: how}]; f != nil {
			return f, nil
		}
	}
	switch {
	case len(s.names) == 1:
		return s.found[match{fitsBeginning, s.names[0]}], nil
	case len(s.names) > 1:
		var names []string
		for _, name := range s.names[:min(len(s.names), maxCandidates)] {
			names = append(names, words.Brief(name))
		}
		candidates := strings.Join(names, " or ")
		if s.isFull() {
			candidates = strings.Join(names, ", ") + " or others"
		}
		return nil, fmt.Errorf("%w: %.200q may be %s: give more of it", ErrAmbiguous, s.word, candidates)
	case utf8.RuneCountInString(string(s.word)) < minPrefix:
		return nil, fmt.Errorf("%w: nothing of %s is called %.200q, and a beginning needs %d characters", ErrUnknown, box.Path(), s.word, minPrefix)
	}
	return nil, fmt.Errorf("%w: nothing in %s is called %.200q or begins like that: it may have been rotated or trimmed away", ErrUnknown, box.Path(), s.word)
}

// beginLives moves a "queued" without a time, which was placed at the last delivery, before the first one.
func beginLives(all []Event) {
	// Whatever follows any other event is about a new entry of the same name.
	within := []string{Delivered, string(inbox.EventRedelivered), string(inbox.EventDetached), string(inbox.EventFailed)}
	for i, e := range all {
		if e.Event != Queued || e.At != nil || e.order.IsZero() {
			continue
		}
		first := i
		for first > 0 && slices.Contains(within, all[first-1].Event) {
			first--
		}
		copy(all[first+1:i+1], all[first:i])
		all[first] = e
	}
}

const minPrefix = 4 // how many characters of a name are enough

// word is what somebody calls a thing.
type word string

// fit is how well a word fits a thing. A sender's id beats a name from heartbeat, and both beat a prefix.
type fit int

const (
	fitsNot fit = iota
	fitsBeginning
	fitsOwn
	fitsID
)

// match is how an entry fits, and its name if only the name's beginning fits.
type match struct {
	fit
	name string
}

// fits compares the word with a thing's id, which may be empty, and the names that heartbeat gives it. A trailing "…",
// with which lists cut a name, is no part of the name's beginning.
func (w word) fits(id string, own ...string) fit {
	text := string(w)
	begin := strings.TrimSuffix(text, "…")
	begins := func(name string) bool { return strings.HasPrefix(name, begin) }
	switch {
	case text == "":
		return fitsNot
	case text == id:
		return fitsID
	case slices.Contains(own, text):
		return fitsOwn
	case utf8.RuneCountInString(begin) >= minPrefix && (begins(id) || slices.ContainsFunc(own, begins)):
		return fitsBeginning
	}
	return fitsNot
}

// namesLine reports, without decoding the line, whether the word fits the names in it.
func (w word) namesLine(line []byte) bool {
	return w.fits(gjson.GetBytes(line, "id").String(), gjson.GetBytes(line, "entry_id").String()) != fitsNot
}

// namesQueued is [word.namesLine] for a line of the queue, whose entry id is its hash.
func (w word) namesQueued(line []byte) bool {
	hash := ""
	if strings.Trim(strings.TrimSuffix(string(w), "…"), "0123456789abcdef") == "" {
		hash = lines.ID(line)
	}
	return w.fits(gjson.GetBytes(line, "id").String(), hash) != fitsNot
}

// Names are the names of a thing: its sender's id, which may be empty, and then those that heartbeat gives it.
type Names []string

// Resolve returns what a word means: the things that it fits best. Several mean that the word is ambiguous.
func Resolve[T any](text string, all []T, namesOf func(T) Names) (found []T) {
	best := fitsNot
	for _, t := range all {
		n := namesOf(t)
		how := word(text).fits(n[0], n[1:]...)
		if how > best {
			best, found = how, nil
		}
		if how == best && how != fitsNot {
			found = append(found, t)
		}
	}
	return found
}

// MayBeNamed reports whether any of the words may name a thing with these names.
func MayBeNamed(words []string, n Names) bool {
	return slices.ContainsFunc(words, func(text string) bool { return word(text).fits(n[0], n[1:]...) != fitsNot })
}
