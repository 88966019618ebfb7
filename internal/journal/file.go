package journal

import (
	"errors"
	"io/fs"

	"heartbeat/internal/disk"
)

// File is one of the files beside the inbox. It is opened when it is first needed,
// and stays open until [File.Close].
type File struct {
	path     string
	readOnly bool
	open     *disk.File
}

// Path is the file's name.
func (f *File) Path() string { return f.path }

// Existing is the open file; nil means that it is not there.
func (f *File) Existing() (*disk.File, error) {
	if f.open != nil {
		return f.open, nil
	}
	how := disk.OpenExisting
	if f.readOnly {
		how = disk.OpenRead
	}
	opened, err := how(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f.open = opened
	return opened, err
}

// made is the open file, created where it was missing, and its size as it is now.
func (f *File) made() (_ *disk.File, size int64, err error) {
	if f.open != nil {
		info, err := f.open.Stat()
		return f.open, info.Size, err
	}
	if f.open, _, err = disk.OpenWrite(f.path); err != nil {
		return nil, 0, err
	}
	return f.open, f.open.Info().Size, nil
}

// Content is the whole file; nil means that it is not there. If it is longer than limit, the
// error matches [disk.ErrTooLarge].
func (f *File) Content(limit int64) ([]byte, error) {
	if f.open != nil {
		return f.open.ReadUpTo(limit)
	}
	opened, err := f.Existing()
	if opened == nil || err != nil {
		return nil, err
	}
	return opened.ReadOpened(limit)
}

// remove takes the file away.
func (f *File) remove() error {
	return errors.Join(f.Close(), disk.Remove(f.path))
}

// Close closes the file, if it is open.
func (f *File) Close() error {
	opened := f.open
	f.open = nil
	return opened.Close()
}
