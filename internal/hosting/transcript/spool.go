package transcript

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/stream"
)

// spool is the file of a session's messages. Its first line is a [spoolHead], each
// other one a message. Whole lines are never changed; a line that a kill tore is cut
// off when the file is opened again.
//
// The caller keeps calls apart, except that read may go on beside append.
type spool struct {
	path string
	head spoolHead
	file *disk.File
	size int64 // of the whole lines
	old  int64 // up to which offset another process wrote it
	bad  error // why nothing more can be appended

	moving sync.RWMutex // held to read, and by whoever replaces the file
}

// spoolHead is the first line of a spool.
type spoolHead struct {
	Session string `json:"session"`
	After   int64  `json:"after"`  // the messages up to this number are not in the file
	Unsure  bool   `json:"unsure"` // After is a guess: the database could not be asked
}

// found is told of each message in a spool.
type found func(s Stored, offset int64)

// openSpool opens a session's spool and lists what is in it. The error matches
// [fs.ErrNotExist] if there is none. With repair, a torn end is cut off.
func openSpool(path, session string, repair bool, list found) (*spool, error) {
	open := disk.OpenRead
	if repair {
		open = disk.OpenExisting
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	s := &spool{path: path, file: f}
	if err := s.scan(session, list); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.old = s.size
	if repair && s.size < f.Info().Size {
		if err := f.Truncate(s.size); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return s, nil
}

// newSpool replaces a session's spool by an empty one.
func newSpool(path string, head spoolHead) (*spool, error) {
	first, err := head.line()
	if err != nil {
		return nil, err
	}
	if err := disk.Publish(path, first, false); err != nil {
		return nil, err
	}
	f, err := disk.OpenExisting(path)
	if err != nil {
		return nil, err
	}
	return &spool{path: path, head: head, file: f, size: int64(len(first))}, nil
}

func (h spoolHead) line() ([]byte, error) {
	b, err := json.Marshal(h)
	return append(b, '\n'), err
}

// smallLine is up to which size a line is written in one call.
const smallLine = 64 << 10

// append adds a message and returns where its line starts. After an error the file is
// as it was, or the next append makes it so.
func (s *spool) append(m Stored) (offset int64, err error) {
	head, err := m.head()
	if err != nil {
		return 0, err
	}
	at := s.size
	if len(m.Content) <= smallLine {
		line := append(append(head, m.Content...), lineEnd...)
		if err := s.write(line, at); err != nil {
			return 0, err
		}
		s.size = at + int64(len(line))
		return at, nil
	}
	for _, part := range [][]byte{head, m.Content, []byte(lineEnd)} {
		if err := s.write(part, at); err != nil {
			return 0, err
		}
		at += int64(len(part))
	}
	offset, s.size = s.size, at
	return offset, nil
}

// write writes a part of a line. What a failed write leaves is cut off at once, or
// else a shorter line in its place would be followed by its rest.
func (s *spool) write(b []byte, at int64) error {
	if s.bad != nil {
		return s.bad
	}
	err := s.file.WriteAt(b, at)
	if err == nil {
		return nil
	}
	s.bad = s.file.Truncate(s.size)
	return errors.Join(err, s.bad)
}

// read reads the message whose line starts at an offset.
func (s *spool) read(offset int64) (Stored, error) {
	if s.file == nil {
		return Stored{}, fmt.Errorf("%s: it is closed", s.path)
	}
	first := make([]byte, maxHead)
	n, err := s.file.ReadAt(first, offset)
	if err != nil && err != io.EOF {
		return Stored{}, fmt.Errorf("%s: offset %d: %w", s.path, offset, err)
	}
	first = first[:n]
	m, length, size, err := parseHead(first)
	if err != nil {
		return Stored{}, fmt.Errorf("%s: offset %d: %w", s.path, offset, err)
	}
	if size > stream.MaxLine {
		return Stored{}, fmt.Errorf("%s: offset %d: a message of %d bytes is longer than any may be", s.path, offset, size)
	}
	m.Content = make([]byte, size)
	have := copy(m.Content, first[length:])
	if have < len(m.Content) {
		if _, err := s.file.ReadAt(m.Content[have:], offset+int64(length+have)); err != nil {
			return Stored{}, fmt.Errorf("%s: offset %d: %w", s.path, offset, err)
		}
	}
	if offset < s.old && !json.Valid(m.Content) {
		return Stored{}, fmt.Errorf("%s: offset %d: the message is damaged", s.path, offset)
	}
	return m, nil
}

// scan lists the messages and finds the end of the last whole line.
func (s *spool) scan(session string, list found) error {
	end := s.file.Info().Size
	in := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, end), smallLine)
	first, err := in.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(first, &s.head)
	}
	if err != nil {
		return fmt.Errorf("%s: its first line does not say which session it belongs to: %w", s.path, err)
	}
	if s.head.Session != session {
		return fmt.Errorf("%s: it belongs to session %q: %w", s.path, s.head.Session, disk.ErrForeign)
	}
	for s.size = int64(len(first)); ; {
		start, err := in.Peek(maxHead)
		if len(start) == 0 {
			return notEOF(err)
		}
		m, length, size, bad := parseHead(start)
		line, end, err := skipLine(in)
		if err != nil {
			return notEOF(err) // torn
		}
		if bad == nil && line == int64(length)+size+int64(len(lineEnd)) && end == lineEnd {
			list(m, s.size)
		}
		s.size += line
	}
}

// skipLine moves behind a line and returns its length and its last bytes. The error is
// [io.EOF] if the line has no end.
func skipLine(in *bufio.Reader) (length int64, end string, err error) {
	for {
		part, err := in.ReadSlice('\n')
		length += int64(len(part))
		end += string(part[max(len(part)-len(lineEnd), 0):])
		end = end[max(len(end)-len(lineEnd), 0):]
		if err != bufio.ErrBufferFull {
			return length, end, err
		}
	}
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// drop replaces the file by one that starts at the line at an offset, and returns by
// how much the lines that are left have moved.
func (s *spool) drop(head spoolHead, offset int64) (moved int64, err error) {
	s.moving.Lock()
	defer s.moving.Unlock()
	next, err := newSpool(s.path+".next", head)
	if err != nil {
		return 0, err
	}
	moved = offset - next.size
	if err := s.copyTo(next, offset); err != nil {
		return 0, errors.Join(err, next.close(), disk.Remove(next.path))
	}
	if err := disk.Rename(next.path, s.path); err != nil {
		return 0, errors.Join(err, next.close(), disk.Remove(next.path))
	}
	err = s.close()
	s.file, s.size, s.head, s.bad = next.file, next.size, head, nil
	s.old = max(s.old-moved, 0)
	return moved, err
}

func (s *spool) copyTo(next *spool, offset int64) error {
	part := make([]byte, min(1<<20, s.size-offset))
	for offset < s.size {
		part = part[:min(int64(len(part)), s.size-offset)]
		if _, err := s.file.ReadAt(part, offset); err != nil {
			return err
		}
		if err := next.file.WriteAt(part, next.size); err != nil {
			return err
		}
		next.size += int64(len(part))
		offset += int64(len(part))
	}
	return nil
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
