package journal

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// File is a file beside the inbox. It is opened when it is first needed, and stays open until [File.Close].
type File struct {
	path     string
	readOnly bool
	open     *disk.File
}

// Path returns the file's name.
func (f *File) Path() string { return f.path }

// Existing returns the open file, nil if it does not exist.
func (f *File) Existing() (_ *disk.File, err error) {
	if f.open != nil {
		return f.open, nil
	}
	how := disk.OpenExisting
	if f.readOnly {
		how = disk.OpenRead
	}
	f.open, err = ifThere(how(f.path))
	return f.open, err
}

// openOrCreate returns the open file, created if it was missing, and its present size.
func (f *File) openOrCreate() (_ *disk.File, size int64, err error) {
	if f.open != nil {
		info, err := f.open.Stat()
		return f.open, info.Size, err
	}
	if f.open, _, err = disk.OpenWrite(f.path); err != nil {
		return nil, 0, err
	}
	return f.open, f.open.Info().Size, nil
}

// Content returns the whole file, nil if it does not exist. If it is longer than limit, the error matches
// [disk.ErrTooLarge].
func (f *File) Content(limit int64) ([]byte, error) {
	opened, err := f.Existing()
	if opened == nil || err != nil {
		return nil, err
	}
	return opened.ReadUpTo(limit)
}

// Close closes the file, if it is open.
func (f *File) Close() error {
	opened := f.open
	f.open = nil
	return opened.Close()
}

// OpenState opens one of heartbeat's own files for reading; nil means that it does not exist.
func OpenState(path string) (*disk.File, error) { return ifThere(disk.OpenRead(path)) }

// OpenQueue opens a queue file for reading; nil means that it does not exist.
func OpenQueue(path string) (*disk.File, error) {
	return ifThere(disk.OpenForeign(path, unix.O_RDONLY))
}

func ifThere(f *disk.File, err error) (*disk.File, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// Reading calls read with one of heartbeat's own files, unless it does not exist, and closes the file.
func Reading(path string, read func(f *disk.File) error) error {
	f, err := OpenState(path)
	if f == nil || err != nil {
		return err
	}
	return errors.Join(read(f), f.Close())
}

// Seen is how far a file was read, and what it looked like then. It later shows whether the same file has at most grown.
type Seen struct {
	File   string `json:"file"` // the file's identity, "" if there was no file
	Off    int64  `json:"end"`
	Mtime  int64  `json:"mtime_ns"`
	Before string `json:"before"` // a hash of the bytes before Off
	Size   int64  `json:"-"`
}

// SeenUpTo returns the Seen of a file that was read up to an offset.
func SeenUpTo(f *disk.File, off int64) (Seen, error) {
	before, err := before(f, off)
	return Seen{f.Identity(), off, f.Info().Mtime, before, f.Info().Size}, err
}

// In returns the offset at which to continue reading a file. It is 0 unless the file is the one that was seen and still
// has the bytes that were read.
func (s Seen) In(f *disk.File) (int64, error) {
	now := f.Info()
	if s.File != f.Identity() || now.Size < s.Size || now.Size == s.Size && now.Mtime != s.Mtime {
		return 0, nil // in the last case it was edited in place
	}
	if is, err := before(f, s.Off); err != nil || is != s.Before {
		return 0, err
	}
	return s.Off, nil
}

// before hashes the bytes before an offset, enough of them to tell one line from another.
func before(f *disk.File, off int64) (string, error) {
	b := make([]byte, min(off, 4<<10))
	n, err := f.ReadAt(b, off-int64(len(b)))
	if err == io.EOF {
		err = nil // it was just truncated, which the different hash shows
	}
	return lines.ID(b[:n]), err
}

// EndOf returns the Seen of a file, which may not exist, up to the end of its last whole line.
func EndOf(path string) (s Seen, err error) {
	err = Reading(path, func(f *disk.File) error {
		off, err := lines.Start(f, f.Info().Size)
		if err == nil {
			s, err = SeenUpTo(f, off)
		}
		return err
	})
	return s, err
}

// Advance visits the lines of a file behind those that were seen, and moves s behind the last whole one. First it calls
// begin with the number of bytes that it will read. anew means that it reads the file from its start; a file that is
// gone has no bytes.
func (s *Seen) Advance(path string, begin func(unread int64, anew bool) error, visit lines.Visit) (err error) {
	f, err := OpenState(path)
	if err != nil {
		return err
	}
	if f == nil {
		*s = Seen{}
		return begin(0, true)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	from, err := s.In(f)
	if err == nil {
		err = begin(f.Info().Size-from, from == 0)
	}
	if err != nil {
		return err
	}
	upTo := from
	err = lines.EachRecord(io.NewSectionReader(f, from, f.Info().Size-from), from, func(start, end int64, l []byte, whole bool) bool {
		if whole {
			upTo = end
		}
		return visit(start, end, l, whole)
	})
	if err == nil {
		*s, err = SeenUpTo(f, upTo)
	}
	return err
}
