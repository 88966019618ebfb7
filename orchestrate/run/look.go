package run

import (
	"errors"
	"fmt"
	"io/fs"
)

// tries bounds how often a journal is looked at that changes meanwhile.
const tries = 5

func (r *Run) index(cache string) (*index, error) {
	var err error
	for range tries {
		var x *index
		if x, err = r.look(cache); !errors.Is(err, errMoved) && !errors.Is(err, fs.ErrNotExist) {
			return x, r.explain(err)
		}
	}
	if errors.Is(err, errMoved) {
		return nil, r.explain(&damaged{err.Error()})
	}
	return &index{}, nil // without the directory, babysitter finds no event
}

func (r *Run) explain(err error) error {
	var d *damaged
	switch {
	case err == nil:
		return nil
	case errors.As(err, &d):
		return fmt.Errorf("read the journal of run %s: %w: run:repair-journal mends it: %w", r.id, d, ErrCorrupt)
	}
	return fmt.Errorf("read the journal of run %s: %w", r.id, err)
}

// look reads the journal as it is now, as little of it as it can.
func (r *Run) look(cache string) (*index, error) {
	f, err := openFolder(r.dir)
	if err != nil {
		return nil, err
	}
	defer f.close()
	c := readCache(cache, r.id)
	if c.isCurrent(f) {
		return &c.index, nil
	}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	x := c.before(names)
	if x.seq > 0 && x.extend(f, names) != nil {
		x = &index{} // what is wrong, the journal alone is to say
	}
	if err := x.extend(f, names); err != nil {
		return nil, err
	}
	writeCache(cache, r.id, f, names, x)
	return x, nil
}

// extend takes in the events that the index does not have.
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
