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

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// LetterReader reads the dead letters without the lock, and under the lock only what is new, so that others
// do not wait long for the lock. It keeps in memory only where each line is, 24 bytes a line.
type LetterReader struct {
	box     *Inbox
	spots   []spot // sorted by name and offset, up to sorted
	sorted  int
	reasons []Reason // of the letters, indexed by kind
	notes   letterNotes
	torn    int // the number of an unfinished last line, 0 for none
	seen    journal.Seen
	passes  int
	anew    int // how often the reading began anew
}

// spot is a line of .dead-letter.jsonl. Marks sort behind the letters of the same name.
type spot struct {
	name uint64 // of the letter
	what uint64 // the mark flag, the offset, and in the lowest byte the kind
	id   uint64 // a hash of the id that the sender gave the entry, 0 for none
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

// kind is 1 for a mark that closes its letter, and the number of its reason for a letter.
func (s spot) kind() int { return int(s.what & mostKinds) }

// letterNotes counts what a person is told about the file.
type letterNotes struct {
	Lines   int      `json:"lines"`
	Foreign int      `json:"foreign,omitempty"` // lines that are neither letters nor marks
	Named   []string `json:"named,omitempty"`   // the line numbers of the first of them
}

// LetterReader starts a reading.
func (b *Inbox) LetterReader() *LetterReader { return &LetterReader{box: b} }

// Read reads all dead letters, or continues the last reading. It takes no lock.
func (r *LetterReader) Read() (warnings []string, err error) {
	r.passes++
	if err := r.advance(nil, nil); err != nil {
		return nil, err
	}
	return r.warnings(), nil
}

// Update reads what is new, in a transaction. If that is much, or the file did more than grow, the error
// matches [ErrMore]: close the transaction, and call Read first.
func (r *LetterReader) Update(_ *Tx) error {
	return r.advance(func(rest int64) error {
		if rest > searchSpan && r.passes < maxPasses {
			return ErrMore
		}
		return nil
	}, nil)
}

// Letter returns the letter of that name.
func (r *LetterReader) Letter(name string) (l Letter, there bool, err error) {
	f, err := journal.OpenState(r.box.fileOf(journal.DeadLetters))
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

// Each visits every letter that was read, in the order of the file and each of them once, until visit returns
// false.
func (r *LetterReader) Each(visit func(Letter) bool) error {
	return r.each(func(spot) bool { return true }, visit)
}

func (r *LetterReader) each(wanted func(spot) bool, visit func(Letter) bool) error {
	f, err := journal.OpenState(r.box.fileOf(journal.DeadLetters))
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

// marked adds the letter's marks.
func (r *LetterReader) marked(f *disk.File, l *Letter) (err error) {
	l.LetterMark, err = marksIn(f, r.named(spotName(l.Letter)))
	return err
}

// marksIn merges the marks among these lines.
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

// eachMarked visits the merged marks of each letter that has any. there says that the letter itself is in the
// file.
func (r *LetterReader) eachMarked(visit func(name uint64, there bool, sum LetterMark)) error {
	f, err := journal.OpenState(r.box.fileOf(journal.DeadLetters))
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

// lineOf returns the line that begins at an offset.
func lineOf(f *disk.File, off int64) (line []byte, err error) {
	part := make([]byte, 1<<10) // long enough for nearly every mark
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

// spotName maps a letter's name to a number: twelve hex digits, or a hash of what somebody wrote.
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
		r.spots = slices.Compact(r.spots) // a last line is read again once it is complete
		r.sorted = len(r.spots)
	}
}

// named returns the lines of that name, letters first.
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

// note remembers where a line is, and returns what it is.
func (r *LetterReader) note(off int64, l []byte, whole bool) (what letterLine) {
	r.torn = 0
	if whole {
		r.notes.Lines++ // a torn line is read again once it is complete
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

// kindOf numbers the reasons. Beyond the largest number all reasons share one.
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

// maxForeign is how many invalid lines are listed by number.
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

// advance continues the reading. It first asks may with the number of bytes to read, and calls visit for each
// line. Both may be nil.
func (r *LetterReader) advance(may func(rest int64) error, visit func(letterLine)) (err error) {
	f, err := journal.OpenState(r.box.fileOf(journal.DeadLetters))
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
		if what := r.note(off, l, whole); visit != nil {
			visit(what)
		}
		if whole {
			upTo = end
		}
		return true
	})
	if err == nil {
		r.seen, err = journal.SeenUpTo(f, upTo)
	}
	if err != nil {
		r.forget() // a partial reading must not pass for a complete one
	}
	return err
}

// makeRoom reserves space for as many lines as the file seems to have, because growing takes twice the
// memory.
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
