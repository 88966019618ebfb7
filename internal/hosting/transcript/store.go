package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/hosting/stream"
)

// Store keeps the messages of one session. All methods are safe for concurrent use.
type Store struct {
	o Options

	mu      sync.Mutex
	spool   *spool // nil if it could not be opened
	first   int64  // the number of index[0]
	index   []int64
	held    []Stored // what is not in the spool, by number
	holding int64    // bytes of held
	changed chan struct{}
	ended   bool // no more messages come
	refs    int  // who uses the spool: the store until it is closed, and readers
	health  health

	stored atomic.Int64 // up to which number the database has the messages
	shift  atomic.Int64 // by how much numbers in the database are higher
	writer *writer
}

// Where a message is that the spool does not have; other values in the index are
// offsets in the spool.
const (
	inDatabase = -1
	inMemory   = -2
	nowhere    = -3 // lost
)

// Open opens the store of a session and starts to move messages to the database. It
// never fails: what is wrong is said by [Store.Health] and told to Options.Log, and
// the store does what it still can.
func Open(o Options) *Store {
	s := &Store{o: o.withDefaults(), changed: make(chan struct{}), refs: 1, first: 1}
	s.writer = newWriter(s)
	s.openSpool()
	s.stored.Store(s.first - 1)
	go s.writer.run()
	return s
}

// openSpool opens the session's spool, or makes one that goes on where the database
// ends.
func (s *Store) openSpool() {
	s.first = 0
	sp, err := openSpool(s.o.Spool, s.o.SessionID, true, func(m Stored, offset int64) {
		if s.first == 0 {
			s.first = m.N
		}
		if s.fill(m.N) {
			s.index = append(s.index, offset)
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		after, known := s.writer.ask()
		after, known = max(after, s.o.After), known || s.o.After > 0
		s.first = after + 1
		sp, err = newSpool(s.o.Spool, spoolHead{Session: s.o.SessionID, After: after, Unsure: !known})
	}
	if err != nil {
		s.first = max(s.first, 1)
		s.spoolFailed(err)
		return
	}
	s.spool = sp
	if len(s.index) == 0 {
		s.first = sp.head.After + 1
	}
}

// fill marks the numbers before n that the spool does not have, and reports whether n
// is the next one.
func (s *Store) fill(n int64) bool {
	for s.next() < n {
		s.index = append(s.index, inDatabase)
	}
	return s.next() == n
}

func (s *Store) next() int64 { return s.first + int64(len(s.index)) }

// Append numbers a message and keeps it, and whoever called it leaves m.Raw as it is.
// It never waits for the database. A message for which there is no room, neither in
// the spool nor in memory, is lost, and another one in its place says so. So is one
// that comes after [Store.Close].
func (s *Store) Append(m stream.Message) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := Stored{N: s.next(), At: time.Now().UTC().Truncate(time.Millisecond), Type: m.Type, Content: m.Raw}
	s.index = append(s.index, s.place(stored))
	s.announce()
	s.writer.wake()
	return stored.N
}

// announce wakes the readers.
func (s *Store) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// place puts a message where there is room and returns its place in the index.
func (s *Store) place(m Stored) int64 {
	if !s.ended {
		s.spoolHeld()
		if len(s.held) == 0 {
			if offset, err := s.toSpool(m); err == nil {
				return offset
			}
		}
		if size := int64(len(m.Content)); s.holding+size <= s.o.MemoryMax {
			s.held = append(s.held, m)
			s.holding += size
			return inMemory
		}
	}
	s.health.lost++
	return nowhere
}

// toSpool appends to the spool if there is room.
func (s *Store) toSpool(m Stored) (int64, error) {
	err := error(fs.ErrClosed)
	if s.spool == nil {
		return 0, err
	}
	if s.spool.size+int64(len(m.Content)) > s.o.SpoolMax {
		err = fmt.Errorf("%s: it may grow to %d bytes", s.o.Spool, s.o.SpoolMax)
	} else {
		var offset int64
		if offset, err = s.spool.append(m); err == nil {
			s.spoolWorks()
			return offset, nil
		}
	}
	s.spoolFailed(err)
	return 0, err
}

// spoolHeld moves messages from memory to the spool if that works again.
func (s *Store) spoolHeld() {
	for len(s.held) > 0 {
		m := s.held[0]
		offset, err := s.toSpool(m)
		if err != nil {
			return
		}
		s.index[m.N-s.first] = offset
		s.release(1)
	}
}

// release drops the first messages from memory.
func (s *Store) release(n int) {
	for _, m := range s.held[:n] {
		s.holding -= int64(len(m.Content))
	}
	s.held = slices.Delete(s.held, 0, n)
}

// markStored notes that the database has all messages up to a number.
func (s *Store) markStored(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored.Store(n)
	free, _ := slices.BinarySearchFunc(s.held, n+1, func(m Stored, n int64) int { return cmp.Compare(m.N, n) })
	for _, m := range s.held[:free] {
		s.index[m.N-s.first] = inDatabase
	}
	s.release(free)
	s.dropStored()
}

// tailMax is how much of the spool may be copied to drop what is before it, unless
// the spool fills up.
const tailMax = 16 << 20

// dropStored takes stored messages out of a spool that has grown large. Readers find
// them in the database.
func (s *Store) dropStored() {
	if s.spool == nil || s.spool.size <= s.o.Keep {
		return
	}
	from, after := s.spool.size, s.next()-1
	for n := s.stored.Load() + 1; n < s.next(); n++ {
		if offset := s.index[n-s.first]; offset >= 0 {
			from, after = offset, n-1
			break
		}
	}
	if from <= s.o.Keep/2 || s.spool.size-from > tailMax && s.spool.size < s.o.SpoolMax/2 {
		return
	}
	head := spoolHead{Session: s.o.SessionID, After: after, Unsure: s.spool.head.Unsure}
	moved, err := s.spool.drop(head, from)
	if err != nil {
		s.spoolFailed(err)
		return
	}
	s.spoolWorks()
	gone := min(after+1-s.first, int64(len(s.index)))
	s.index = slices.Clone(s.index[gone:])
	s.first += gone
	for i, offset := range s.index {
		if offset >= 0 {
			s.index[i] = offset - moved
		}
	}
}

// fetch returns a message that was appended, from spool or memory. If neither has it,
// only the database may.
func (s *Store) fetch(n int64) (m Stored, found bool) {
	s.mu.Lock()
	if n < s.first {
		s.mu.Unlock()
		return Stored{}, false
	}
	at := s.index[n-s.first]
	if at == inMemory {
		i, _ := slices.BinarySearchFunc(s.held, n, func(m Stored, n int64) int { return cmp.Compare(m.N, n) })
		m = s.held[i]
	}
	if at < 0 {
		s.mu.Unlock()
		if at == nowhere {
			m = lost(n)
		}
		return m, at != inDatabase
	}
	s.spool.moving.RLock()
	defer s.spool.moving.RUnlock()
	s.mu.Unlock()
	m, err := s.spool.read(at)
	if err == nil && m.N != n {
		err = fmt.Errorf("%s: offset %d: it is message %d instead of %d", s.o.Spool, at, m.N, n)
	}
	if err != nil {
		s.o.Log("a message cannot be read from the spool: " + err.Error())
	}
	return m, err == nil
}

// lost stands for a message that is gone.
func lost(n int64) Stored {
	m := stream.StandIn(stream.SubtypeLost, "", 0)
	return Stored{N: n, At: time.Now().UTC().Truncate(time.Millisecond), Type: m.Type, Content: m.Raw}
}

// Last is the number of the last message, 0 if there is none.
func (s *Store) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next() - 1
}

// Stored is the number up to which the database has the messages.
func (s *Store) Stored() int64 { return s.stored.Load() }

// Close stores what waits, writes the guild's row and closes the database, as far as
// that works until ctx is done. If the error matches [ErrWaiting], the rest stays in
// the spool for [Recover]; any other but [ErrLost] is about the guild's row alone, and
// Recover writes that. Readers get what they have not read yet.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.ended {
		s.ended = true
		s.announce()
	}
	s.mu.Unlock()
	return s.writer.finish(ctx)
}

// done gives a reference to the spool back; the last one closes it.
func (s *Store) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs--; s.refs == 0 && s.spool != nil {
		s.spool.moving.Lock()
		defer s.spool.moving.Unlock()
		_ = s.spool.close() // nothing is written any more
	}
}

// use takes a reference to the spool; false if it is closed already.
func (s *Store) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == 0 {
		return false
	}
	s.refs++
	return true
}

// Transcript writes the conversation so far as a JSON array: the assistant's and the
// user's messages, as the client spelled them.
func (s *Store) Transcript(ctx context.Context, w io.Writer) error {
	last := s.Last()
	between := "["
	if last > 0 {
		for m, err := range s.Read(ctx, 1) {
			if err != nil {
				return err
			}
			if (stream.Message{Type: m.Type}).InTranscript() {
				for _, part := range [][]byte{[]byte(between), m.Content} {
					if _, err := w.Write(part); err != nil {
						return err
					}
				}
				between = ","
			}
			if m.N >= last {
				break
			}
		}
	}
	if between == "[" {
		_, err := w.Write([]byte("[]"))
		return err
	}
	_, err := w.Write([]byte("]"))
	return err
}
