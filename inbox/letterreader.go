package inbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// LetterReader reads the dead letters without the lock, and under the lock only
// what came since: others do not wait long for it, however many letters there
// are. In memory it keeps where each line is, in 24 bytes.
type LetterReader struct {
	box     *Inbox
	spots   []spot // in the order of names and then offsets, up to sorted
	sorted  int
	reasons []Reason // of the letters, by their kinds
	notes   letterNotes
	torn    int // the number of a last line that is not whole, 0 for none
	seen    journal.Seen
	passes  int
	anew    int // how often the reading began anew
}

// spot is a line of .dead-letter.jsonl. Marks come after the letters of the same name.
type spot struct {
	name uint64 // of the letter
	what uint64 // whether it is a mark, where it begins, and in one byte its kind
	id   uint64 // a hash of the id that its sender gave the letter's entry, 0 for none
}

const (
	spotMark  = 1 << 63
	mostKinds = 1<<8 - 1
)

func newSpot(name string, off int64, mark bool, kind int) spot {
	s := spot{name: spotName(name), what: uint64(off)<<8 | uint64(kind)}
	if mark {
		s.what |= spotMark
	}
	return s
}

func (s spot) mark() bool { return s.what&spotMark != 0 }
func (s spot) off() int64 { return int64(s.what &^ spotMark >> 8) }

// kind is 1 for a mark that closes a letter, and of a letter the number of its reason.
func (s spot) kind() int { return int(s.what & mostKinds) }

// letterNotes are what a person is told of the file.
type letterNotes struct {
	Lines   int      `json:"lines"`
	Foreign int      `json:"foreign,omitempty"` // lines that are neither letters nor marks
	Named   []string `json:"named,omitempty"`   // the numbers of the first of them
}

// LetterReader starts a reading.
func (b *Inbox) LetterReader() *LetterReader { return &LetterReader{box: b} }

// Read reads where all dead letters are, or continues where it was. It takes no lock.
func (r *LetterReader) Read() (warnings []string, err error) {
	r.passes++
	if err := r.advance(nil); err != nil {
		return nil, err
	}
	return r.warnings(), nil
}

// Update reads, in a transaction, what came since. If that is much, or the file
// was changed in another way, the error matches [ErrMore]: close the transaction,
// and call Read first.
func (r *LetterReader) Update(_ *Tx) error {
	return r.advance(func(rest int64) error {
		if rest > searchSpan && r.passes < maxPasses {
			return ErrMore
		}
		return nil
	})
}

// Letter is the letter of that name.
func (r *LetterReader) Letter(name string) (l Letter, there bool, err error) {
	f, err := openState(r.box.fileOf(journal.DeadLetters))
	if f == nil || err != nil {
		return Letter{}, false, lettersError(err)
	}
	defer func() { err = lettersError(errors.Join(err, f.Close())) }()
	for _, s := range r.named(spotName(name)) {
		line, err := lineOf(f, s.off())
		if err != nil {
			return Letter{}, false, err
		}
		if l, mark, ok := ParseLetter(line); ok && !mark && l.Letter == name {
			return l, true, r.marked(f, &l)
		}
	}
	return Letter{}, false, nil
}

// Each visits the letters that were read, in the order of the file and each once, until
// visit returns false.
func (r *LetterReader) Each(visit func(Letter) bool) error {
	return r.each(func(spot) bool { return true }, visit)
}

func (r *LetterReader) each(wanted func(spot) bool, visit func(Letter) bool) error {
	f, err := openState(r.box.fileOf(journal.DeadLetters))
	if f == nil || err != nil {
		return lettersError(err)
	}
	if f.Identity() != r.seen.File || f.Info().Size < r.seen.Size {
		return lettersError(errors.Join(fmt.Errorf("%s was replaced meanwhile: try again", f.Path()), f.Close()))
	}
	r.sort()
	var failed error
	err = lines.EachRecord(io.NewSectionReader(f, 0, r.seen.Size), 0, func(off, _ int64, line []byte, _ bool) bool {
		l, mark, ok := ParseLetter(line)
		if !ok || mark {
			return true
		}
		if known := r.named(spotName(l.Letter)); len(known) == 0 || known[0].off() != off || !wanted(known[0]) {
			return true
		}
		failed = r.marked(f, &l)
		return failed == nil && visit(l)
	})
	return lettersError(errors.Join(err, failed, f.Close()))
}

// marked sets what became of the letter.
func (r *LetterReader) marked(f *disk.File, l *Letter) (err error) {
	l.LetterMark, err = marksIn(f, r.named(spotName(l.Letter)))
	return err
}

// marksIn is what the marks among these lines add up to.
func marksIn(f *disk.File, all []spot) (sum LetterMark, err error) {
	for _, s := range all {
		if !s.mark() {
			continue
		}
		line, err := lineOf(f, s.off())
		if err != nil {
			return sum, err
		}
		if m, mark, _ := ParseLetter(line); mark {
			sum.add(m.LetterMark)
		}
	}
	return sum, nil
}

// eachMarked visits what became of each letter that has a mark; there says that the letter
// itself is in the file.
func (r *LetterReader) eachMarked(visit func(name uint64, there bool, sum LetterMark)) error {
	f, err := openState(r.box.fileOf(journal.DeadLetters))
	if f == nil || err != nil {
		return lettersError(err)
	}
	r.sort()
	for from, to := 0, 0; from < len(r.spots) && err == nil; from = to {
		for to = from; to < len(r.spots) && r.spots[to].name == r.spots[from].name; to++ {
		}
		if !r.spots[to-1].mark() {
			continue
		}
		var sum LetterMark
		if sum, err = marksIn(f, r.spots[from:to]); err == nil {
			visit(r.spots[from].name, !r.spots[from].mark(), sum)
		}
	}
	return lettersError(errors.Join(err, f.Close()))
}

// lineOf is the line that begins at an offset.
func lineOf(f *disk.File, off int64) (line []byte, err error) {
	part := make([]byte, 1<<10) // nearly every mark is shorter
	n, err := f.ReadAt(part, off)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if end := bytes.IndexByte(part[:n], '\n'); end >= 0 {
		return part[:end], nil
	}
	err = lines.EachRecord(io.NewSectionReader(f, off, f.Info().Size-off), off, func(_, _ int64, l []byte, _ bool) bool {
		line = bytes.Clone(l)
		return false
	})
	return line, err
}

// spotName is the number of a letter's name: twelve hex digits, or what somebody wrote.
func spotName(name string) uint64 {
	if n, err := strconv.ParseUint(name, 16, 48); err == nil && len(name) == 12 {
		return n
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // it never fails
	return h.Sum64() | 1<<63
}

var idSeed = maphash.MakeSeed()

func spotID(id string) uint64 {
	if id == "" {
		return 0
	}
	return maphash.String(idSeed, id) | 1
}

func bySpot(a, b spot) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.what, b.what)) }

func (r *LetterReader) sort() {
	if r.sorted < len(r.spots) {
		slices.SortFunc(r.spots, bySpot)
		r.spots = slices.Compact(r.spots) // a last line is read again once it is whole
		r.sorted = len(r.spots)
	}
}

// named are the lines of that name, letters first.
func (r *LetterReader) named(name uint64) []spot {
	if len(r.spots)-r.sorted > 1<<10+r.sorted/8 {
		r.sort()
	}
	at := func(s spot, name uint64) int { return cmp.Compare(s.name, name) }
	from, there := slices.BinarySearchFunc(r.spots[:r.sorted], name, at)
	to := from
	for there && to < r.sorted && r.spots[to].name == name {
		to++
	}
	found := r.spots[from:to:to]
	for _, s := range r.spots[r.sorted:] {
		if s.name == name {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, bySpot)
	return found
}

// note keeps where a line is, and returns what it is.
func (r *LetterReader) note(off int64, l []byte, whole bool) (what letterLine) {
	r.torn = 0
	if whole {
		r.notes.Lines++ // a torn line is read again once it is whole
	}
	what = glance(l)
	switch {
	case len(bytes.TrimSpace(l)) == 0:
	case !what.ok && !whole:
		r.torn = r.notes.Lines + 1
	case !what.ok:
		if r.notes.Foreign++; len(r.notes.Named) < maxForeign {
			r.notes.Named = append(r.notes.Named, strconv.Itoa(r.notes.Lines))
		}
	case what.mark:
		closes := 0
		if what.closes {
			closes = 1
		}
		r.spots = append(r.spots, newSpot(what.letter, off, true, closes))
	default:
		s := newSpot(what.letter, off, false, r.kindOf(what.reason))
		s.id = spotID(what.id)
		r.spots = append(r.spots, s)
	}
	return what
}

// kindOf numbers the reasons. Somebody who writes more than fit has the rest counted as one.
func (r *LetterReader) kindOf(reason Reason) int {
	kind := slices.Index(r.reasons, reason)
	if kind < 0 {
		if kind = len(r.reasons); kind > mostKinds {
			return mostKinds
		}
		r.reasons = append(r.reasons, reason)
	}
	return kind
}

// letterLine is what is soon known of a line of .dead-letter.jsonl.
type letterLine struct {
	letter   string
	id       string // of a letter: its entry's, as its sender gave it
	mark, ok bool
	closes   bool   // the mark says that somebody dealt with the letter
	reason   Reason // of the letter; of a mark "" if it does not say
}

// glance is [ParseLetter] of a line that nearly always was written here, in a tenth of
// the time.
func glance(l []byte) (what letterLine) {
	const begins = `{"entry_id":"`
	if bytes.HasPrefix(l, []byte(begins)) {
		var d DeadLetter
		var err error
		valid := flat.Each(l, func(name, value []byte) {
			var bad error
			switch text := flat.Value(value); string(name) {
			case `"entry_id"`:
				d.EntryID = text.Text()
			case `"start_offset"`:
				d.StartOffset, bad = strconv.ParseInt(string(value), 10, 64)
			case `"id"`:
				d.ID = text.Text()
			case `"reason"`:
				d.Reason = Reason(text.Text())
			case `"dead_lettered_at"`:
				d.DeadLetteredAt, bad = time.Parse(time.RFC3339, text.Text())
			}
			err = cmp.Or(err, bad)
		})
		if valid && err == nil && d.EntryID != "" && d.Reason != "" && !d.DeadLetteredAt.IsZero() {
			return letterLine{letter: letterName(d), id: d.ID, ok: true, reason: d.Reason}
		}
	}
	letter, isMark, ok := ParseLetter(l)
	what = letterLine{letter: letter.Letter, id: letter.ID, mark: isMark, ok: ok, reason: letter.Reason}
	if isMark {
		what.closes, what.reason = !letter.Open(), Reason(flat.Value(l).Get("of").Text())
	}
	return what
}

// maxForeign is how many invalid lines are named one by one.
const maxForeign = 5

func (r *LetterReader) warnings() (all []string) {
	path := r.box.fileOf(journal.DeadLetters)
	if r.torn > 0 {
		all = append(all, fmt.Sprintf("%s ends in the middle of line %d: that line is left out until it is whole", path, r.torn))
	}
	if n := r.notes.Foreign; n > 0 {
		lines := strings.Join(r.notes.Named, ", ")
		if n > maxForeign {
			lines += fmt.Sprintf(" and %d more", n-maxForeign)
		}
		all = append(all, fmt.Sprintf("%s, line %s: not a dead letter on one line: it stays as it is", path, lines))
	}
	return all
}

// advance continues the reading. First it asks may, with the number of bytes.
func (r *LetterReader) advance(may func(rest int64) error) error {
	return r.advanceWith(may, func(letterLine) {})
}

// advanceWith calls visit with each line.
func (r *LetterReader) advanceWith(may func(rest int64) error, visit func(letterLine)) (err error) {
	f, err := openState(r.box.fileOf(journal.DeadLetters))
	if err != nil {
		return lettersError(err)
	}
	if f == nil {
		r.forget()
		return nil
	}
	defer func() { err = lettersError(errors.Join(err, f.Close())) }()
	from, err := r.seen.In(f)
	if err == nil && may != nil {
		err = may(f.Info().Size - from)
	}
	if err != nil {
		return err
	}
	if from == 0 {
		r.forget()
		if err := r.makeRoom(f); err != nil {
			return err
		}
	}
	upTo := from
	err = lines.EachRecord(io.NewSectionReader(f, from, f.Info().Size-from), from, func(off, end int64, l []byte, whole bool) bool {
		if visit(r.note(off, l, whole)); whole {
			upTo = end
		}
		return true
	})
	if err == nil {
		r.seen, err = journal.SeenUpTo(f, upTo)
	}
	if err != nil {
		r.forget() // a part must not pass for the whole
	}
	return err
}

// makeRoom is for as many lines as the file will have: growing takes twice the memory.
func (r *LetterReader) makeRoom(f *disk.File) error {
	begin := make([]byte, min(64<<10, f.Info().Size))
	n, err := f.ReadAt(begin, 0)
	if few := bytes.Count(begin[:n], []byte("\n")); few > 0 {
		r.spots = make([]spot, 0, f.Info().Size/int64(n)*int64(few)*9/8)
	}
	return ignoreEnd(err)
}

func (r *LetterReader) forget() {
	*r = LetterReader{box: r.box, passes: r.passes, anew: r.anew + 1}
}

// EachLetter visits the dead letters, the oldest first, each once, until visit returns
// false. It takes no lock. Invalid lines give warnings.
func (b *Inbox) EachLetter(visit func(Letter) bool) (warnings []string, err error) {
	r := b.LetterReader()
	if warnings, err = r.Read(); err != nil {
		return nil, err
	}
	return warnings, r.Each(visit)
}

// EachOpenLetter is [Inbox.EachLetter] of those that somebody has yet to deal with: see
// [LetterCount].
func (b *Inbox) EachOpenLetter(visit func(Letter) bool) (warnings []string, err error) {
	r := b.LetterReader()
	if warnings, err = r.Read(); err != nil {
		return nil, err
	}
	open, err := r.open()
	if err != nil {
		return warnings, err
	}
	return warnings, r.each(func(s spot) bool { return among(open, s.name) }, visit)
}

// OpenLetters reports of a letter, by its name, whether somebody has yet to deal with it.
func (b *Inbox) OpenLetters() (func(name string) bool, error) {
	r := b.LetterReader()
	if _, err := r.Read(); err != nil {
		return nil, err
	}
	open, err := r.open()
	return func(name string) bool { return among(open, spotName(name)) }, err
}

// Letters are all that [Inbox.EachLetter] visits. They are in memory at once.
func (b *Inbox) Letters() (all []Letter, warnings []string, err error) {
	warnings, err = b.EachLetter(func(l Letter) bool {
		all = append(all, l)
		return true
	})
	return all, warnings, err
}
