package run

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"heartbeat/internal/disk"
)

// A journal that changes while it is read is read again. There is none for a moment while
// run:repair-journal puts the repaired one in place.
const (
	tries = 5
	pause = 2 * time.Millisecond
)

func (r *Run) index(cache string) (*index, error) {
	for n := 1; ; n++ {
		x, err := r.look(cache)
		if err == nil {
			return x, nil
		}
		if again := errors.Is(err, errMoved) || errors.Is(err, fs.ErrNotExist); !again || n == tries {
			return nil, r.explain(err)
		}
		time.Sleep(pause)
	}
}

func (r *Run) explain(err error) error {
	var d *damaged
	switch {
	case errors.As(err, &d):
	case errors.Is(err, errMoved):
		d = &damaged{err.Error(), remove}
	case errors.Is(err, fs.ErrNotExist):
		d = &damaged{"there is no journal folder", restore}
	default:
		return fmt.Errorf("read the journal of run %s: %w", r.id, err)
	}
	return fmt.Errorf("read the journal of run %s: %w: %w", r.id, d, ErrCorrupt)
}

// look reads the journal as it is now, and as little of it as possible.
func (r *Run) look(path string) (*index, error) {
	f, err := openFolder(r.dir)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if path == "" {
		names, err := f.names()
		if err != nil {
			return nil, err
		}
		x := &index{}
		return x, x.extend(f, names)
	}
	c := readCache(path, r.id)
	if c.isCurrent(f) {
		return &c.index, nil
	}
	return r.readBehind(f, c, path)
}

// readBehind reads the events that the cache does not have, and writes a new cache.
func (r *Run) readBehind(f *folder, c *cache, path string) (*index, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	files := &digester{folder: f, names: names, stamps: map[string]string{}}
	x := c.before(files)
	next, more := newCache(f, files), len(names)-x.seq
	if x.load() != nil || x.extend(f, names) != nil {
		x, more = &index{}, len(names) // only the journal itself can tell what is wrong
		if err := x.extend(f, names); err != nil {
			return nil, err
		}
	}
	if !f.young || more > few {
		next.index = *x
		_ = disk.Publish(path, next.text(r.id), false) // best effort: without it, the next look takes longer
	}
	return x, nil
}

// few is how many events are rather read again than written to a cache that would not
// save listing the folder yet.
const few = 64

// extend adds the events that the index does not have.
func (x *index) extend(f *folder, names []string) error {
	for _, name := range names[x.seq:] {
		e, err := f.event(x.seq+1, name)
		if err != nil {
			return err
		}
		if err := x.add(e); err != nil {
			return fault(e.seq, name, err)
		}
	}
	return nil
}
