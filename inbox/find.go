package inbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// place is where an entry is.
type place struct {
	where      string // a Receipt's Found
	entryID    string
	start, end int64      // in the queue file, both 0 where it is not there
	notBefore  *time.Time // of a scheduled entry

	// text is the entry's text. If part is set, it is only the beginning, or stands for a text in a file. The whole
	// line may still be in the queue file, at from.
	text     string
	part     bool
	from, to int64
	letter   string    // the name of a dead letter
	ahead    bool      // it is sent in the same batch
	at       time.Time // of an answer
}

// stands returns the end of a sentence that begins with the entry: where it is.
func (p place) stands() string {
	switch {
	case p.ahead:
		return "comes before it"
	case p.where == setAside:
		return "became a dead letter"
	case p.where == FoundAnswered:
		return "was answered"
	}
	return "is " + p.where
}

// hasOtherText reports whether the entry at a place certainly has another text.
func (t *Tx) hasOtherText(p place, text string) bool {
	if !p.part {
		return p.text != text
	}
	if t.file != nil && p.from >= 0 {
		if l, err := readLine(t.file, p.from, min(p.to, t.queueSize()), MaxLine); err == nil && !l.tooLong && entryID(l.raw) == p.entryID {
			_, whole, _ := decodeLine(l.raw)
			return whole != text
		}
	}
	return p.text != "" && !strings.HasPrefix(p.text, standsFor) && firstCharacters(text) != p.text
}

// setAside is the where of a dead letter, which is never a [Receipt]'s Found.
const setAside = "dead letter"

// ErrTwin means that another entry does what a letter asks for.
var ErrTwin = errors.New("another entry has its id and its text")

// Twins finds entries that have the ids of letters. Each search continues where the last one ended.
type Twins struct{ nameSearch }

// Twins searches for entries with those ids, without the lock.
func (b *Inbox) Twins(ids map[string]bool) (*Twins, error) {
	s := &Twins{nameSearch{ids: ids}}
	return s, s.searchUnlocked(b)
}

// Of returns an error that matches [ErrTwin] if an entry with the letter's id and text waits, is in flight, or was
// answered after the letter was set aside: its sender sent it again.
func (s *Twins) Of(t *Tx, l Letter) error {
	if !s.ids[l.ID] {
		return nil
	}
	found, err := s.find(t, map[string]bool{l.ID: true})
	p, there := found[l.ID]
	if err != nil || !there || p.where == setAside || p.where == FoundAnswered && p.at.Before(l.DeadLetteredAt) || t.hasOtherText(p, l.Text()) {
		return err
	}
	return fmt.Errorf("requeue %s: %w and %s, so the work would be done twice: to have that, send the text under another id", l.Letter, ErrTwin, p.stands())
}

// find locates the entries with those envelope ids, without dead letters. It reads everything.
func (t *Tx) find(ids map[string]bool) (map[string]place, error) {
	l := nameSearch{ids: ids}
	found, err := l.find(t, ids)
	maps.DeleteFunc(found, func(_ string, p place) bool { return p.where == setAside })
	return found, err
}

// scanScheduled calls note for each scheduled entry until note returns false. goOn means that it never did.
func (t *Tx) scanScheduled(note func(string, place) bool) (goOn bool, err error) {
	goOn = true
	err = t.box.EachScheduled(func(s Scheduled) bool {
		at := s.NotBefore
		goOn = note(s.ID, place{where: FoundScheduled, entryID: s.EntryID, notBefore: &at, text: s.Text})
		return goOn
	})
	return goOn && err == nil, err
}

// scanQueue calls note for each entry with an id, from an offset of the queue file on. whole is false for a
// last line without its newline.
func (t *Tx) scanQueue(from int64, needle string, note func(id string, p place, whole bool) bool) error {
	if t.file == nil {
		return nil
	}
	from, err := t.file.SkipZeros(from, t.queueSize())
	if err != nil {
		return err
	}
	waits := io.NewSectionReader(t.file, from, t.queueSize()-from)
	return lines.Each(waits, from, func(off, end int64, l []byte, whole bool) bool {
		if !mayHold(l, needle) || !mayHold(l, `"id"`) || t.skips(off) {
			return true
		}
		id, text, _ := decodeLine(l)
		return id == "" || note(id, place{where: FoundQueued, entryID: entryID(l), start: off, end: end, text: text}, whole)
	})
}

// StillWaits reports whether the entry of a receipt waits, is in flight or is scheduled. It updates the entry's place
// in the receipt.
func (v *View) StillWaits(r *Receipt) (there bool, err error) {
	t := v.tx
	if slices.ContainsFunc(t.unsettled(), func(d *Delivery) bool { return d.EntryID == r.EntryID }) {
		return true, nil
	}
	if !t.canceledAt(r.Start) && r.Start < r.End && t.file != nil && r.Start >= t.st.Cursor {
		l, err := readLine(t.file, r.Start, t.queueSize(), MaxLine)
		if err == nil && (l.tooLong || entryID(l.raw) == r.EntryID) {
			return true, nil
		}
	}
	note := func(id string, p place) bool {
		if there = id == r.ID && p.entryID == r.EntryID; there {
			r.Start, r.End = p.start, p.end
		}
		return !there
	}
	goOn, err := t.scanScheduled(note)
	if err == nil && goOn {
		err = t.scanQueue(t.st.Cursor, r.ID, func(id string, p place, _ bool) bool { return note(id, p) })
	}
	return there, err
}

// noteAnswered keeps the first result of an id.
func (o *outcomes) noteAnswered(id string, l []byte) {
	if _, known := o.found[id]; known || id == "" || !json.Valid(l) {
		return
	}
	r, _ := flat.Parse(l) // it is valid
	text := r.String("prompt")
	o.found[id] = place{
		where: FoundAnswered, entryID: r.String("entry_id"), from: r.Int("start_offset"), to: r.Int("end_offset"),
		text: text, part: text == "" || utf8.RuneCountInString(text) >= keptPrompt, at: r.Time("acknowledged_at"),
	}
}

// noteSetAside keeps a dead letter that is open and was not canceled.
func (o *outcomes) noteSetAside(_ string, l []byte) {
	switch d, mark, ok := ParseLetter(l); {
	case !ok || mark && o.found[d.ID].letter != d.Letter:
	case mark:
		delete(o.found, d.ID)
	case d.Reason != ReasonCanceled:
		o.found[d.ID] = place{
			where: setAside, entryID: d.EntryID, letter: d.Letter, text: d.Text(), part: d.RawFile != "",
			from: d.StartOffset, to: d.EndOffset,
		}
	}
}

// mayHold rules out lines, without decoding them, that cannot hold the JSON string needle: they have neither
// its plain form nor an escape.
func mayHold(l []byte, needle string) bool {
	return needle == "" || bytes.Contains(l, []byte(needle)) || bytes.IndexByte(l, '\\') >= 0
}

// nameSearch is the result of a search for ids, and how far the search came in the queue file and the outcome files.
// The next search continues there.
type nameSearch struct {
	ids        map[string]bool
	generation int // of the queue file
	cursor     int64
	seen       journal.Seen // of the queue file
	queued     map[string][]place
	torn       map[string]place // found in a last line without its newline

	answered, aside outcomes
}

// needle returns the only id, "" if there are several.
func (l *nameSearch) needle() string {
	if len(l.ids) == 1 {
		for id := range l.ids {
			return id
		}
	}
	return ""
}

// outcomes is what was found in the results, or in the dead letters.
type outcomes struct {
	seen  journal.Seen
	found map[string]place
}

// searchUnlocked searches without the lock, so that little is left to search under it, however large the files are.
func (l *nameSearch) searchUnlocked(b *Inbox) (err error) {
	// Outcomes come first: an entry that is settled in between has its outcome behind the part that was read.
	if err := l.searchOutcomes(b); err != nil || sightOf(b.path).size < partBytes {
		return err // the queue takes no time under the lock
	}
	v, err := b.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return l.searchQueue(v.tx)
}

// find locates the entries with these of its ids, dead letters included.
func (l *nameSearch) find(t *Tx, ids map[string]bool) (map[string]place, error) {
	if err := l.searchOutcomes(t.box); err != nil {
		return nil, err
	}
	if err := l.searchQueue(t); err != nil {
		return nil, err
	}
	found := map[string]place{}
	note := func(id string, p place) bool {
		if _, known := found[id]; ids[id] && !known {
			found[id] = p
		}
		return true
	}
	for where, d := range map[string]*Delivery{FoundInFlight: t.inFlight, FoundQueued: t.redeliver} {
		if d != nil {
			note(d.ID(), place{
				where: where, entryID: d.EntryID, start: d.StartOffset, end: d.EndOffset,
				text: d.Text(), part: d.TextFile != "", from: d.StartOffset, to: d.EndOffset,
			})
		}
	}
	if _, err := t.scanScheduled(note); err != nil {
		return nil, err
	}
	for id := range ids {
		for _, p := range l.queued[id] {
			if p.start >= t.st.Cursor {
				note(id, p)
			}
		}
		for _, more := range []map[string]place{l.torn, l.answered.found, l.aside.found} {
			if p, there := more[id]; there {
				note(id, p)
			}
		}
	}
	return found, nil
}

func (l *nameSearch) searchQueue(t *Tx) error {
	from, known := t.st.Cursor, false // known means that the file is the one that was searched before
	if t.file != nil && l.generation == t.st.QueueGeneration && l.cursor <= t.st.Cursor {
		off, err := l.seen.In(t.file)
		if err != nil {
			return err
		}
		from, known = max(from, off), off > 0
	}
	if !known {
		l.queued = map[string][]place{}
	}
	l.torn = map[string]place{}
	l.generation, l.cursor, l.seen = t.st.QueueGeneration, t.st.Cursor, journal.Seen{}
	if t.file == nil {
		return nil
	}
	err := t.scanQueue(from, l.needle(), func(id string, p place, whole bool) bool {
		switch {
		case !l.ids[id]:
		case whole:
			l.queued[id] = append(l.queued[id], p)
		default:
			l.torn[id] = p
		}
		return true
	})
	if err != nil {
		return err
	}
	off, err := lines.Start(t.file, t.queueSize())
	if err == nil {
		l.seen, err = journal.SeenUpTo(t.file, off)
	}
	return err
}

// searchOutcomes finds the outcomes with those ids, behind what it read before. Of other lines it decodes only the id.
func (l *nameSearch) searchOutcomes(b *Inbox) error {
	search := func(kind journal.Kind, o *outcomes, note func(id string, line []byte)) (err error) {
		if o.found == nil {
			o.found = map[string]place{}
			if o.seen, err = b.seenWithout(kind, l.ids); err != nil {
				return err
			}
		}
		needle := l.needle()
		return o.seen.Advance(b.fileOf(kind), func(_ int64, anew bool) error {
			if anew {
				o.found = map[string]place{}
			}
			return nil
		}, func(_, _ int64, line []byte, _ bool) bool {
			if mayHold(line, needle) {
				if id := flat.Value(line).Get("id").Shown(); l.ids[id] {
					note(id, line)
				}
			}
			return true
		})
	}
	return cmp.Or(search(journal.Results, &l.answered, l.answered.noteAnswered), search(journal.DeadLetters, &l.aside, l.aside.noteSetAside))
}
