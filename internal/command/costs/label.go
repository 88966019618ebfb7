package costs

import (
	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// Label names the group for people.
func (g *Group) Label(by By) string {
	switch g.Kind {
	case Absent:
		return "without " + words.Brief(by.Key())
	case Gone:
		return "no longer kept"
	case More:
		return "others"
	case Outside:
		return "outside of entries"
	case Total:
		return "total"
	}
	switch {
	case by == Entry:
		return words.Name(g.Name, g.EntryID)
	case by == Session && g.Name != "":
		return words.Short(g.Name)
	case g.Name == "" && by.Key() != "":
		return `""`
	case g.Name == "":
		return "unknown"
	}
	return words.Brief(g.Name)
}

// USD is what was spent in dollars, with its marks, or "-" where none are known.
func (g *Group) USD() string {
	p := g.price()
	if !p.Dollars {
		return "-"
	}
	return p.Cell()
}

// OutsideUSD is what of it was spent outside of entries, empty where that is nothing.
func (g *Group) OutsideUSD() string {
	if !g.Outside.Dollars || g.Outside.Nanos == 0 {
		return ""
	}
	return price.FormatUSD(g.Outside.Nanos)
}
