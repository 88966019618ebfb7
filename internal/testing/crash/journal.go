package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"testing"

	"heartbeat/internal/disk"
)

// line is one line of the file that [EnvCount] names.
type line struct {
	Op      *disk.Op `json:"op,omitempty"`
	Promise *string  `json:"promise,omitempty"`
}

// countInto appends a line to the file at path for every call before it is made, and
// for every [Promise], so that the file is complete whenever the process dies.
func countInto(path string) (disk.Observer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	setPromise(func(text string) {
		if err := appendLine(f, line{Promise: &text}); err != nil {
			panic(err)
		}
	})
	return func(op disk.Op) error { return appendLine(f, line{Op: &op}) }, nil
}

func appendLine(f *os.File, l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return err
}

// ReadCount reads the file that a child wrote for [EnvCount]: the calls that it
// announced and what it promised. A child without calls leaves no file.
func ReadCount(t testing.TB, path string) *Recorder {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	r := &Recorder{}
	for text := range bytes.Lines(b) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("read %s: %v", path, err)
		}
		if l.Op != nil {
			r.ops = append(r.ops, *l.Op)
		}
		if l.Promise != nil {
			r.promise(*l.Promise)
		}
	}
	return r
}
