package notify

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/journal"
	"heartbeat/internal/see"
)

// scan is one look at an inbox: what was not told.
type scan struct {
	box   *inbox.Inbox
	now   time.Time
	st    *state
	facts see.Facts
	// holds are the keys of what holds now.
	holds map[string]bool
	// letters is how far the dead letters were read.
	letters journal.Place
	pending map[What]*pending
}

// look compares the inbox with what was told, and notes in the state since when what it sees is so.
func look(ctx context.Context, box *inbox.Inbox, st *state, o Options, launcher ...Occasion) (*scan, error) {
	s := &scan{box: box, now: o.now(), st: st, holds: map[string]bool{}, pending: map[What]*pending{}}
	s.facts = see.Look(ctx, box)
	s.facts.Now, s.facts.Still = s.now, see.Still{} // how long nothing moves is counted below
	s.facts.Held = s.facts.Held[:min(len(s.facts.Held), maxHolding)]
	s.troubles(o.Stall)
	if o.Stall > 0 {
		s.stalled(o.Stall)
	}
	if o.Drained && s.facts.Unreadable == nil {
		s.drained(s.facts.Settled)
	}
	s.said(launcher)
	s.over()
	return s, s.findLetters()
}

// saidAgain is how long what a launcher says is not told again.
const saidAgain = 24 * time.Hour

// said adds what a launcher had to tell. The same, said again by the next launcher, is
// not told for a day, unless an entry was answered meanwhile.
func (s *scan) said(launcher []Occasion) {
	for key, told := range s.st.Holding {
		answered := s.facts.Asked != nil && s.facts.Asked.After(told.At)
		if strings.HasPrefix(key, saysKey) && !answered && s.now.Sub(told.At) < saidAgain {
			s.holds[key] = true
		}
	}
	for _, o := range launcher {
		known := slices.ContainsFunc(s.st.Said, func(of said) bool { return of.Key == o.key })
		if !s.holds[o.key] && !known && len(s.st.Said) < maxSaid {
			s.st.Said = append(s.st.Said, said{o.key, o})
		}
	}
	for _, of := range s.st.Said {
		s.holds[of.Key] = true
		of.Occasion.key, of.Occasion.holds = of.Key, true
		s.add(of.Occasion)
	}
}

// add notes an occasion, unless it was told before the round was interrupted.
func (s *scan) add(o Occasion) {
	if !slices.Contains(s.st.Done, o.key) {
		o.Inbox, o.Host = s.box.Path(), hostName()
		s.of(o.What).add(o)
	}
}

// of are those of a kind.
func (s *scan) of(what What) *pending {
	if s.pending[what] == nil {
		s.pending[what] = &pending{}
	}
	return s.pending[what]
}

func (s *scan) total() (n int64) {
	for _, p := range s.pending {
		n += p.n
	}
	return n
}

// repair has a commit that a killed process left reach the files.
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

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
