package transcript

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"heartbeat/internal/disk"
)

// Read returns the messages from a number on, in order and without gaps, and follows
// the session until the store is closed, or ctx is done: then the error is that of
// ctx. Nothing is kept for a reader, so there may be any number of slow ones.
func (s *Store) Read(ctx context.Context, from int64) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		if !s.use() {
			for m, err := range ReadEnded(ctx, s.o, from) {
				if !yield(m, err) {
					return
				}
			}
			return
		}
		defer s.done()
		old := reader{s: s}
		defer old.close()
		for n := max(from, 1); ; n++ {
			more, err := s.wait(ctx, n)
			if err == nil && !more {
				return
			}
			var m Stored
			if err == nil {
				m, err = old.message(ctx, n)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// wait returns when there is a message n, or there will be none.
func (s *Store) wait(ctx context.Context, n int64) (more bool, err error) {
	for {
		s.mu.Lock()
		more, ended, changed := n < s.next(), s.ended, s.changed
		s.mu.Unlock()
		if more || ended {
			return more, ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// reader reads messages that only the database has any more.
type reader struct {
	s  *Store
	db *database
}

func (r *reader) message(ctx context.Context, n int64) (Stored, error) {
	m, found := r.s.fetch(n)
	if found {
		return m, nil
	}
	var err error
	if r.db == nil {
		if r.db, err = connect(ctx, r.s.o.DB, "ro"); err != nil {
			return Stored{}, err
		}
	}
	shift := r.s.shift.Load()
	m, found, err = r.db.at(ctx, r.s.o.SessionID, n+shift)
	if err == nil && (!found || m.N != n+shift) {
		return lost(n), nil
	}
	m.N -= shift
	return m, err
}

func (r *reader) close() { _ = r.db.close() }

// ReadEnded returns the messages of a session that no host keeps any more, from a
// number on: those in the database, and those that are still in its spool.
func ReadEnded(ctx context.Context, o Options, from int64) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		e := ended{o: o}
		defer e.close()
		err := e.open(ctx)
		for n := max(from, 1); ; {
			var m Stored
			var found bool
			if err == nil {
				m, found, err = e.at(ctx, n)
			}
			if err == nil && !found {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
			n = m.N + 1
		}
	}
}

// ended reads what a host left behind.
type ended struct {
	o       Options
	db      *database // nil if there is none
	spool   *spool    // nil if there is none
	numbers []int64   // of the messages in the spool, in order
	offsets []int64
}

func (e *ended) open(ctx context.Context) (err error) {
	e.spool, err = openSpool(e.o.Spool, e.o.SessionID, false, func(m Stored, offset int64) {
		e.numbers = append(e.numbers, m.N)
		e.offsets = append(e.offsets, offset)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, disk.ErrForeign) {
		return err
	}
	e.db, err = connect(ctx, e.o.DB, "ro")
	if err != nil && (e.spool != nil || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	return err
}

// at returns the first message from n on.
func (e *ended) at(ctx context.Context, n int64) (m Stored, found bool, err error) {
	for len(e.numbers) > 0 && e.numbers[0] < n {
		e.numbers, e.offsets = e.numbers[1:], e.offsets[1:]
	}
	waiting := len(e.numbers) > 0
	if waiting && e.numbers[0] == n {
		if m, err = e.spool.read(e.offsets[0]); err == nil {
			return m, true, nil
		}
	}
	if e.db != nil {
		m, found, err = e.db.at(ctx, e.o.SessionID, n)
		if err != nil && !waiting || found && (!waiting || m.N <= e.numbers[0]) {
			return m, found, err
		}
	}
	if !waiting {
		return Stored{}, false, nil
	}
	if m, err = e.spool.read(e.offsets[0]); err != nil {
		m = lost(e.numbers[0]) // it is damaged
	}
	return m, true, nil
}

func (e *ended) close() {
	_ = e.db.close()
	if e.spool != nil {
		_ = e.spool.close()
	}
}
