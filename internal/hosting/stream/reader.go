package stream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the longest line that is kept, in bytes without its end.
const MaxLine = 64 << 20

const (
	bufferSize = 64 << 10
	maxQuotes  = 20  // lines that are quoted in the log; all are counted
	maxQuote   = 200 // bytes of each
)

// Reader makes messages of lines. A line may come in parts and end in CRLF, and the
// last one needs no end. Blank lines are ignored.
//
// A line takes up to twice its own size in memory while it is read, and once its
// size afterwards, for as long as somebody holds its message. The size of one line
// never depends on others.
type Reader struct {
	in      *bufio.Reader
	note    func(string)
	skipped Skipped
	failed  error
}

// Skipped counts what was no message.
type Skipped struct {
	NotJSON int64 // lines that are no JSON object
	Cut     int64 // lines longer than [MaxLine], each with a stand-in
}

// String is one sentence for people, or nothing if nothing was skipped.
func (s Skipped) String() string {
	if s == (Skipped{}) {
		return ""
	}
	return fmt.Sprintf("of the client's output, %d lines are no messages, and %d are longer than %d MiB", s.NotJSON, s.Cut, MaxLine>>20)
}

// NewReader reads from r. note is told of each thing that is skipped, in one line,
// up to a number of them; it may be nil.
func NewReader(r io.Reader, note func(string)) *Reader {
	if note == nil {
		note = func(string) {}
	}
	return &Reader{in: bufio.NewReaderSize(r, bufferSize), note: note}
}

// Skipped is what was skipped so far.
func (r *Reader) Skipped() Skipped { return r.skipped }

// Next returns the next message. At the end of the stream the error is [io.EOF]; any
// other one is from reading, and comes after the messages before it.
func (r *Reader) Next() (Message, error) {
	for r.failed == nil {
		line, size, err := r.line()
		r.failed = err
		if size > MaxLine {
			r.skipped.Cut++
			r.say(r.skipped.Cut, "a line of %d bytes is longer than %d and was left out of the transcript", size, int64(MaxLine))
			return StandIn(SubtypeCut, "", size), nil
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if m, ok := Parse(line); ok {
			return m, nil
		}
		r.skipped.NotJSON++
		r.say(r.skipped.NotJSON, "a line of %d bytes is no JSON object: %.*q", len(line), maxQuote, line)
	}
	return Message{}, r.failed
}

func (r *Reader) say(count int64, format string, args ...any) {
	if count > maxQuotes {
		return
	}
	text := fmt.Sprintf(format, args...)
	if count == maxQuotes {
		text += "; further ones are only counted"
	}
	r.note(text)
}

// line returns the next line, which is the caller's to keep, and its size. One that
// is longer than [MaxLine] is read to its end but not kept.
func (r *Reader) line() (line []byte, size int64, err error) {
	var parts [][]byte
	for {
		part, err := r.in.ReadSlice('\n')
		size += int64(len(part))
		if err == nil {
			size--
			part = part[:len(part)-1]
		}
		if size > MaxLine {
			parts = nil
		} else {
			parts = add(parts, part)
		}
		if err != bufio.ErrBufferFull {
			return join(parts), size, err
		}
	}
}

// partSize is how much of a long line is held in one piece until all of it is there.
const partSize = 1 << 20

// add puts b behind the parts of a line.
func add(parts [][]byte, b []byte) [][]byte {
	if last := len(parts) - 1; last >= 0 && len(parts[last])+len(b) <= cap(parts[last]) {
		parts[last] = append(parts[last], b...)
		return parts
	}
	room := len(b)
	if len(parts) > 0 {
		room = max(partSize, room)
	}
	return append(parts, append(make([]byte, 0, room), b...))
}

func join(parts [][]byte) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	return bytes.Join(parts, nil)
}
