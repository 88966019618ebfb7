package claude

import (
	"bytes"

	"heartbeat/internal/flat"
)

// Said reports whether a transcript has a reply of the assistant between two offsets, as
// far as the last 256 KiB of that tell.
func Said(path string, from, to int64, reply string) bool {
	file, err := openTranscript(path)
	if err != nil {
		return false
	}
	defer file.Close() // read only: nothing to lose
	begin := max(0, from, to-lookBack)
	if begin >= to {
		return false
	}
	b := make([]byte, to-begin)
	n, _ := file.ReadAt(b, begin) // a file that was cut off has less
	b = b[:n]
	if begin > max(0, from) {
		_, b, _ = bytes.Cut(b, []byte{'\n'}) // the rest of a line
	}
	sum := ReplySum(reply)
	for line := range bytes.Lines(b) {
		if l := flat.Begun(line); isAnswer(l) && says(l, sum) {
			return true
		}
	}
	return false
}
