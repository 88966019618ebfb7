// Package handed describes a text that a Stop hook handed to a client. Each client's package looks for the text's fate
// in that client's transcripts.
package handed

import (
	"errors"
	"io"
	"os"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Delivery is a text that a Stop hook handed over, with what is needed to find its fate in the transcript. Times in the
// transcript are never used: their clock may be wrong.
type Delivery struct {
	Path string // of the session's transcript, a JSONL file
	Size int64  // of the transcript when the text was handed over, in bytes
	// End is the offset at which another process, which resumed the session, began to write, or 0. Lines from there on do
	// not show what the killed process sent, but their turns send everything before them to the model.
	End      int64
	Text     string
	PromptID string // of the turn that the Stop ended, empty if unknown
	// Reply is the hash of the assistant's last text at the delivery. Fresh says that it differs from that of the Stop
	// before, so that older lines cannot be mistaken for it. A client whose lines name their turn needs neither.
	Reply string
	Fresh bool
	// Times counts how often this text was handed over since offset From, this time included. Below 2, From is unused.
	From  int64
	Times int
}

// Each calls f for every line since the delivery, with the line's offset. For a text that was handed over several times
// in a row it begins at the first delivery. A transcript that is missing or has not grown is an error.
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

// MaxBack is how many bytes at the end of a transcript are searched for a reply. Without a reply there, the transcript
// proves less.
const MaxBack = 256 << 10

// Lines calls f for each whole line of a transcript from an offset on, with the offsets of that line and the next, until
// f returns true. line is valid until f returns. A last line without its newline is left out: its writer may be at work.
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

// Back is [Lines] for lines that begin between two offsets, within the last [MaxBack] bytes of that range.
func Back(path string, from, to int64, f func(line []byte)) error {
	begin := max(0, from, to-MaxBack)
	return Lines(path, begin, func(line []byte, at, _ int64) (enough bool) {
		if at < to && (at > begin || begin == max(0, from)) { // the first may be the rest of a line
			f(line)
		}
		return at >= to
	})
}
