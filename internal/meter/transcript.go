package meter

import (
	"bytes"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

const (
	chunk   = 256 << 10 // bytes that are read at once
	maxLine = 16 << 20  // a longer line is passed over
	// maxRead is how much of a transcript is counted at once. The next reading ends a
	// status line that still runs, so that one must be done before.
	maxRead  = 8 << 20
	maxFinal = 4 << 30
)

// follow calls f for each whole line of a file behind *read, and moves *read behind
// them. It reports whether there is more. A file that is not there has no lines.
//
// A file that is shorter than what was read, or where no line ends there, was cut off
// or replaced. Then follow moves *read to its end, and calls replaced.
func follow(path string, read *int64, limit int64, replaced func(), f func(line []byte, at int64)) (more bool, err error) {
	if path == "" {
		return false, nil
	}
	file, err := disk.OpenForeign(path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close() // it was only read
	size := file.Info().Size
	if size == *read {
		return false, nil
	}
	if size < *read || !lineEnds(file, *read) {
		*read = size
		replaced()
		return false, nil
	}
	var buffer []byte
	for end := *read + limit; *read < size; {
		if *read >= end {
			return true, nil
		}
		want := min(max(chunk, int64(2*len(buffer))), size-*read)
		if int64(cap(buffer)) < want {
			buffer = make([]byte, want)
		}
		buffer = buffer[:want]
		n, err := file.ReadAt(buffer, *read)
		if n == 0 && err != nil {
			return false, nil // it was cut off meanwhile: the next reading sees how far
		}
		whole := bytes.LastIndexByte(buffer[:n], '\n') + 1
		switch {
		case whole > 0:
			at := *read
			for line := range bytes.Lines(buffer[:whole]) {
				f(line, at)
				at += int64(len(line))
			}
			*read = at
			buffer = buffer[:0]
		case *read+int64(n) >= size:
			return false, nil // a line that is being written
		case n >= maxLine:
			if next, ok := afterLine(file, *read+int64(n), size); ok {
				*read = next
				buffer = buffer[:0]
				continue
			}
			return false, nil
		}
	}
	return false, nil
}

// afterLine is where the line ends that goes on at a position.
func afterLine(file *disk.File, at, size int64) (next int64, ok bool) {
	buffer := make([]byte, chunk)
	for at < size {
		n, _ := file.ReadAt(buffer[:min(chunk, size-at)], at)
		if n == 0 {
			return 0, false
		}
		if i := bytes.IndexByte(buffer[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, true
		}
		at += int64(n)
	}
	return 0, false
}

// lineEnds reports whether a line ends, and the next begins, at a position.
func lineEnds(file *disk.File, at int64) bool {
	var b [1]byte
	n, _ := file.ReadAt(b[:], max(0, at-1))
	return at == 0 || n == 1 && b[0] == '\n'
}
