package inbox

import (
	"errors"
	"io"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// LetterReader reads the dead letters without the lock, and under the lock only
// what came since: others do not wait long for it, however many letters there
// are.
type LetterReader struct {
	box    *Inbox
	read   *letterReading // nil before anything was read
	of     journal.Point  // how far it was read
	seen   disk.Info      // the file as it was then
	before string         // the bytes before that point, to recognise the file
	passes int
}

// LetterReader starts a reading.
func (b *Inbox) LetterReader() *LetterReader { return &LetterReader{box: b} }

// Read reads all dead letters, as [Inbox.Letters] does, or continues where it
// was. It takes no lock.
func (r *LetterReader) Read() (all []Letter, warnings []string, err error) {
	r.passes++
	if err := r.advance(nil); err != nil || r.read == nil {
		return nil, nil, err
	}
	return r.read.result()
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
func (r *LetterReader) Letter(name string) (l Letter, there bool) {
	if r.read == nil {
		return Letter{}, false
	}
	i, there := r.read.known[name]
	if there {
		l = r.read.letters[i]
		r.read.marked(&l)
	}
	return l, there
}

// advance continues the reading. First it asks may, with the number of bytes.
func (r *LetterReader) advance(may func(rest int64) error) (err error) {
	f, err := openState(r.box.fileOf(journal.DeadLetters))
	if err != nil {
		return lettersError(err)
	}
	if f == nil {
		r.read, r.of = nil, journal.Point{}
		return nil
	}
	defer func() { err = lettersError(errors.Join(err, f.Close())) }()
	known, err := r.knows(f)
	if err != nil {
		return err
	}
	from := r.of.Off
	if !known {
		from = 0
	}
	if may != nil {
		if err := may(f.Info().Size - from); err != nil {
			return err
		}
	}
	if !known {
		r.read = newLetterReading(f.Path())
	}
	r.of, r.seen, r.before = journal.Point{File: f.Identity(), Off: from}, f.Info(), ""
	err = lines.EachRecord(io.NewSectionReader(f, from, f.Info().Size-from), from, func(_, end int64, l []byte, whole bool) bool {
		if r.read.line(l, whole); whole {
			r.of.Off = end
		}
		return true
	})
	if err == nil {
		r.before, err = textBefore(f, r.of.Off)
	}
	if err != nil {
		r.read = nil // a part must not pass for the whole
	}
	return err
}

// knows reports whether the file is the one that was read and has only grown.
func (r *LetterReader) knows(f *disk.File) (bool, error) {
	now := f.Info()
	if r.read == nil || r.of.File != f.Identity() || now.Size < r.seen.Size {
		return false, nil
	}
	if now.Size == r.seen.Size && now.Mtime != r.seen.Mtime {
		return false, nil // edited in place
	}
	before, err := textBefore(f, r.of.Off)
	return before == r.before, err
}

// Letters reads the dead letters, the oldest first, each once. It takes no lock.
// Invalid lines give warnings.
func (b *Inbox) Letters() (all []Letter, warnings []string, err error) {
	read, err := b.readLetters()
	if read == nil || err != nil {
		return nil, nil, err
	}
	return read.result()
}

// readLetters is nil if there are no dead letters.
func (b *Inbox) readLetters() (*letterReading, error) {
	r := b.LetterReader()
	err := r.advance(nil)
	return r.read, err
}
