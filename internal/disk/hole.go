package disk

import (
	"errors"
	"io"
)

// ErrNoHoles says that the file system or the operating system cannot free space
// inside a file.
var ErrNoHoles = errors.New("the file system cannot give back the space amid a file")

// PunchHole turns the first n bytes of the file into zeros that take no space. The
// file's length and the offsets of all other bytes stay. Where this is not possible
// the error matches [ErrNoHoles] and nothing has changed.
func (f *File) PunchHole(n int64) error {
	if err := announce(Op{Kind: OpPunch, Path: f.path, Length: n}); err != nil {
		return holeError(err)
	}
	if err := retry(func() error { return punchHole(f.fd, n) }); err != nil {
		return holeError(f.fail("punch a hole into", err))
	}
	return nil
}

// SkipZeros returns the offset of the first byte from off on that is not zero, or
// size if there is none. It does not read holes.
func (f *File) SkipZeros(off, size int64) (int64, error) {
	if off >= size {
		return off, nil
	}
	var first [1]byte
	if _, err := f.ReadAt(first[:], off); err != nil || first[0] != 0 {
		return off, nil // the caller meets the error when it reads at off
	}
	return f.skipRun(off, size)
}

// skipRun is SkipZeros where there is a zero at off. It is a function of its own
// since its buffer is on the stack, which would otherwise grow at every tick.
func (f *File) skipRun(off, size int64) (int64, error) {
	off = nextData(f.fd, off, size)
	chunk := make([]byte, 64<<10)
	for off < size {
		part := chunk[:min(int64(len(chunk)), size-off)]
		n, err := f.ReadAt(part, off)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for i, b := range part[:n] {
			if b != 0 {
				return off + int64(i), nil
			}
		}
		if n < len(part) {
			break // the file shrank meanwhile
		}
		off = max(off+int64(n), nextData(f.fd, off+int64(n), size))
	}
	return size, nil
}
