package inbox

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// maxRecord is the longest line of ours that is read: JSON may take six bytes for
// one of an entry's, or four of Base64 for three beside the readable form.
const maxRecord = 7 * MaxLine

// eachRecord calls f for every line of a file that heartbeat writes.
func eachRecord(r io.Reader, f func(line []byte, whole bool)) error {
	return eachLineUpTo(maxRecord, r, 0, func(_, _ int64, l []byte, whole bool) bool {
		f(l, whole)
		return true
	})
}

// eachLine calls f for every line of r, whose first byte is at offset base, until
// f returns false. The line comes without its end and is valid until f returns;
// start and end are its range with its end, and whole is false for a last one
// that has no newline. Zeros before it are no part of it: see [Tx.lineAt]. Of a line that is too long to be an entry only a first
// part comes.
func eachLine(r io.Reader, base int64, f func(start, end int64, line []byte, whole bool) bool) error {
	return eachLineUpTo(MaxLine, r, base, f)
}

// eachOwnLine is eachLine for a file that heartbeat alone writes: it has no holes.
func eachOwnLine(r io.Reader, base int64, f func(start, end int64, line []byte, whole bool) bool) error {
	return eachLineUpTo(MaxLine+1, r, base, f)
}

func eachLineUpTo(longest int, r io.Reader, base int64, f func(start, end int64, line []byte, whole bool) bool) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	var zeros zeroRun
	start := base
	for at := base; ; {
		l, err := in.ReadSlice('\n')
		at += int64(len(l))
		if longest != MaxLine { // the queue file may have a hole, and ours may not
			if err := zeros.add(l); err != nil {
				return err
			}
		}
		if len(long) == 0 && len(l) > 0 && l[0] == 0 {
			l = bytes.TrimLeft(l, "\x00")
			start = at - int64(len(l))
		}
		if err == bufio.ErrBufferFull {
			if len(long) <= longest && zeros == 0 {
				long = append(long, l...)
			}
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		whole := bytes.HasSuffix(l, []byte("\n"))
		if len(long) > 0 {
			l, long = append(long, l...), nil
		}
		if len(l) > 0 {
			l = bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
			if !f(start, at, l, whole) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		start = at
	}
}

// zeroRun is how many zeros stand together. A hole in a file has no end that could be
// waited for.
type zeroRun int64

// maxZeros is more than a power loss leaves of a line.
const maxZeros = 128 << 20

// add counts a part of the file, and reports, as an error, that there are too many.
func (z *zeroRun) add(part []byte) error {
	if len(part) == 0 || part[0] != 0 || part[len(part)-1] != 0 {
		*z = 0
		return nil
	}
	if *z += zeroRun(len(part)); *z > maxZeros {
		return fmt.Errorf("more than %d zeros stand there together, which nobody wrote: move the file away: %w", maxZeros, ErrCorrupt)
	}
	return nil
}

// holdsLine reports whether r has that very line.
func holdsLine(r io.Reader, line []byte) (found bool, err error) {
	line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte("\r")), "\x00") // as eachLine gives it
	err = eachLine(r, 0, func(_, _ int64, l []byte, _ bool) bool {
		found = bytes.Equal(l, line)
		return !found
	})
	return found, err
}
