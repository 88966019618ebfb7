// Package costs adds up spending by day, entry, session, model or metadata, and formats prices for people and
// programs.
package costs

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"heartbeat/internal/money/price"
)

// byModel splits a line into one for each model.
func byModel(l price.Line) (all []price.Line) {
	for i, of := range l.Models {
		one := l
		if one.Price = (price.Price{Amount: of.Amount, Model: of.Model}); i == 0 {
			one.Said = l.Said
		}
		all = append(all, one)
	}
	if all == nil {
		return []price.Line{l}
	}
	return all
}

// maxGroups bounds how many groups are told apart. Everything after that goes into one more group, so the sums stay
// right.
const maxGroups = 200_000

// Sum adds lines up. Its memory grows with the number of groups and entries, not of lines.
type Sum struct {
	by     By
	most   int // maxGroups, or fewer in a test
	groups map[groupKey]*Group
	more   *Group // everything after the limit
	// outside and total are rows of their own.
	outside, total Group

	seed    maphash.Seed
	counted map[uint64]struct{} // the entries of each group
	booked  map[string]bool     // the entries that have lines
	// values maps entry ids to metadata values, with the zero handle if the key is missing. It is nil unless
	// grouping is by metadata.
	values map[string]unique.Handle[string]
}

type groupKey struct {
	name  string
	first int64
}

// NewSum returns an empty sum.
func NewSum(by By) *Sum {
	s := &Sum{
		by: by, most: maxGroups, groups: map[groupKey]*Group{}, seed: maphash.MakeSeed(), counted: map[uint64]struct{}{},
		outside: Group{Kind: Outside}, total: Group{Kind: Total},
	}
	if key := by.Key(); key != "" {
		s.booked = map[string]bool{}
		s.values = map[string]unique.Handle[string]{}
	}
	return s
}

// Add books a line.
func (s *Sum) Add(l price.Line) {
	switch s.by {
	case Day:
		day := l.At.Local().Format(time.DateOnly)
		if l.At.IsZero() {
			day = ""
		}
		s.add(groupKey{name: day}, Group{Kind: Named, Name: day}, l)
	case Session:
		s.add(groupKey{name: l.SessionID}, Group{Kind: Named, Name: l.SessionID}, l)
	case Model:
		for _, of := range byModel(l) {
			s.add(groupKey{name: of.Model}, Group{Kind: Named, Name: of.Model}, of)
		}
	default:
		if l.Outside() {
			s.outside.add(l, false)
			s.total.add(l, false)
			return
		}
		s.add(groupKey{l.EntryID, l.FirstSeq}, Group{Kind: Named, Name: l.ID, EntryID: l.EntryID, Start: l.Start, seq: l.FirstSeq}, l)
	}
}

// add books a line in the group of that key. A new group starts as fresh.
func (s *Sum) add(key groupKey, fresh Group, l price.Line) {
	g := s.groups[key]
	switch {
	case g != nil:
	case len(s.groups) < s.most:
		g = &fresh
		g.Name, g.EntryID = strings.Clone(g.Name), strings.Clone(g.EntryID) // not the whole line
		if key.name = g.Name; s.by != Day && s.by != Session && s.by != Model {
			key.name = g.EntryID
		}
		s.groups[key] = g
		if s.values != nil {
			s.booked[g.EntryID] = true
		}
	default:
		if s.more == nil {
			s.more = &Group{Kind: More}
		}
		g = s.more
	}
	g.add(l, s.first(g.Name, l))
	s.total.add(l, s.first("\x00", l))
}

// first reports whether this is the first line of its entry in the named group.
func (s *Sum) first(group string, l price.Line) bool {
	if l.Outside() {
		return false
	}
	sum := maphash.Comparable(s.seed, struct {
		group, entryID string
		first          int64
	}{group, l.EntryID, l.FirstSeq})
	_, known := s.counted[sum]
	s.counted[sum] = struct{}{}
	return !known
}

// Rows returns the groups in order, followed by what was spent outside of entries if no group includes it, and the
// total.
func (s *Sum) Rows() (rows []*Group, total *Group) {
	if s.values != nil {
		rows = s.byValue()
	} else {
		rows = slices.Collect(maps.Values(s.groups))
	}
	slices.SortFunc(rows, s.order)
	if s.more != nil {
		rows = append(rows, s.more)
	}
	if !s.outside.empty() {
		rows = append(rows, &s.outside)
	}
	return rows, &s.total
}

// order sorts by time. Groups of metadata have no time, so the most expensive comes first.
func (s *Sum) order(a, b *Group) int {
	if s.values != nil {
		return cmp.Or(-cmp.Compare(a.Spent.Nanos, b.Spent.Nanos), -cmp.Compare(a.Spent.Tokens.Sum(), b.Spent.Tokens.Sum()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	}
	if s.by == Day {
		return cmp.Compare(a.Name, b.Name)
	}
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.seq, b.seq), cmp.Compare(a.Name, b.Name), cmp.Compare(a.EntryID, b.EntryID))
}
