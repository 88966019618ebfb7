// Package lines reads lines of files that other programs may be writing to: the last line may still lack its end, a
// line may be longer than memory allows, and zeros may stand where a hole was made or a power loss took bytes.
package lines

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// Max is the longest line of a queue file, in bytes without its end, that is held whole.
const Max = 64 << 20

// MaxRecord is the longest line that heartbeat itself writes: JSON may take six bytes for one byte of an
// entry, and Base64 four for three, besides the readable form.
const MaxRecord = 7 * Max

// ErrCorrupt means that a file has invalid content.
var ErrCorrupt = errors.New("not valid")

// Corrupt returns an error that matches [ErrCorrupt] and whose text is only this sentence.
func Corrupt(format string, args ...any) error { return corrupt{fmt.Errorf(format, args...)} }

type corrupt struct{ error }

func (c corrupt) Unwrap() []error { return []error{c.error, ErrCorrupt} }

// Visit is called for a line without its end, which is valid until Visit returns. start and end are the
// line's range with its end. whole is false for a last line without its newline. Visit returns false to stop.
type Visit func(start, end int64, line []byte, whole bool) bool

// Each visits every line of a queue file, whose first byte in r is at offset base. Zeros before a line are not part of
// it, since the file may have a hole. A line longer than [Max] is cut, to a part that is still longer than Max.
func Each(r io.Reader, base int64, visit Visit) error { return EachHead(Max, true, r, base, visit) }

// EachOwn is [Each] for a file that only heartbeat writes. It has no holes, and a long run of zeros is an
// error that matches [ErrCorrupt].
func EachOwn(r io.Reader, base int64, visit Visit) error {
	return EachHead(Max+1, false, r, base, visit)
}

// EachRecord is [EachOwn] for lines of up to [MaxRecord] bytes.
func EachRecord(r io.Reader, base int64, visit Visit) error {
	return EachHead(MaxRecord, false, r, base, visit)
}

// readers are reused: a long-lived process reads these files repeatedly, and new buffers would be most of
// what it allocates.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// EachHead is [EachOwn], or with holes [Each], for callers that need only the first bytes of a line. Of a longer line
// it passes a part of at least most bytes.
func EachHead(most int, holes bool, r io.Reader, base int64, visit Visit) error {
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
			if holes && len(l) == 0 { // only zeros
				if at, err = skipHole(in, r, at-base); err != nil {
					return err
				}
				at += base
				start = at
				continue
			}
			if len(long) <= most && zeros == 0 {
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

// skipHole returns the offset behind the zeros at an offset of r, without reading holes: a huge one would take forever.
func skipHole(in *bufio.Reader, r io.Reader, at int64) (int64, error) {
	section, is := r.(*io.SectionReader)
	if !is {
		return at, nil
	}
	file, from, size := section.Outer()
	skipper, is := file.(interface {
		SkipZeros(off, size int64) (int64, error)
	})
	if !is {
		return at, nil
	}
	off, err := skipper.SkipZeros(from+at, from+size)
	if err != nil {
		return at, err
	}
	if off-from == at {
		return at, nil
	}
	in.Reset(io.NewSectionReader(file, off, from+size-off))
	return off - from, nil
}

// zeroRun counts consecutive zeros: reading a huge hole would take forever.
type zeroRun int64

// maxZeros is more than a power loss leaves of a line.
const maxZeros = 128 << 20

// add counts a part of the file. Too many zeros are an error.
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
	line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte("\r")), "\x00") // as Each passes it
	err = Each(r, 0, func(_, _ int64, l []byte, _ bool) bool {
		found = bytes.Equal(l, line)
		return !found
	})
	return found, err
}

// Keep copies to w the lines of a file of heartbeat's own that keep accepts, byte for byte. It copies a last
// line without its newline only if torn is set. A line with many zeros inside, or of more than [MaxRecord]
// bytes, is copied without asking keep. Keep returns how much of r it read, and how many lines it left out.
func Keep(w io.Writer, r *io.SectionReader, torn bool, keep func(line []byte) bool) (read int64, left int, err error) {
	out := bufio.NewWriterSize(w, 1<<20)
	var failed error
	err = EachRecord(r, 0, func(start, end int64, l []byte, whole bool) bool {
		if !whole && !torn {
			return false
		}
		read = end
		switch n := end - start - int64(len(l)); {
		case n > 2: // l is only a part of the line
			_, failed = io.Copy(out, io.NewSectionReader(r, start, end-start))
			return failed == nil
		case !keep(l):
			left++
			return true
		case whole:
			_, _ = out.Write(l) // Flush reports any error
			_, failed = out.WriteString("\r\n"[2-n:])
		default:
			_, _ = out.Write(l)
			_, failed = out.WriteString("\r\n"[:n])
		}
		return failed == nil
	})
	return read, left, errors.Join(err, failed, out.Flush())
}

const chunkSize = 64 << 10

// Start returns the start of the line that contains off, or off itself if a line starts there.
func Start(f io.ReaderAt, off int64) (int64, error) { return Back(f, off, 0) }

// Back returns the start of the last n lines before off, where off is the end of a whole line. In the middle of a line
// that line counts as one more. If there are fewer lines, Back returns 0.
func Back(f io.ReaderAt, off int64, n int) (int64, error) {
	var zeros zeroRun
	for size := int64(4 << 10); off > 0; size = chunkSize { // most lines are short
		part := make([]byte, min(size, off))
		if _, err := f.ReadAt(part, off-int64(len(part))); err != nil && err != io.EOF {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' {
				continue
			}
			if n == 0 {
				return off - int64(len(part)-i) + 1, nil
			}
			n--
		}
		if err := zeros.add(part); err != nil {
			return 0, err
		}
		off -= int64(len(part))
	}
	return 0, nil
}

// Ends reports whether a file of that size ends in a newline, or is empty.
func Ends(f io.ReaderAt, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	last := make([]byte, 1)
	_, err := f.ReadAt(last, size-1)
	return last[0] == '\n', err
}

// Valid returns a line with U+FFFD in place of invalid UTF-8, which a reader of JSON may refuse.
func Valid(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	return bytes.ToValidUTF8(line, []byte("\uFFFD"))
}

// ID names a line by the hex SHA-256 of its bytes without the line end.
func ID(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
