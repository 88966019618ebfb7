package lines

import "io"

const chunkSize = 64 << 10

// Start is where the line starts that off is in, or off itself where a line
// starts there.
func Start(f io.ReaderAt, off int64) (int64, error) { return Back(f, off, 0) }

// Back is the offset behind the newline that n other newlines follow before off,
// or 0. With off at the end of whole lines, that is where the last n of them
// start.
func Back(f io.ReaderAt, off int64, n int) (int64, error) {
	chunk := make([]byte, chunkSize)
	var zeros zeroRun
	for off > 0 {
		part := chunk[:min(int64(len(chunk)), off)]
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
