// Package stream reads what a client prints with --output-format stream-json: one JSON object a line. [Read] turns
// lines into messages and skips other lines; [Tally] adds up what the messages report about the session.
package stream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
)

// MaxLine is the longest line that is kept, in bytes without its end.
const MaxLine = 64 << 20

const (
	maxQuotes = 20  // lines quoted in the log; all are counted
	maxQuote  = 200 // bytes of each
)

// Skipped counts the lines that were not messages.
type Skipped struct {
	NotJSON int64 // lines that are no JSON object
	Cut     int64 // lines longer than [MaxLine], each with a stand-in
}

// String is one sentence for people, "" if nothing was skipped.
func (s Skipped) String() string {
	if s == (Skipped{}) {
		return ""
	}
	return fmt.Sprintf("of the client's output, %d lines are no messages, and %d are longer than %d MiB", s.NotJSON, s.Cut, MaxLine>>20)
}

type reader struct {
	note    func(string)
	visit   func(Message)
	skipped Skipped
}

// Read passes the messages of r to visit until the end of r or an error. A line may arrive in parts and end in CRLF;
// the last one needs no end. Blank lines are ignored. note, unless nil, gets a sentence for each skipped line, up to a
// limit. The memory of a large message is freed once visit has returned.
func Read(r io.Reader, note func(string), visit func(Message)) (Skipped, error) {
	in := &reader{note: note, visit: visit}
	from := bufio.NewReaderSize(r, firstPart)
	for {
		line, size, err := nextLine(from)
		if err != nil && err != io.EOF {
			return in.skipped, err
		}
		in.line(line, size)
		if line = nil; size >= largeLine {
			debug.FreeOSMemory() // the session may go on for hours with small messages
		}
		if err == io.EOF {
			return in.skipped, nil
		}
	}
}

// Sizes of a line's buffer. A line that outgrows the second part gets room for the longest line at
// once: unwritten pages take no memory, while growing step by step would take twice the line.
const (
	firstPart  = 64 << 10
	secondPart = 1 << 20
	largeLine  = 8 << 20
)

// nextLine returns the next line without its end, in memory of its own, and its size. Of a line longer
// than [MaxLine] it returns only a part. Leading zero bytes are left out.
func nextLine(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if size == 0 {
			part = bytes.TrimLeft(part, "\x00")
		}
		if err == nil {
			part = bytes.TrimSuffix(part, []byte("\n"))
		}
		size += int64(len(part))
		if len(line) <= MaxLine {
			if need := len(line) + len(part); need > cap(line) {
				room := need
				switch {
				case need > secondPart:
					room = MaxLine + firstPart
				case need > firstPart:
					room = secondPart
				}
				line = append(make([]byte, 0, room), line...)
			}
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if len(line) < cap(line)/2 {
			line = bytes.Clone(line)
		}
		return line, size, err
	}
}

func (r *reader) line(line []byte, size int64) {
	if size > 0 && len(line) > 0 && line[len(line)-1] == '\r' && int64(len(line)) == size {
		line, size = line[:len(line)-1], size-1
	}
	if size > MaxLine {
		r.skipped.Cut++
		r.noteSkipped(r.skipped.Cut, "a line of %d bytes is longer than %d and was left out of the transcript", size, int64(MaxLine))
		r.visit(StandIn(SubtypeCut, size))
		return
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if m, ok := Parse(line); ok {
		r.visit(m)
		return
	}
	r.skipped.NotJSON++
	r.noteSkipped(r.skipped.NotJSON, "a line of %d bytes is no JSON object: %.*q", len(line), maxQuote, line)
}

func (r *reader) noteSkipped(count int64, format string, args ...any) {
	if count > maxQuotes || r.note == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if count == maxQuotes {
		text += "; further ones are only counted"
	}
	r.note(text)
}
