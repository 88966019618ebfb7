package outcomes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

const (
	// searchSpan bounds how much of the dead letters is read under the lock.
	searchSpan = 1 << 20
	// maxPasses bounds how often a reading starts over without the lock, so that it ends even if somebody keeps
	// filling or replacing the file.
	maxPasses = 100
)

// LetterReader reads the dead letters without the lock, and under the lock only what is new, so that others
// do not wait long for the lock. It keeps in memory only where each line is, 24 bytes a line.
type LetterReader struct {
	box     *inbox.Inbox
	spots   []spot
	sorted  bool
	reasons []inbox.Reason // see spot
	lines   int
	foreign []int // the numbers of the lines that are neither letters nor marks, up to maxForeign
	strange int   // how many such lines there are
	torn    int   // the number of an unfinished last line, 0 for none
	seen    journal.Seen
	passes  int
}

// spot is a line of .dead-letter.jsonl.
type spot struct {
	name     uint64 // of the letter: see spotName
	off      int64
	id       uint32 // a hash of the id that the sender gave the entry, 0 for none
	reason   uint8  // the index of a letter's reason
	mark     bool
	closes   bool // it is a mark that closes the letter
	streamed bool // see [StreamMember]
}

// NewLetterReader starts a reading.
func NewLetterReader(b *inbox.Inbox) *LetterReader { return &LetterReader{box: b} }

// Read reads all dead letters, or continues the last reading. It takes no lock.
func (r *LetterReader) Read() (warnings []string, err error) {
	r.passes++
	if err := r.advance(math.MaxInt64); err != nil {
		return nil, err
	}
	return r.warnings(), nil
}

// Update reads what is new, in a transaction. If that is much, or the file did more than grow, the error
// matches [ErrMore]: close the transaction, and call Read first.
func (r *LetterReader) Update(_ *inbox.Tx) error {
	if r.passes < maxPasses {
		return r.advance(searchSpan)
	}
	return r.advance(math.MaxInt64)
}

// Letter returns the letter of that name.
func (r *LetterReader) Letter(name string) (l inbox.Letter, there bool, err error) {
	f, err := journal.OpenState(fileOf(r.box, journal.DeadLetters))
	if f == nil || err != nil {
		return inbox.Letter{}, false, lettersError(err)
	}
	defer func() { err = lettersError(errors.Join(err, f.Close())) }()
	same := r.named(spotName(name))
	for _, s := range same {
		line, err := lineOf(f, s.off)
		if err != nil {
			return inbox.Letter{}, false, err
		}
		if l, mark, ok := inbox.ParseLetter(line); ok && !mark && l.Letter == name {
			l.LetterMark, err = marksIn(f, same)
			return l, true, err
		}
	}
	return inbox.Letter{}, false, nil
}

// Each visits every letter that was read, in the order of the file and each of them once, until visit returns
// false.
func (r *LetterReader) Each(visit func(inbox.Letter) bool) error {
	f, err := journal.OpenState(fileOf(r.box, journal.DeadLetters))
	if f == nil || err != nil {
		return lettersError(err)
	}
	if f.Identity() != r.seen.File || f.Info().Size < r.seen.Size {
		return lettersError(errors.Join(fmt.Errorf("%s was replaced meanwhile: try again", f.Path()), f.Close()))
	}
	var failed error
	err = lines.EachRecord(io.NewSectionReader(f, 0, r.seen.Size), 0, func(off, _ int64, line []byte, _ bool) bool {
		l, mark, ok := inbox.ParseLetter(line)
		if !ok || mark {
			return true
		}
		same := r.named(spotName(l.Letter))
		if len(same) == 0 || same[0].off != off {
			return true
		}
		l.LetterMark, failed = marksIn(f, same)
		return failed == nil && visit(l)
	})
	return lettersError(errors.Join(err, failed, f.Close()))
}

// marksIn merges the marks among these lines.
func marksIn(f *disk.File, same []spot) (sum inbox.LetterMark, err error) {
	for _, s := range same {
		if !s.mark {
			continue
		}
		line, err := lineOf(f, s.off)
		if err != nil {
			return sum, err
		}
		if m, mark, _ := inbox.ParseLetter(line); mark {
			if sum.RepliedAt == nil && m.RepliedAt != nil { // the first late reply counts
				sum.LateReply, sum.RepliedAt = m.LateReply, m.RepliedAt
			}
			sum.RequeuedAt, sum.AcceptedAt = cmp.Or(m.RequeuedAt, sum.RequeuedAt), cmp.Or(m.AcceptedAt, sum.AcceptedAt)
		}
	}
	return sum, nil
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

func spotID(id string) uint32 {
	if id == "" {
		return 0
	}
	return uint32(maphash.String(idSeed, id)) | 1
}

// bySpot sorts the lines by name, a letter before its marks.
func bySpot(a, b spot) int {
	if a.name == b.name && a.mark != b.mark {
		if a.mark {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.off, b.off))
}

func (r *LetterReader) sort() {
	if !r.sorted {
		slices.SortFunc(r.spots, bySpot)
		r.spots = slices.Compact(r.spots) // a last line is read again once it is complete
		r.sorted = true
	}
}

// byName yields the lines of each name, letters first.
func (r *LetterReader) byName() iter.Seq[[]spot] {
	return func(yield func([]spot) bool) {
		r.sort()
		for from := 0; from < len(r.spots); {
			same := r.named(r.spots[from].name)
			if !yield(same) {
				return
			}
			from += len(same)
		}
	}
}

// named returns the lines of that name, letters first.
func (r *LetterReader) named(name uint64) []spot {
	r.sort()
	from, _ := slices.BinarySearchFunc(r.spots, name, func(s spot, name uint64) int { return cmp.Compare(s.name, name) })
	to := from
	for to < len(r.spots) && r.spots[to].name == name {
		to++
	}
	return r.spots[from:to:to]
}

func (r *LetterReader) note(off int64, l []byte, whole bool) {
	r.torn = 0
	if whole {
		r.lines++ // a torn line is read again once it is complete
	}
	what := glance(l)
	switch {
	case len(bytes.TrimSpace(l)) == 0:
	case !what.ok && !whole:
		r.torn = r.lines + 1
	case !what.ok:
		if r.strange++; len(r.foreign) < maxForeign {
			r.foreign = append(r.foreign, r.lines)
		}
	default:
		s := spot{name: spotName(what.letter), off: off, mark: what.mark, closes: what.closes}
		if !what.mark {
			i := slices.Index(r.reasons, what.reason)
			if i < 0 { // beyond the largest number all reasons share one
				i = min(len(r.reasons), math.MaxUint8)
				r.reasons = append(r.reasons[:i], what.reason)
			}
			s.id, s.reason, s.streamed = spotID(what.id), uint8(i), what.streamed
		}
		r.spots, r.sorted = append(r.spots, s), false
	}
}

// maxForeign is how many invalid lines are listed by number.
const maxForeign = 5

func (r *LetterReader) warnings() (all []string) {
	path := fileOf(r.box, journal.DeadLetters)
	if r.torn > 0 {
		all = append(all, fmt.Sprintf("%s ends in the middle of line %d: that line is left out until it is whole", path, r.torn))
	}
	if n := r.strange; n > 0 {
		lines := strings.ReplaceAll(strings.Trim(fmt.Sprint(r.foreign), "[]"), " ", ", ")
		if n > maxForeign {
			lines += fmt.Sprintf(" and %d more", n-maxForeign)
		}
		all = append(all, fmt.Sprintf("%s, line %s: not a dead letter on one line: it stays as it is", path, lines))
	}
	return all
}

// advance continues the reading. If there is more to read than that, it reads nothing, and the error matches
// [ErrMore].
func (r *LetterReader) advance(most int64) (err error) {
	f, err := journal.OpenState(fileOf(r.box, journal.DeadLetters))
	if err != nil {
		return lettersError(err)
	}
	if f == nil {
		r.forget()
		return nil
	}
	defer func() { err = lettersError(errors.Join(err, f.Close())) }()
	from, err := r.seen.In(f)
	if err != nil {
		return err
	}
	if f.Info().Size-from > most {
		return inbox.ErrMore
	}
	if from == 0 {
		r.forget()
		// Room for as many lines as the file seems to have, because growing takes twice the memory.
		begin := make([]byte, min(64<<10, f.Info().Size))
		n, err := f.ReadAt(begin, 0)
		if few := bytes.Count(begin[:n], []byte("\n")); few > 0 {
			r.spots = make([]spot, 0, f.Info().Size/int64(n)*int64(few)*9/8)
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	upTo := from
	err = lines.EachRecord(io.NewSectionReader(f, from, f.Info().Size-from), from, func(off, end int64, l []byte, whole bool) bool {
		if r.note(off, l, whole); whole {
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

func (r *LetterReader) forget() {
	*r = LetterReader{box: r.box, passes: r.passes}
}
