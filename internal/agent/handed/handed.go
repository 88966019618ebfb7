// Package handed has what is known of a text that a Stop hook handed to a client. Each
// client's package looks for its fate in the transcripts that it knows.
package handed

import (
	"errors"
	"io"
	"os"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Delivery is a text that a Stop hook handed over, and what is needed to find its fate in
// the transcript. Times in the transcript are never used: they come from a clock that may be
// wrong.
type Delivery struct {
	Path string // of the session's transcript, a JSONL file
	Size int64  // of the transcript when the text was handed over
	// End is the offset where another process, which resumed the session, began to write,
	// or 0. Its lines do not show what the killed process sent, but its turns send
	// everything before them to the model.
	End      int64
	Text     string
	PromptID string // of the turn that the Stop ended, empty if unknown
	// Reply is the hash of the assistant's last text at the delivery. Fresh says that it
	// differs from the one at the Stop before, so that its line in the transcript can be
	// told from older ones. A client whose lines name their turn needs neither.
	Reply string
	Fresh bool
	// Times is how often this same text was handed over since offset From, including this
	// time. Below 2, From is not used.
	From  int64
	Times int
}

// Each calls f for every line since the delivery, with the line's offset. For a text that
// was handed over several times in a row it begins at the first of those. It is an error
// if the transcript is missing or has not grown.
func (d Delivery) Each(f func(line []byte, at int64)) error {
	from, grown := d.Size, false
	if d.Times > 1 {
		from = min(d.From, d.Size)
	}
	err := Lines(d.Path, from, func(line []byte, at, _ int64) (enough bool) {
		if d.End != 0 && at >= d.End {
			return true
		}
		grown = grown || at >= d.Size
		f(line, at)
		return false
	})
	if err == nil && !grown {
		err = errors.New("the transcript has not grown")
	}
	return err
}

// Turn is what a transcript shows of the turn after a delivery.
type Turn int

// The turns. Unknown may become another one while the client still writes.
const (
	Unknown     Turn = iota
	WithText         // the model answered with the text in its conversation
	WithoutText      // the model answered without it
)

// LookBack is how much of a transcript's end is read for a reply. A longer one is not found;
// then the transcript proves less.
const LookBack = 256 << 10

// Lines calls f for each whole line of a transcript from an offset on, with its own offset
// and that of the next one, until f has seen enough. The line is valid until f returns. A
// last line without an end may still be being written.
func Lines(path string, from int64, f func(line []byte, at, next int64) (enough bool)) error {
	file, err := disk.OpenForeign(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close() // it was only read
	return lines.EachHead(lines.Max, true, io.NewSectionReader(file, from, 1<<62), from, func(at, next int64, line []byte, whole bool) bool {
		return whole && (len(line) == 0 || len(line) > lines.Max || !f(line, at, next))
	})
}

// Back is [Lines] for those that begin between two offsets, as far as the last bytes of
// that have them.
func Back(path string, from, to int64, f func(line []byte)) error {
	begin := max(0, from, to-LookBack)
	return Lines(path, begin, func(line []byte, at, _ int64) (enough bool) {
		if at < to && (at > begin || begin == max(0, from)) { // else it is the rest of a line
			f(line)
		}
		return at >= to
	})
}
