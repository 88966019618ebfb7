package launch

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/supervise"
)

// mail keeps what is said until the end shows whether somebody has to look at it.
type mail struct {
	mu   sync.Mutex
	text []byte
	cut  bool // its beginning is missing
}

// mailRoom is how many bytes of it are kept: the last ones, in whole lines.
const mailRoom = 256 << 10

func (m *mail) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = append(m.text, b...)
	if extra := len(m.text) - mailRoom; extra > 0 {
		m.cut = true
		_, rest, _ := bytes.Cut(m.text[extra:], []byte("\n"))
		m.text = append(m.text[:0], rest...)
	}
	return len(b), nil
}

func (m *mail) send(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		_, _ = io.WriteString(to, "(the lines before these are left out)\n") // there is nobody else to tell
	}
	_, _ = to.Write(m.text) // the same
}

// worthMail reports whether somebody has to look at how the work went. A problem that
// stays until a person solves it is told once a day, not by each launcher that meets it.
func worthMail(r *supervise.Report, now time.Time) bool {
	told := toldFile(filepath.Join(filepath.Dir(r.Inbox), ".launch-told"))
	switch r.Exit {
	case exitOK:
		if r.Reason == supervise.Stopped {
			return r.DeadLettered > 0
		}
		told.forget()
		return false
	case exitWorkLeft:
		return slices.Contains([]supervise.Reason{supervise.Exhausted, supervise.RunStuck, supervise.Full, supervise.Trouble}, r.Reason)
	case exitPerson:
		news := told.note(string(r.Reason)+": "+r.Detail, now)
		anew := r.Reason != supervise.SetUp && len(r.SessionIDs) > 0 // it had been solved: a session came so far
		return news || anew || r.DeadLettered > 0
	}
	return true
}

// toldFile holds what was told last. The file's time says when.
type toldFile string

const (
	toldAgain = 24 * time.Hour
	// toldEarly is how much less than a day counts as a day: launchers are started at the
	// same minute each day, give or take.
	toldEarly = 5 * time.Minute
	toldLimit = 64 << 10
)

// note reports whether a text is news, and remembers it. If it cannot be remembered, it
// is told again.
func (f toldFile) note(text string, now time.Time) bool {
	path := string(f)
	if old, err := disk.ReadState(path, toldLimit); err == nil && string(old) == text+"\n" {
		if info, err := disk.StatName(path); err == nil {
			age := now.Sub(time.Unix(0, info.Mtime))
			if age >= 0 && age < toldAgain-toldEarly {
				return false
			}
		}
	}
	_ = disk.Publish(path, []byte(text+"\n"), false) // or it is told again
	return true
}

// forget lets the same text be news when it comes again.
func (f toldFile) forget() { _ = disk.Remove(string(f)) }
