package book

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// Kind is what a [Group] stands for.
type Kind string

// The kinds of groups.
const (
	Named   Kind = "group"   // it has a name: a day, an entry, a session, a model, a value
	Absent  Kind = "absent"  // entries whose metadata lacks the key
	Gone    Kind = "gone"    // entries whose metadata is no longer kept
	More    Kind = "more"    // everything beyond maxGroups
	Outside Kind = "outside" // spent while no entry was in flight
	Total   Kind = "total"
)

// Group is a row of the table of costs.
type Group struct {
	Kind    Kind
	Name    string // the day, the session's id, the entry's own id, the model or the value
	EntryID string // by entry
	Start   int64  // by entry
	Entries int64
	// Spent is everything; Outside is the part that belongs to no entry.
	Spent, Outside price.Amount
	Model          string // the last one

	lines int64
	seq   int64 // by entry: the commit of its first delivery
	first int64 // when the first line was booked, in nanoseconds since 1970
}

// add books a line. first says that it is the first line of its entry.
func (g *Group) add(l price.Line, first bool) {
	g.Spent = g.Spent.Plus(l.Amount)
	if l.Outside() {
		g.Outside = g.Outside.Plus(l.Amount)
	}
	if first {
		g.Entries++
	}
	if at := l.At.UnixNano(); g.lines == 0 || at < g.first {
		g.first = at
	}
	g.lines++
	if l.Model != "" && l.Model != g.Model {
		g.Model = strings.Clone(l.Model) // not the whole line
	}
}

// By is what spending is grouped by. It is a pflag.Value.
type By string

// The groupings. metaBy is the prefix of a metadata key.
const (
	Day     By = "day"
	Entry   By = "entry"
	Session By = "session"
	Model   By = "model"
	metaBy     = "meta."
)

// Set implements pflag.Value.
func (b *By) Set(text string) error {
	if !slices.Contains(b.Choices(), text) && By(text).Key() == "" {
		return errors.New("it is one of day, entry, session, model, or meta.KEY, such as meta.branch")
	}
	*b = By(text)
	return nil
}

func (b *By) String() string { return string(*b) }

// Type is what the help calls the value, and Choices what a shell offers.
func (b *By) Type() string      { return "day|entry|session|model|meta.KEY" }
func (b *By) Choices() []string { return strings.Split(b.Type(), "|")[:4] } // a person types a key

// Key is the metadata key to group by, empty for other groupings.
func (b By) Key() string {
	if key, is := strings.CutPrefix(string(b), metaBy); is {
		return key
	}
	return ""
}

// Label returns the group's name for people.
func (g *Group) Label(by By) string {
	switch {
	case g.Kind == Absent:
		return "without " + words.Brief(by.Key())
	case g.Kind != Named:
		return map[Kind]string{Gone: "no longer kept", More: "others", Outside: "outside of entries", Total: "total"}[g.Kind]
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

// USD returns what was spent in dollars, with its marks, or "-" if unknown.
func (g *Group) USD() string {
	if !g.Spent.Dollars {
		return "-"
	}
	return g.Spent.Cell()
}

// OutsideUSD returns what was spent outside of entries, "" for nothing.
func (g *Group) OutsideUSD() string {
	if !g.Outside.Dollars || g.Outside.Nanos == 0 {
		return ""
	}
	return price.FormatUSD(g.Outside.Nanos)
}

// JSON returns the group as an object. Its member what is left out for a group that has a name.
func (g *Group) JSON(by By) string {
	var o flat.Object
	o.String("by", string(by))
	p := g.price(by)
	switch {
	case g.Kind != Named:
		o.String("what", string(g.Kind))
	case by == Day:
		o.Text("day", g.Name)
	case by == Session:
		o.Text("session_id", g.Name)
	case by == Model:
		p.Model = g.Name
	case by == Entry:
		o.Text("id", g.Name)
		o.Text("entry_id", g.EntryID)
		o.Int("start_offset", g.Start)
	default:
		o.String("value", g.Name)
	}
	o.Int("entries", g.Entries)
	_ = p.Members(flat.To(&o)) // only reading can fail
	if g.Outside.Dollars {
		o.Raw("outside_usd", []byte(price.Nanos(g.Outside.Nanos).String()))
	}
	return string(o.End())
}

// price returns the group's spending, with the model for an entry, since other groups may have many. The client's own
// figure stays only for sessions, days and the total, because the client reports it a moment after an entry ends.
func (g *Group) price(by By) price.Price {
	p := price.Price{Amount: g.Spent}
	if g.Kind != Total && by != Session && by != Day {
		p.ClientNanos = 0
	}
	if by == Entry {
		p.Model = g.Model
	}
	return p
}

// CSVHead names the columns, which are the same for every grouping.
const CSVHead = "what,name,entry_id,start_offset,entries,cost_usd,outside_usd,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,requests,unpriced,client_usd,model"

// CSV returns the group as a line of a spreadsheet. A cell is empty if its value is unknown.
func (g *Group) CSV(by By) string {
	what, start := string(by), ""
	if g.Kind != Named {
		what = string(g.Kind)
	} else if by == Entry {
		start = strconv.FormatInt(g.Start, 10)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	p := g.price(by)
	t := p.Tokens
	return strings.Join([]string{
		cell(what), cell(g.Name), cell(g.EntryID), start, number(g.Entries), dollars(p.Nanos, p.Dollars), dollars(g.Outside.Nanos, g.Outside.Dollars),
		number(t.Input), number(t.Output), number(t.CacheRead), number(t.CacheWrite), number(p.Requests),
		number(p.Unpriced), dollars(p.ClientNanos, p.ClientNanos != 0), cell(p.Model),
	}, ",")
}

func dollars(nanos int64, known bool) string {
	if !known {
		return ""
	}
	return price.Nanos(nanos).String()
}

// formula are the characters that begin a formula in a spreadsheet.
const formula = "=+-@|%＝＋－＠"

// cell quotes a text, which a sender may have chosen, on one line, with an apostrophe before what a spreadsheet would
// compute.
func cell(text string) string {
	if text == "" {
		return ""
	}
	text = words.Line(strings.ToValidUTF8(text, "\uFFFD"))
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " '\"")); strings.ContainsRune(formula, first) {
		text = "'" + text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
