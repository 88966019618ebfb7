package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

const readChunk = 64 << 10

// line is one line of a file, with its bytes unless it is too long.
type line struct {
	start, end int64 // end is after the newline, or the end of the file
	raw        []byte
	terminated bool
	tooLong    bool
	id         string // set if the line is too long
}

// readLine reads the line that starts at off, in a file of the given size. It
// reads no further than the chunk that the line ends in, and keeps no more than
// maxLen bytes. At the end of the file it returns io.EOF.
func readLine(f io.ReaderAt, off, size int64, maxLen int) (line, error) {
	if off >= size {
		return line{}, io.EOF
	}
	l := line{start: off, end: off}
	chunk := make([]byte, min(4<<10, size-off))
	var sum lineSum
	for {
		n, err := f.ReadAt(chunk[:min(int64(len(chunk)), size-l.end)], l.end)
		if n == 0 {
			if err == nil || err == io.EOF {
				break // the end, or the file has shrunk: take what is there
			}
			return line{}, err
		}
		part := chunk[:n]
		newline := bytes.IndexByte(part, '\n')
		if newline >= 0 {
			part = part[:newline]
		}
		if !l.tooLong && len(l.raw)+len(part) > maxLen+1 { // one more for a carriage return
			l.tooLong, sum.hash = true, sha256.New()
			sum.add(l.raw)
			l.raw = nil
		}
		if l.tooLong {
			sum.add(part)
		} else {
			l.raw = append(l.raw, part...)
		}
		l.end += int64(len(part))
		if newline >= 0 {
			l.end, l.terminated = l.end+1, true
			break
		}
		if len(chunk) < readChunk {
			chunk = make([]byte, readChunk)
		}
	}
	return l.finish(sum, maxLen), nil
}

// lineSum hashes a line in parts, without a carriage return at its end.
type lineSum struct {
	hash hash.Hash
	held bool // a carriage return that may end the line
}

func (s *lineSum) add(part []byte) {
	if len(part) == 0 {
		return
	}
	if s.held {
		s.hash.Write([]byte{'\r'})
	}
	if s.held = part[len(part)-1] == '\r'; s.held {
		part = part[:len(part)-1]
	}
	s.hash.Write(part)
}

func (l line) finish(sum lineSum, maxLen int) line {
	if l.tooLong {
		l.id = hex.EncodeToString(sum.hash.Sum(nil))
		return l
	}
	l.raw = bytes.TrimSuffix(l.raw, []byte("\r"))
	if len(l.raw) > maxLen {
		l.id, l.raw, l.tooLong = entryID(l.raw), nil, true
	}
	return l
}

func (l line) blank() bool { return !l.tooLong && blank(l.raw) }

func ignoreEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
