package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// maxState is the largest record, in bytes, that is read or written. A config has
// at most 64 MiB, of which a record repeats the metadata and the unknown keys.
const maxState = 80 << 20

// ErrNewer says that a record was written by a release whose records this one must
// not touch.
var ErrNewer = errors.New("a newer release wrote it")

// Read reads the record. If there is none the error matches [fs.ErrNotExist]; if a
// newer release wrote it so that this one cannot understand it, [ErrNewer].
func (f Folder) Read() (*State, error) {
	s, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("read the state of session %s: %w", f.ID, err)
	}
	return s, nil
}

func (f Folder) read() (*State, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	b, err := disk.ReadState(f.StatePath(), maxState)
	if err != nil {
		return nil, err
	}
	// The version first: another one may spell the rest so that it does not parse.
	var head struct {
		Version   int    `json:"version"`
		SessionID string `json:"sessionId"`
	}
	err = json.Unmarshal(b, &head)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is no state record: %w", f.StatePath(), err)
	case head.Version > Version:
		return nil, fmt.Errorf("%s has version %d, and this release knows %d: use the release that wrote it: %w",
			f.StatePath(), head.Version, Version, ErrNewer)
	case head.Version < 1 || head.SessionID != f.ID:
		return nil, fmt.Errorf("%s is no state record of this session", f.StatePath())
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s is no state record: %w", f.StatePath(), err)
	}
	if !s.Status.known() {
		return nil, fmt.Errorf("%s is no state record: it has no status", f.StatePath())
	}
	return s, nil
}

// Write replaces the record, durably, with version and id filled in and long texts
// cut to their bounds. The state must not change meanwhile. The host of the session
// takes a lock that was removed again.
func (l *Lock) Write(s *State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.write(s)
	if errors.Is(err, disk.ErrLockGone) && s.Host.isSelf() {
		if err = l.retake(); err == nil {
			err = l.write(s)
		}
	}
	if err != nil {
		return fmt.Errorf("write the state of session %s: %w", l.folder.ID, err)
	}
	return nil
}

func (l *Lock) write(s *State) error {
	if l.lock == nil {
		return disk.ErrLockGone
	}
	bounded := *s
	bounded.Version, bounded.SessionID = Version, l.folder.ID
	bounded.bound()
	b, err := flat.JSON(bounded)
	switch {
	case err != nil:
		return err
	case !s.Status.known():
		return fmt.Errorf("%q is no status of a session", s.Status)
	case len(b) > maxState:
		return fmt.Errorf("%d bytes: %w", len(b), disk.ErrTooLarge)
	}
	if err := l.lock.Check(); err != nil {
		return err
	}
	return disk.Publish(l.folder.StatePath(), b, true)
}

// bound cuts what others may write without end. Of the output the beginning is
// kept, of stderr and the warnings the end.
func (s *State) bound() {
	if text, over := Cut(s.Output, MaxOutput); over {
		s.Output, s.OutputCut = text, true
	}
	if over := len(s.Stderr) - MaxStderr; over > 0 {
		for over < len(s.Stderr) && !utf8.RuneStart(s.Stderr[over]) {
			over++
		}
		s.Stderr = s.Stderr[over:]
	}
	if over := len(s.Warnings) - MaxWarnings; over > 0 {
		s.Warnings = slices.Clone(s.Warnings[over:])
	}
}

// Cut shortens a text to a number of bytes, between two characters, and reports whether it
// had more.
func Cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// plain is a State without its methods.
type plain State

// UnmarshalJSON keeps the members that this release does not know, so that
// MarshalJSON writes them again.
func (s *State) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	s.unknown = nil
	if err := json.Unmarshal(b, &s.unknown); err != nil {
		return err
	}
	maps.DeleteFunc(s.unknown, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(memberNames(), func(known string) bool { return strings.EqualFold(name, known) })
	})
	return nil
}

// MarshalJSON writes the record with the members that a newer release added.
func (s State) MarshalJSON() ([]byte, error) {
	b, err := flat.JSON(plain(s))
	if err != nil || len(s.unknown) == 0 {
		return b, err
	}
	rest, err := flat.JSON(s.unknown)
	if err != nil {
		return nil, err
	}
	return slices.Concat(b[:len(b)-1], []byte(","), rest[1:]), nil
}

// memberNames are the names of a record's members.
var memberNames = sync.OnceValue(func() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[State]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
})
