package transcript

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/stream"
)

// writer moves messages from the spool to the database, in a goroutine of its own.
type writer struct {
	s       *Store
	woken   chan struct{}
	closing chan context.Context // what is left must be stored until it is done
	closed  chan struct{}
	result  error
	ctx     context.Context // of all calls of the database before the last ones
	cancel  context.CancelFunc

	db       *database
	settled  bool // the store's shift is known
	dirty    bool // the guild's row lacks messages
	rowDue   time.Time
	retryDue time.Time
	pause    time.Duration // until the next attempt
}

func newWriter(s *Store) *writer {
	w := &writer{
		s: s, woken: make(chan struct{}, 1), closing: make(chan context.Context, 1), closed: make(chan struct{}),
		dirty: true,
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

func (w *writer) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// askFor is how long a session's start waits for the database to say which number
// comes next.
const askFor = time.Second

// ask asks the database for the last number, where no spool tells it.
func (w *writer) ask() (last int64, known bool) {
	if _, err := disk.StatFile(w.s.o.DB); errors.Is(err, fs.ErrNotExist) {
		return 0, true
	}
	db, err := openDatabase(w.ctx, w.s.o.DB, askFor)
	if err == nil {
		last, err = db.last(w.ctx, w.s.o.SessionID)
	}
	if err != nil {
		w.s.databaseFailed(err)
		_ = db.close() // it is opened anew
		return 0, false
	}
	w.db = db
	return last, true
}

func (w *writer) run() {
	defer close(w.closed)
	timer := time.NewTimer(0)
	for {
		select {
		case <-w.woken:
		case <-timer.C:
		case ctx := <-w.closing:
			w.result = w.last(ctx)
			return
		}
		w.step(w.ctx)
		timer.Reset(w.next())
	}
}

// idle is how often a store with nothing to do looks whether its database is still
// there.
const idle = time.Minute

// next is how long the writer may sleep.
func (w *writer) next() time.Duration {
	due := time.Now().Add(idle)
	if w.db == nil && w.retryDue.Before(due) {
		due = w.retryDue
	}
	if w.db != nil && w.dirty && w.rowDue.Before(due) {
		due = w.rowDue
	}
	return max(time.Until(due), 0)
}

// step does what is due.
func (w *writer) step(ctx context.Context) {
	if w.db == nil && time.Now().Before(w.retryDue) {
		return
	}
	if err := w.store(ctx); err != nil {
		w.failed(err)
		return
	}
	w.pause = 0
	w.s.databaseWorks()
	if w.dirty && !time.Now().Before(w.rowDue) {
		_ = w.row(ctx) // the store's health has it
	}
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

func (w *writer) failed(err error) {
	w.s.databaseFailed(err)
	w.s.mu.Lock()
	w.s.spoolHeld()
	w.s.mu.Unlock()
	_ = w.db.close() // a new connection tells more than another error of this one
	w.db = nil
	w.pause = min(max(2*w.pause, firstPause), lastPause)
	w.retryDue = time.Now().Add(w.pause)
}

// store moves all messages to the database.
func (w *writer) store(ctx context.Context) error {
	if w.db != nil && w.db.moved() {
		_ = w.db.close() // what it would write, nobody would read
		w.db = nil
		w.s.o.Log(w.s.o.DB + ": the database was removed or replaced, and gets all messages that the spool still has")
	}
	if w.db == nil {
		db, err := openDatabase(ctx, w.s.o.DB, busyTimeout)
		if err != nil {
			return err
		}
		w.db = db
		if err := w.rewind(ctx); err != nil {
			return err
		}
	}
	for {
		batch := w.batch()
		if len(batch) == 0 {
			return nil
		}
		if err := w.settle(ctx, batch[0]); err != nil {
			return err
		}
		if err := w.db.store(ctx, w.s.o.SessionID, batch, w.s.shift.Load()); err != nil {
			return err
		}
		size := 0
		for _, m := range batch {
			w.dirty = w.dirty || (stream.Message{Type: m.Type}).InTranscript()
			size += len(m.Content)
		}
		w.s.markStored(batch[len(batch)-1].N)
		if size >= large {
			batch = nil
			debug.FreeOSMemory() // the session may go on for hours with small messages
		}
	}
}

// rewind finds out which messages the database has. They are stored in order, so the
// last one tells. If it lacks some that it had, it was replaced, and gets all that
// the spool has.
func (w *writer) rewind(ctx context.Context) error {
	last, err := w.db.last(ctx, w.s.o.SessionID)
	if err != nil {
		return err
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	unsure := w.s.spool == nil || w.s.spool.head.Unsure
	switch stored := w.s.stored.Load() + w.s.shift.Load(); {
	case last < stored:
		w.s.stored.Store(w.s.first - 1)
		w.dirty = true
	case last > stored && !unsure:
		w.s.stored.Store(min(last, w.s.next()-1))
	}
	return nil
}

// settle finds out by how much the database's numbers are higher: where a session's
// start could not ask the database, it began at 1, and the database may have messages
// of the same session from before. They are told apart by their time and text.
func (w *writer) settle(ctx context.Context, first Stored) error {
	w.s.mu.Lock()
	unsure := w.s.spool == nil || w.s.spool.head.Unsure
	w.s.mu.Unlock()
	if w.settled || !unsure {
		return nil
	}
	n, err := w.db.find(ctx, w.s.o.SessionID, first)
	if err != nil {
		return err
	}
	last, err := w.db.last(ctx, w.s.o.SessionID)
	if err != nil {
		return err
	}
	if w.settled = true; n > 0 {
		w.s.shift.Store(n - first.N)
	} else {
		w.s.shift.Store(max(last-(first.N-1), 0))
	}
	return nil
}

// How much goes into one transaction.
const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
	large         = 2 * maxBatchBytes // a batch of one large message
)

// batch reads the next messages for the database.
func (w *writer) batch() []Stored {
	var batch []Stored
	size := 0
	for n := w.s.stored.Load() + 1; n <= w.s.Last() && len(batch) < maxBatch && size < maxBatchBytes; n++ {
		m, found := w.s.fetch(n)
		if !found {
			m = lost(n) // unless the database has it: then that one stays
		}
		batch = append(batch, m)
		size += len(m.Content)
	}
	return batch
}

// restAfterRow is how many times longer than writing the guild's row the pause after
// it is: the row of a long session takes longer and longer.
const restAfterRow = 20

func (w *writer) row(ctx context.Context) error {
	start := time.Now()
	err := w.db.row(ctx, w.s.o.SessionID)
	w.rowDue = time.Now().Add(max(w.s.o.RowEvery, restAfterRow*time.Since(start)))
	if err != nil {
		w.s.rowFailed(err)
		return err
	}
	w.dirty = false
	w.s.rowWorks()
	return nil
}

// finish has the writer store the rest and ends it.
func (w *writer) finish(ctx context.Context) error {
	select {
	case w.closing <- ctx:
	default: // closed twice
	}
	defer context.AfterFunc(ctx, w.cancel)()
	<-w.closed
	return w.result
}

// attempts is how often the last write is tried where the database does not just
// wait for somebody else.
const attempts = 3

// last stores the rest, writes the guild's row and closes everything, with attempts
// until ctx is done.
func (w *writer) last(ctx context.Context) error {
	defer w.cancel()
	defer w.s.done()
	err := w.complete(ctx)
	for n := 1; err != nil; n++ {
		if n >= attempts && !isBusy(err) {
			return errors.Join(w.rest(err), w.db.close())
		}
		select {
		case <-ctx.Done():
			return errors.Join(w.rest(err), w.db.close())
		case <-time.After(firstPause):
		}
		err = w.complete(ctx)
	}
	return errors.Join(disk.Remove(w.s.o.Spool), w.db.close()) // readers still have the file open
}

// complete stores what waits and the guild's row, so that both survive a power loss.
func (w *writer) complete(ctx context.Context) error {
	if err := w.store(ctx); err != nil {
		w.failed(err)
		return err
	}
	w.s.databaseWorks()
	if err := w.db.synced(ctx); err != nil {
		return err
	}
	return w.row(ctx) // even if it lacks nothing: others write to the guild's table too
}

// rest says what the database did not take. What the spool did not take either is
// lost with this process.
func (w *writer) rest(err error) error {
	w.s.mu.Lock()
	lost := len(w.s.held)
	w.s.health.lost += int64(lost)
	w.s.mu.Unlock()
	if lost > 0 {
		err = fmt.Errorf("%w: %d, since neither the database nor %s could be written: %w", ErrLost, lost, w.s.o.Spool, err)
	}
	if h := w.s.Health(); h.Stored+int64(lost) < h.Last {
		err = fmt.Errorf("%w: %d of %d, in %s: %w", ErrWaiting, h.Last-h.Stored-int64(lost), h.Last, w.s.o.Spool, err)
	}
	return err
}
