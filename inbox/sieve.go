package inbox

import (
	"hash/maphash"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// sieve is a Bloom filter of the ids in a file's lines: it needs little space, but may also take other ids for known.
type sieve struct {
	seed maphash.Seed
	seen journal.Seen
	bits [sieveBits / 64]uint64
}

// sieveBits suffices for a million ids: one in twenty other ids is then taken for known.
const sieveBits = 1 << 23

// spots returns the two bits that stand for an id.
func (s *sieve) spots(id string) (at [2]uint64) {
	h := maphash.String(s.seed, id)
	return [2]uint64{h % sieveBits, (h >> 32) % sieveBits}
}

func (s *sieve) add(id string) {
	for _, at := range s.spots(id) {
		s.bits[at/64] |= 1 << (at % 64)
	}
}

func (s *sieve) mayHold(id string) bool {
	may := uint64(1)
	for _, at := range s.spots(id) {
		may &= s.bits[at/64] >> (at % 64)
	}
	return may == 1
}

// seenWithout returns a place in a file before which none of the ids occurs. It is the start, unless this process
// searches a large file again: so an agent that appends for weeks reads only what is new.
func (b *Inbox) seenWithout(kind journal.Kind, ids map[string]bool) (journal.Seen, error) {
	b.sieving.Lock()
	defer b.sieving.Unlock()
	s, again := b.sieves[kind]
	if b.sieves[kind] = s; !again || sightOf(b.fileOf(kind)).size < partBytes {
		return journal.Seen{}, nil
	}
	if s == nil {
		s = &sieve{seed: maphash.MakeSeed()}
	}
	b.sieves[kind] = nil // after an error it is not whole
	err := s.seen.Advance(b.fileOf(kind), func(_ int64, anew bool) error {
		if anew {
			clear(s.bits[:])
		}
		return nil
	}, func(_, _ int64, line []byte, _ bool) bool {
		if id := flat.Value(line).Get("id").Shown(); id != "" {
			s.add(id)
		}
		return true
	})
	if err != nil {
		return journal.Seen{}, err
	}
	b.sieves[kind] = s
	for id := range ids {
		if s.mayHold(id) {
			return journal.Seen{}, nil
		}
	}
	return s.seen, nil
}
