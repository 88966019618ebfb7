package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// entrySize is an entry's line with its newline.
const entrySize = 1 << 10

// filler pads an entry to its size.
var filler = strings.Repeat("the quick brown fox jumps over the lazy dog ", entrySize/40)

// entry is the text of the i-th line of every inbox here.
func entry(i int) string { return padded(fmt.Sprintf("entry %09d ", i)) }

// padded returns the text of a line that begins with head.
func padded(head string) string {
	return head + filler[:entrySize-1-len(head)]
}

// writeInbox makes an inbox of the first n entries and syncs it.
func writeInbox(path string, n int) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write inbox: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		_, _ = w.WriteString(entry(i)) // Flush returns the error
		_ = w.WriteByte('\n')          // here too
	}
	if err = errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write inbox: %w", err)
	}
	return nil
}
