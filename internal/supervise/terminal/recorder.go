package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// Recorder records output in asciinema's format (asciicast v2): a line of JSON for the header, and one for
// each event. Several goroutines may call its methods, which drop lines rather than wait for the disk.
type Recorder struct {
	file *disk.File
	pump *Pump

	mu      sync.Mutex
	started time.Time
	rows    uint16 // 0 before the header
	cols    uint16
	rest    []byte // the beginning of an incomplete rune
	line    bytes.Buffer
}

// NewRecorder creates or replaces the file with mode 0600. It refuses symbolic links and anything else
// that is not a regular file. The recorder calls trouble once, with the reason, when it drops lines.
func NewRecorder(path string, trouble func(error)) (*Recorder, error) {
	file, err := replace(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := &Recorder{file: file, pump: NewPump(&lines{file: file}, trouble)}
	go r.pump.Run()
	return r, nil
}

// replace makes a new file instead of truncating the old one, which others may have open and whose
// mode they may rely on.
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

// header omits the command line, which may contain a prompt.
type header struct {
	Version   int               `json:"version"`
	Width     uint16            `json:"width"`
	Height    uint16            `json:"height"`
	Timestamp int64             `json:"timestamp"` // seconds since 1970
	Env       map[string]string `json:"env,omitempty"`
}

// Resize records the terminal's size from here on. The first call begins the recording; a call with
// an unchanged size records nothing.
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

// Output records terminal output, in pieces of any size. The caller may reuse b. Runes split
// between calls are joined; an invalid byte becomes U+FFFD.
func (r *Recorder) Output(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, b...)
	whole := words.WholeRunes(r.rest)
	r.print(whole)
	r.rest = append(r.rest[:0], r.rest[whole:]...)
}

// print records the first n bytes of the rest.
func (r *Recorder) print(n int) {
	if n > 0 {
		r.event("o", string(r.rest[:n]))
	}
}

// event writes one line. Its time is in seconds since the header.
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
	_ = e.Encode(v) // cannot fail for these types
}

func (r *Recorder) put() {
	r.pump.Put(r.line.Bytes())
	r.line.Reset()
}

// Close writes what is left and ends the recording.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.print(len(r.rest))
	r.rest = nil
	r.mu.Unlock()
	if !r.pump.Flush(nil) {
		return nil // the pump still writes to the file
	}
	return r.file.Close()
}

// lines writes only whole lines. If a full disk takes part of a line, it cuts that part off, so
// that the recording stays playable.
type lines struct {
	file *disk.File
	size int64
	rest []byte // the beginning of an incomplete line
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if whole == 0 {
		return len(b), nil
	}
	err := l.file.WriteAt(l.rest[:whole], l.size)
	if err == nil {
		l.size += int64(whole)
	} else {
		_ = l.file.Truncate(l.size) // if it fails, the next lines overwrite the part
	}
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	return len(b), err
}
