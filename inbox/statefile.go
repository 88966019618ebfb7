package inbox

import (
	"errors"
	"io/fs"

	"heartbeat/internal/disk"
)

// stateFile is one of the files beside the inbox. It is opened once in a
// transaction, when it is first needed.
type stateFile struct {
	path     string
	readOnly bool
	f        *disk.File
}

// existing opens the file; nil means that it is not there.
func (s *stateFile) existing() (*disk.File, error) {
	if s.f != nil {
		return s.f, nil
	}
	open := disk.OpenExisting
	if s.readOnly {
		open = disk.OpenRead
	}
	f, err := open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s.f = f
	return f, err
}

// made opens the file, and creates it where it is missing.
func (s *stateFile) made() (f *disk.File, created bool, err error) {
	if s.f != nil {
		return s.f, false, nil
	}
	s.f, created, err = disk.OpenWrite(s.path)
	return s.f, created, err
}

// content is the whole file; nil means that it is not there.
func (s *stateFile) content() ([]byte, error) {
	f, err := s.existing()
	if f == nil || err != nil {
		return nil, err
	}
	return f.ReadAll()
}

// remove takes the file away.
func (s *stateFile) remove() error {
	return errors.Join(s.close(), disk.Remove(s.path))
}

func (s *stateFile) close() error {
	f := s.f
	s.f = nil
	return f.Close()
}
