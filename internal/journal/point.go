package journal

import (
	"errors"
	"io/fs"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Point is an offset in a file that another file may have replaced since.
type Point struct {
	File string // its identity, empty where there was none
	Off  int64
}

// EndOf is the end of the last whole line of a file that may not exist.
func EndOf(path string) (p Point, err error) {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Point{}, nil
	}
	if err != nil {
		return Point{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	off, err := lines.Start(f, f.Info().Size)
	return Point{f.Identity(), off}, err
}

// In is the point's offset in a file, 0 where the point is in another file or
// beyond this one's end.
func (p Point) In(f *disk.File) int64 {
	if p.File != f.Identity() || p.Off > f.Info().Size {
		return 0
	}
	return p.Off
}
