// Package asciicast records what a terminal shows in the format that asciinema
// plays: asciicast v2, a line of JSON for the header and one for each event.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/launch/pump"
)

// Recorder writes a recording. Its methods may be called from several goroutines,
// and do not wait for the disk: lines that it does not take are left out.
type Recorder struct {
	file *disk.File
	pump *pump.Pump

	mu      sync.Mutex
	started time.Time
	rows    uint16 // 0 before the header
	cols    uint16
	rest    []byte // of a rune that is not whole yet
	line    bytes.Buffer
}

// Create makes the file, with mode 0600, in place of one that is there. A symbolic
// link is not followed, and what is no regular file is refused. trouble is told
// once, with the reason, that something was left out.
func Create(path string, trouble func(error)) (*Recorder, error) {
	file, err := replace(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := &Recorder{file: file, pump: pump.New(&lines{file: file}, trouble)}
	go r.pump.Run()
	return r, nil
}

// replace leaves a file that is there to those who have it open, with the rights
// that it has.
func replace(path string) (*disk.File, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed: name another file", path)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: name another one", path)
	}
	old, created, err := disk.OpenWrite(path)
	if err != nil || created {
		return old, err
	}
	if err := errors.Join(old.Close(), disk.Remove(path)); err != nil {
		return nil, err
	}
	f, _, err := disk.OpenWrite(path)
	return f, err
}

// header has no command line: it may hold a prompt.
type header struct {
	Version   int               `json:"version"`
	Width     uint16            `json:"width"`
	Height    uint16            `json:"height"`
	Timestamp int64             `json:"timestamp"` // in seconds since 1970
	Env       map[string]string `json:"env,omitempty"`
}

// Resize is the size of the terminal from here on. The first one begins the
// recording; one that changes nothing is left out.
func (r *Recorder) Resize(rows, cols uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rows == r.rows && cols == r.cols {
		return
	}
	begun := r.rows != 0
	r.rows, r.cols = rows, cols
	if begun {
		r.event("r", fmt.Sprintf("%dx%d", cols, rows))
		return
	}
	r.started = time.Now()
	h := header{Version: 2, Width: cols, Height: rows, Timestamp: r.started.Unix()}
	if name := os.Getenv("TERM"); name != "" {
		h.Env = map[string]string{"TERM": name}
	}
	r.encode(h)
	r.put()
}

// Output is what the terminal prints, in whatever pieces; b may be used again. A
// rune that is cut in two is put together, and a byte that belongs to none becomes
// U+FFFD.
func (r *Recorder) Output(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, b...)
	whole := wholeRunes(r.rest)
	r.print(whole)
	r.rest = append(r.rest[:0], r.rest[whole:]...)
}

// print records that many bytes of the rest.
func (r *Recorder) print(n int) {
	if n > 0 {
		r.event("o", string(r.rest[:n]))
	}
}

// wholeRunes is how many bytes there are but for the beginning of a rune at the end.
func wholeRunes(b []byte) int {
	for n := len(b) - 1; n >= 0 && n >= len(b)-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			if !utf8.FullRune(b[n:]) {
				return n
			}
			break
		}
	}
	return len(b)
}

// event is one line, its time in seconds since the header.
func (r *Recorder) event(code, data string) {
	fmt.Fprintf(&r.line, "[%.6f, %q, ", time.Since(r.started).Seconds(), code)
	r.encode(data)
	r.line.Truncate(r.line.Len() - len("\n"))
	r.line.WriteString("]\n")
	r.put()
}

func (r *Recorder) encode(v any) {
	e := json.NewEncoder(&r.line)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // into memory, and of types that can be
}

func (r *Recorder) put() {
	r.pump.Put(r.line.Bytes())
	r.line.Reset()
}

// Close ends the recording once the disk has what it takes.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.print(len(r.rest))
	r.rest = nil
	r.mu.Unlock()
	if !r.pump.Flush(nil) {
		return nil // it is still being written to
	}
	return r.file.Close()
}
