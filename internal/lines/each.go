package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Max is the longest line of a queue file, in bytes without its end, that is held
// whole.
const Max = 64 << 20

// MaxRecord is the longest line that heartbeat itself writes: JSON may take six
// bytes for one of an entry's, or four of Base64 for three beside the readable
// form.
const MaxRecord = 7 * Max

// ErrCorrupt says that a file holds what nobody should have written.
var ErrCorrupt = errors.New("not valid")

// Visit is called for a line without its end, which is valid until Visit returns.
// start and end are the line's range with its end; whole is false for a last line
// that has no newline. It returns false to stop.
type Visit func(start, end int64, line []byte, whole bool) bool

// Each visits every line of a queue file, whose first byte in r is at offset base.
// Zeros before a line are not part of it, since the file may have a hole. Of a line
// longer than [Max] only a first part comes, longer than Max too.
func Each(r io.Reader, base int64, visit Visit) error { return each(Max, true, r, base, visit) }

// EachOwn is [Each] for a file that only heartbeat writes: it has no holes, and a
// long run of zeros is an error that matches [ErrCorrupt].
func EachOwn(r io.Reader, base int64, visit Visit) error { return each(Max+1, false, r, base, visit) }

// EachRecord is [EachOwn] for lines of up to [MaxRecord] bytes.
func EachRecord(r io.Reader, base int64, visit Visit) error {
	return each(MaxRecord, false, r, base, visit)
}

// EachHead is [EachOwn], or with holes [Each], for those who need no more than the first bytes
// of a line: at least that many come.
func EachHead(most int, holes bool, r io.Reader, base int64, visit Visit) error {
	return each(most, holes, r, base, visit)
}

// readers are kept: a process that stays reads these files at every look, and a buffer for
// each would be most of what it allocates.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

func each(longest int, holes bool, r io.Reader, base int64, visit Visit) error {
	in := readers.Get().(*bufio.Reader)
	in.Reset(r)
	defer func() {
		in.Reset(nil)
		readers.Put(in)
	}()
	var long []byte
	var zeros zeroRun
	start := base
	for at := base; ; {
		l, err := in.ReadSlice('\n')
		at += int64(len(l))
		if !holes {
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
			if !visit(start, at, l, whole) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		start = at
	}
}

// zeroRun counts the zeros that stand together: reading a huge hole would take
// forever.
type zeroRun int64

// maxZeros is more than a power loss leaves of a line.
const maxZeros = 128 << 20

// add counts a part of the file; too many zeros are an error.
func (z *zeroRun) add(part []byte) error {
	if len(part) == 0 || part[0] != 0 || part[len(part)-1] != 0 {
		*z = 0
		return nil
	}
	if *z += zeroRun(len(part)); *z > maxZeros {
		return fmt.Errorf("more than %d zero bytes follow one another, which nobody wrote: move the file away: %w", maxZeros, ErrCorrupt)
	}
	return nil
}

// Holds reports whether r has exactly that line.
func Holds(r io.Reader, line []byte) (found bool, err error) {
	line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte("\r")), "\x00") // as Each gives it
	err = Each(r, 0, func(_, _ int64, l []byte, _ bool) bool {
		found = bytes.Equal(l, line)
		return !found
	})
	return found, err
}
