package costs

import "heartbeat/internal/price"

// Kind says what a [Group] is.
type Kind string

// What a group is.
const (
	Named   Kind = "group"   // it has a name: a day, an entry, a session, a value
	Absent  Kind = "absent"  // entries whose metadata lacks the key
	Gone    Kind = "gone"    // entries whose metadata is no longer kept
	More    Kind = "more"    // what is past the bound on groups
	Outside Kind = "outside" // no entry was in flight
	Total   Kind = "total"
)

// Group is a row of the table of costs.
type Group struct {
	Kind Kind
	// Name is the day, the session's id, the entry's own id or the value.
	Name    string
	EntryID string // by entry
	Start   int64  // by entry
	// Entries is how many entries it has.
	Entries int64
	// Spent is all of it; Outside is how much of that no entry is to blame for.
	Spent, Outside price.Amount
	Divided, Open  bool
	Model          string // the last one
	// Unpriced are the requests of a total for which no dollars are known.
	Unpriced int64

	lines int64
	seq   int64 // by entry, the commit of its first delivery
	first int64 // when the first line was booked, in nanoseconds since 1970
}

func (g *Group) empty() bool { return g.lines == 0 }

// add books a line; first says that it is the first one of its entry.
func (g *Group) add(l Line, first bool) {
	g.Spent = g.Spent.Plus(l.Price.Amount)
	g.Divided, g.Open = g.Divided || l.Price.Divided, g.Open || l.Price.Open
	if l.outside() {
		g.Outside = g.Outside.Plus(l.Price.Amount)
	}
	if first {
		g.Entries++
	}
	g.since(l.At.UnixNano(), 1)
	if l.Price.Model != "" {
		g.Model = l.Price.Model
	}
}

// merge adds all of another group.
func (g *Group) merge(o *Group) {
	g.Spent, g.Outside = g.Spent.Plus(o.Spent), g.Outside.Plus(o.Outside)
	g.Divided, g.Open = g.Divided || o.Divided, g.Open || o.Open
	g.Entries += o.Entries
	g.since(o.first, o.lines)
	if o.Model != "" {
		g.Model = o.Model
	}
}

func (g *Group) since(first, lines int64) {
	if g.lines == 0 || first < g.first {
		g.first = first
	}
	g.lines += lines
}
