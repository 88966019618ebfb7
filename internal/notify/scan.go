package notify

import (
	"context"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/journal"
	"heartbeat/internal/see"
)

// scan is one look at an inbox, and what it found to tell.
type scan struct {
	box   *inbox.Inbox
	now   time.Time
	st    *state
	facts see.Facts
	// holds are the keys of all conditions that hold now.
	holds map[string]bool
	// letters is how far the dead letters were read.
	letters journal.Place
	pending map[What]pending
}

// pending are the occasions of one kind that were not told yet. Kept are all that hold, and of the others as many as
// may be told one by one.
type pending struct {
	kept  []Occasion
	count int64
}

// look compares everything but the dead letters with what was told, and records since when each condition was seen.
func look(ctx context.Context, box *inbox.Inbox, st *state, o Options, launcher ...Occasion) *scan {
	s := &scan{box: box, now: o.now(), st: st, holds: map[string]bool{}, pending: map[What]pending{}}
	s.facts = see.Look(ctx, box)
	s.facts.Now, s.facts.Still = s.now, see.Still{} // how long nothing moves is measured below
	s.facts.Held = s.facts.Held[:min(len(s.facts.Held), maxHolding)]
	was := st.Seen
	st.Seen = map[string]time.Time{}
	s.troubles(was, o.Stall)
	s.stalled(was, o.Stall)
	if o.Drained && s.facts.Unreadable == nil {
		s.drained(s.facts.Settled)
	}
	s.said(launcher)
	s.over()
	return s
}

// saidAgain is how long a launcher's repeated words are not told again.
const saidAgain = 24 * time.Hour

// said adds what a launcher has to tell. If the next launcher says the same within a day, it is not told again,
// unless an entry was answered in between.
func (s *scan) said(launcher []Occasion) {
	for key, told := range s.st.Holding {
		answered := s.facts.Asked != nil && s.facts.Asked.After(told.At)
		if strings.HasPrefix(key, saysKey) && !answered && s.now.Sub(told.At) < saidAgain {
			s.holds[key] = true
		}
	}
	for _, o := range launcher {
		known := slices.ContainsFunc(s.st.Said, func(of Occasion) bool { return of.said() == o.said() })
		if !s.holds[o.said()] && !known && len(s.st.Said) < maxSaid {
			s.st.Said = append(s.st.Said, o)
		}
	}
	for _, o := range s.st.Said {
		o.key, o.holds = o.said(), true
		s.holds[o.key] = true
		s.add(o)
	}
}

// add notes an occasion, unless an interrupted round has told it already.
func (s *scan) add(o Occasion) {
	if slices.Contains(s.st.Done, o.key) {
		return
	}
	o.Inbox = s.box.Path()
	p := s.pending[o.What]
	if p.count++; o.holds || len(p.kept) <= maxTold {
		p.kept = append(p.kept, o)
	}
	s.pending[o.What] = p
}

// next removes and returns the oldest occasion of a kind.
func (s *scan) next(what What) *Occasion {
	p := s.pending[what]
	slices.SortStableFunc(p.kept, func(a, b Occasion) int { return a.At.Compare(b.At) })
	s.pending[what] = pending{p.kept[1:], p.count - 1}
	return &p.kept[0]
}

func (s *scan) total() (n int64) {
	for _, p := range s.pending {
		n += p.count
	}
	return n
}

// repair completes a commit that a killed process left behind.
func repair(ctx context.Context, box *inbox.Inbox) error {
	v, err := box.View()
	if err != nil {
		return nil // a fault, which is told
	}
	settling := v.Settling()
	if err := v.Close(); err != nil || !settling {
		return err
	}
	tx, err := box.Begin(ctx)
	if err != nil {
		return err
	}
	return tx.Close()
}
