package history

import (
	"bytes"
	"fmt"

	"heartbeat/inbox"
)

// maxNotes is how many foreign lines of a file get a note each.
const maxNotes = 5

// Source is a file of an inbox with one record a line.
type Source[T any] struct {
	Path  string
	Open  func(n int) (*inbox.Tail, error) // starts at the last n lines, at all if n < 0
	Parse func(l []byte) (T, bool)         // false for a foreign line
	What  string                           // what a line is, for the notes
}

// Results are the lines of .results.jsonl.
func Results(box *inbox.Inbox) Source[inbox.Result] {
	return Source[inbox.Result]{box.ResultsPath(), box.TailResults, ParseResult, "result"}
}

func letters(box *inbox.Inbox) Source[letter] {
	return Source[letter]{box.DeadLetterPath(), box.TailDeadLetters, parseLetter, "dead letter"}
}

func events(box *inbox.Inbox) Source[inbox.Event] {
	return Source[inbox.Event]{box.EventsPath(), box.TailEvents, parseEvent, "event"}
}

// Reading is a source that was read to its end, and can be followed.
type Reading[T any] struct {
	source  Source[T]
	tail    *inbox.Tail
	foreign int
	notes   []string
}

// Last calls f for the last n records, all if n is 0. The reading has notes about
// lines that are no records. Close it in any case.
func (s Source[T]) Last(n int, f func(record T, line []byte)) (*Reading[T], error) {
	if n == 0 {
		r, _, err := s.read(-1, f)
		return r, err
	}
	for lines := n; ; {
		var records []T
		var raw [][]byte
		r, seen, err := s.read(lines, func(record T, line []byte) {
			records, raw = append(records, record), append(raw, bytes.Clone(line))
		})
		if err != nil || len(records) >= n || seen < lines {
			for i := max(0, len(records)-n); err == nil && i < len(records); i++ {
				f(records[i], raw[i])
			}
			return r, err
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
		lines += max(lines, n-len(records)) // some were foreign
	}
}

// read starts at the last n lines, and returns how many there were.
func (s Source[T]) read(n int, f func(T, []byte)) (r *Reading[T], seen int, err error) {
	r = &Reading[T]{source: s}
	if r.tail, err = s.Open(n); err != nil {
		return nil, 0, err
	}
	seen, err = r.Next(f)
	if err == nil {
		err = r.noteTorn()
	}
	if err != nil {
		_ = r.Close() // only read
		return nil, 0, fmt.Errorf("read %s: %w", s.Path, err)
	}
	return r, seen, nil
}

// Next calls f for the records that have come since, and returns the number of their
// lines.
func (r *Reading[T]) Next(f func(record T, line []byte)) (lines int, err error) {
	err = r.tail.Lines(func(l []byte) {
		lines++
		if len(bytes.TrimSpace(l)) == 0 {
			return
		}
		if record, ok := r.source.Parse(l); ok {
			f(record, l)
		} else if r.foreign++; r.foreign <= maxNotes {
			r.note("%s, offset %d: that line is no %s: it is left out", r.source.Path, r.tail.At(), r.source.What)
		}
	})
	if err != nil {
		return lines, fmt.Errorf("read %s: %w", r.source.Path, err)
	}
	return lines, nil
}

func (r *Reading[T]) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *Reading[T]) noteTorn() error {
	off, err := r.tail.Torn()
	if err == nil && off >= 0 {
		r.note("%s, offset %d: the last line is not whole: it is left out until it is", r.source.Path, off)
	}
	return err
}

// Notes returns sentences about lines that were left out, each once.
func (r *Reading[T]) Notes() []string {
	notes := r.notes
	if r.foreign > maxNotes {
		notes = append(notes, fmt.Sprintf("%s: %d more lines are no %s: they are left out", r.source.Path, r.foreign-maxNotes, r.source.What))
	}
	r.notes, r.foreign = nil, 0
	return notes
}

// Close ends the reading.
func (r *Reading[T]) Close() error { return r.tail.Close() }
