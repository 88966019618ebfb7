package outcomes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

const (
	// searchSpan bounds how much of the dead letters is read under the lock.
	searchSpan = 1 << 20
	// maxPasses bounds how often the file is read without the lock, so that this ends even if somebody keeps
	// filling or replacing the file.
	maxPasses = 100
)

// LetterReader reads the dead letters without the lock, and under the lock only what is new, so that others
// do not wait long for the lock.
type LetterReader struct {
	box     *inbox.Inbox
	letters map[uint64]known // by a sum of the name
	reasons []inbox.Reason   // see known
	lines   int
	foreign []int // the numbers of the lines that are neither letters nor marks, up to maxForeign
	strange int   // how many such lines there are
	torn    int   // the number of an unfinished last line, 0 for none
	seen    journal.Seen
	passes  int
}

// known is what is kept of a letter and its marks. It has no pointers: there may be hundreds of thousands of them.
type known struct {
	letter                       spot
	replied, requeued, accepted  spot   // the marks that count
	id                           uint64 // a sum of the id that the sender gave the entry, 0 for none
	at                           moment // when it was set aside
	reason                       uint8  // the index of its reason
	canceled, streamed, answered bool
}

// spot is the offset of a line plus one, 0 for none.
type spot int64

// mark returns the mark that stands there, an empty one if the line was edited since.
func (s spot) mark(f *disk.File) (m inbox.LetterMark, err error) {
	if s == 0 {
		return m, nil
	}
	line, err := lineOf(f, int64(s-1))
	if l, mark, _ := inbox.ParseLetter(line); mark {
		m = l.LetterMark
	}
	return m, err
}

// moment is a time in nanoseconds since 1970. The zero time and times before that range are the first moment, times
// after it the last.
type moment int64

const noMoment = moment(math.MinInt64)

func momentOf(at time.Time) moment {
	switch m := moment(at.UnixNano()); {
	case time.Unix(0, int64(m)).Equal(at):
		return m
	case at.Unix() < 0:
		return noMoment
	}
	return math.MaxInt64
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

// Update reads what is new, in a transaction. If there is much to read, or the file did more than grow, the error
// matches [inbox.ErrMore]: close the transaction, and call Read first.
func (r *LetterReader) Update(_ *inbox.Tx) error {
	if r.passes < maxPasses {
		return r.advance(searchSpan)
	}
	return r.advance(math.MaxInt64)
}

// Letter returns the letter of that name.
func (r *LetterReader) Letter(name string) (l inbox.Letter, there bool, err error) {
	known := r.letters[sumOf(name)]
	if known.letter == 0 {
		return l, false, nil
	}
	err = r.reading(func(f *disk.File) error {
		line, err := lineOf(f, int64(known.letter-1))
		if err != nil {
			return err
		}
		found, mark, ok := inbox.ParseLetter(line)
		if there = ok && !mark && found.Letter == name; !there { // edited since
			return nil
		}
		l = found
		l.LetterMark, err = known.marks(f)
		return err
	})
	return l, there, err
}

func (r *LetterReader) reading(read func(f *disk.File) error) error {
	return lettersError(journal.Reading(fileOf(r.box, journal.DeadLetters), read))
}

// Each visits every letter that was read, once and in the order of the file, until visit returns false.
func (r *LetterReader) Each(visit func(inbox.Letter) bool) error {
	return r.reading(func(f *disk.File) error {
		failed := r.stillThere(f)
		if failed != nil {
			return failed
		}
		err := lines.EachRecord(io.NewSectionReader(f, 0, r.seen.Size), 0, func(off, _ int64, line []byte, _ bool) bool {
			l, mark, ok := inbox.ParseLetter(line)
			known := r.letters[sumOf(l.Letter)]
			if !ok || mark || known.letter == 0 || known.letter != spot(off+1) {
				return true
			}
			l.LetterMark, failed = known.marks(f)
			return failed == nil && visit(l)
		})
		return errors.Join(err, failed)
	})
}

// stillThere returns an error if the letters do not stand in the file where they were read.
func (r *LetterReader) stillThere(f *disk.File) error {
	if f.Identity() != r.seen.File || f.Info().Size < r.seen.Size {
		return fmt.Errorf("%s was replaced meanwhile: try again", f.Path())
	}
	return nil
}

// marks reads the marks of a letter from the file: known keeps no late reply, which may be long, and no time zone.
func (l known) marks(f *disk.File) (inbox.LetterMark, error) {
	m, err := l.replied.mark(f)
	requeued, failed := l.requeued.mark(f)
	accepted, last := l.accepted.mark(f)
	m.RequeuedAt, m.AcceptedAt = requeued.RequeuedAt, accepted.AcceptedAt
	return m, errors.Join(err, failed, last)
}

var sumSeed = maphash.MakeSeed()

// sumOf returns a number that stands for a name or an id of any length, 0 for none.
func sumOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return maphash.String(sumSeed, text)
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
		r.add(what, off)
	}
}

// maxReason is how many bytes are kept of a reason. Those that heartbeat gives are shorter.
const maxReason = 64

// add merges a line with what is known of its letter. If several lines are the same letter, the first counts. The first
// late reply counts too.
func (r *LetterReader) add(line letterLine, off int64) {
	name := sumOf(line.name)
	l := r.letters[name]
	here := spot(off + 1)
	switch {
	case line.mark:
		if line.RepliedAt != nil {
			l.replied = cmp.Or(l.replied, here)
		}
		if line.RequeuedAt != nil {
			l.requeued = here
		}
		if line.AcceptedAt != nil {
			l.accepted = here
		}
	case l.letter == 0:
		l.letter, l.at, l.id = here, momentOf(line.at), sumOf(line.id)
		l.streamed, l.canceled = line.streamed, line.reason == inbox.ReasonCanceled
		reason := inbox.Reason(strings.ToValidUTF8(string(line.reason[:min(len(line.reason), maxReason)]), "")) // it may end within a rune
		i := slices.Index(r.reasons, reason)
		if i < 0 { // all reasons beyond the largest index share that one
			i = min(len(r.reasons), math.MaxUint8)
			r.reasons = append(r.reasons[:i], inbox.Reason(strings.Clone(string(reason))))
		}
		l.reason = uint8(i)
	}
	r.letters[name] = l
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

// advance continues the reading. If there are more than most bytes to read, it reads nothing, and the error matches
// [inbox.ErrMore].
func (r *LetterReader) advance(most int64) error {
	err := r.seen.Advance(fileOf(r.box, journal.DeadLetters), func(unread int64, anew bool) error {
		if unread > most {
			return inbox.ErrMore
		}
		if anew {
			r.forget()
		}
		return nil
	}, func(off, _ int64, l []byte, whole bool) bool {
		r.note(off, l, whole)
		return true
	})
	if err != nil && !errors.Is(err, inbox.ErrMore) {
		r.forget() // a partial reading must not pass for a complete one
	}
	return lettersError(err)
}

func (r *LetterReader) forget() {
	*r = LetterReader{box: r.box, letters: map[uint64]known{}, passes: r.passes}
}
