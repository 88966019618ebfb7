package book

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/money/price"
)

// maxGroups bounds the number of groups. Everything beyond goes into one more group, so the sums stay right.
const maxGroups = 200_000

// Sum adds up spending by day, entry, session, model or metadata. Its memory grows with the number of groups and
// entries, not of lines.
type Sum struct {
	by     By
	most   int // maxGroups, or fewer in a test
	groups map[groupKey]*Group
	// more is everything beyond the limit. outside and total are rows of their own.
	more, outside, total Group

	seed    maphash.Seed
	counted map[uint64]struct{} // the entries of each group
	// values are the metadata values of the entries that have lines, nil unless grouping is by metadata.
	values map[string]value
}

// groupKey identifies a group: of an entry by the entry id, any other by its name.
type groupKey struct {
	name string
	seq  int64
}

func (g *Group) key() groupKey { return groupKey{cmp.Or(g.EntryID, g.Name), g.seq} }

// NewSum returns an empty sum.
func NewSum(by By) *Sum {
	s := &Sum{
		by: by, most: maxGroups, groups: map[groupKey]*Group{}, seed: maphash.MakeSeed(), counted: map[uint64]struct{}{},
		more: Group{Kind: More}, outside: Group{Kind: Outside}, total: Group{Kind: Total},
	}
	if by.Key() != "" {
		s.values = map[string]value{}
	}
	return s
}

// Add books a line.
func (s *Sum) Add(l price.Line) {
	switch s.by {
	case Day:
		day := ""
		if !l.At.IsZero() {
			day = l.At.Local().Format(time.DateOnly)
		}
		s.add(Group{Name: day}, l)
	case Session:
		s.add(Group{Name: l.SessionID}, l)
	case Model:
		if l.Models == nil {
			l.Models = []price.ByModel{{Model: l.Model, Amount: l.Amount}}
		}
		stated := l.ClientNanos // counts once
		for _, of := range l.Models {
			l.Price = price.Price{Amount: of.Amount, Model: of.Model}
			l.ClientNanos, stated = stated, 0
			s.add(Group{Name: of.Model}, l)
		}
	default:
		if l.Outside() {
			s.outside.add(l, false)
			s.total.add(l, false)
			return
		}
		s.add(Group{Name: l.ID, EntryID: l.EntryID, Start: l.Start, seq: l.FirstSeq}, l)
	}
}

// add books a line in a group, which starts as fresh.
func (s *Sum) add(fresh Group, l price.Line) {
	g := s.groups[fresh.key()]
	switch {
	case g != nil:
	case len(s.groups) < s.most:
		g = &fresh
		g.Kind, g.Name, g.EntryID = Named, strings.Clone(g.Name), strings.Clone(g.EntryID) // not the whole line
		s.groups[g.key()] = g
		if s.values != nil {
			s.values[g.EntryID] = value{kind: Gone}
		}
	default:
		g = &s.more
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
	for _, g := range []*Group{&s.more, &s.outside} {
		if g.lines > 0 {
			rows = append(rows, g)
		}
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

// Check compares the prices with the client's own total, over the sessions in which the client stated one and every
// request has a price.
type Check map[string]price.Amount // by session

const maxChecked = 100_000 // bounds how many sessions are compared

// Add books what a session spent. A session with a summary is not compared, because its cost is a guess or the client's
// own figure. Neither is a session with a person's own prices.
func (c Check) Add(l *price.Line) {
	a := l.Amount
	if l.Guess || l.Own {
		a.Unpriced++
	}
	if was, known := c[l.SessionID]; known || len(c) < maxChecked {
		c[strings.Clone(l.SessionID)] = was.Plus(a)
	}
}

const (
	tolerance = 0.01 // how far the two may differ, as a fraction of the client's total
	// leastChecked is the least spending, in nanodollars, that proves anything. The client makes small requests of its
	// own, such as for titles, that are in no transcript.
	leastChecked = 1_000_000_000
)

// Sentence warns that the price table seems to be out of date, and is "" unless the two differ by more than tolerance.
func (c Check) Sentence() string {
	priced, stated := int64(0), int64(0)
	for _, a := range c {
		if a.ClientNanos > 0 && a.Unpriced == 0 {
			priced, stated = priced+a.Nanos, stated+a.ClientNanos
		}
	}
	if stated < leastChecked || math.Abs(float64(priced-stated)) <= tolerance*float64(stated) {
		return ""
	}
	return "by the table of prices of " + price.TableDate + " the sessions cost " + price.FormatUSD(priced) + " USD, and by the client's own totals " +
		price.FormatUSD(stated) + " USD: the table may be out of date (heartbeat costs --prices prints it, and says how to change it)"
}
