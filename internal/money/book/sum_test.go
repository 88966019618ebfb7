package book

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zones

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

// cents is a price of one request.
func cents(n int64) price.Price {
	return price.Price{Amount: price.Amount{Nanos: n * 10_000_000, Dollars: true, Tokens: price.Tokens{Input: 100 * n, Output: n}, Requests: 1}}
}

func entryOf(id string, at time.Time, session string, p price.Price) price.Line {
	return price.Line{At: at, Charged: price.Charged{EntryID: "sha-" + id, ID: id}, SessionID: session, Price: p}
}

// told is each row as one line.
func told(rows []*Group, total *Group) (all []string) {
	for _, g := range append(rows, total) {
		text := fmt.Sprintf("%s %s: %s in %d", g.Kind, g.Name, g.price(Session), g.Entries)
		if !g.Outside.IsZero() {
			text += ", outside " + g.Outside.String()
		}
		all = append(all, strings.ReplaceAll(text, "  ", " "))
	}
	return all
}

func sumOf(by By, lines ...price.Line) *Sum {
	s := NewSum(by)
	for _, l := range lines {
		s.Add(l)
	}
	return s
}

func spending() []price.Line {
	unpriced := cents(5)
	unpriced.Unpriced = 1
	return []price.Line{
		entryOf("a", noon, "s1", cents(1)),
		entryOf("b", noon.Add(time.Minute), "s1", cents(3)),
		{At: noon.Add(2 * time.Minute), SessionID: "s1", Price: cents(2)},
		entryOf("a", noon.Add(25*time.Hour), "s2", cents(4)), // another attempt
		entryOf("c", noon.Add(26*time.Hour), "s2", unpriced),
	}
}

func TestSum(t *testing.T) {
	assert.Equal(t, []string{
		"group 2026-03-04: 0.06 USD in 2, outside 0.02 USD",
		"group 2026-03-05: 0.09+ USD in 2",
		"total : 0.15+ USD in 3, outside 0.02 USD",
	}, told(sumOf(Day, spending()...).Rows()))
	assert.Equal(t, []string{
		"group s1: 0.06 USD in 2, outside 0.02 USD",
		"group s2: 0.09+ USD in 2",
		"total : 0.15+ USD in 3, outside 0.02 USD",
	}, told(sumOf(Session, spending()...).Rows()))
	assert.Equal(t, []string{
		"group a: 0.05 USD in 1",
		"group b: 0.03 USD in 1",
		"group c: 0.05+ USD in 1",
		"outside : 0.02 USD in 0, outside 0.02 USD",
		"total : 0.15+ USD in 3, outside 0.02 USD",
	}, told(sumOf(Entry, spending()...).Rows()))
	assert.Equal(t, []string{"total : in 0"}, told(NewSum(Day).Rows()))
}

func TestByMetadata(t *testing.T) {
	s := sumOf("meta.team", append(spending(), entryOf("d", noon, "s1", cents(7)), entryOf("e", noon, "s1", cents(1)))...)
	for id, raw := range map[string]string{
		"a": `{"team":"core"}`, "b": `{"team":{"name": "x", "n": [1]}}`, "c": `{"team":null,"other":1}`, "e": `{"team":"core"}`, "other": `{"team":"odd"}`,
	} {
		var metadata map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(raw), &metadata))
		s.Describe("sha-"+id, metadata)
	}
	assert.Equal(t, []string{
		"gone : 0.07 USD in 1",
		"group core: 0.06 USD in 2",
		"absent : 0.05+ USD in 1",
		`group {"name":"x","n":[1]}: 0.03 USD in 1`,
		"outside : 0.02 USD in 0, outside 0.02 USD",
		"total : 0.23+ USD in 5, outside 0.02 USD",
	}, told(s.Rows()))
}

func TestValue(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	for raw, want := range map[string]string{
		`"text"`: "text", `""`: "", ` 5 `: "5", `true`: "true", `[1,  2]`: "[1,2]", `"\u001b[2J"`: "\x1b[2J",
	} {
		got, there := valueOf(json.RawMessage(raw))
		assert.True(t, there, raw)
		assert.Equal(t, want, got)
	}
	for _, raw := range []string{"", "null", " null "} {
		_, there := valueOf(json.RawMessage(raw))
		assert.False(t, there, raw)
	}
	one, _ := valueOf(json.RawMessage(`"` + long + `"`))
	two, _ := valueOf(json.RawMessage(`"` + long + `x"`))
	assert.NotEqual(t, one, two)
	assert.Less(t, len(one), maxValue+40)
	assert.Contains(t, one, "ä… (sha256 ")
}

// What is past the bound is added up all the same.
func TestManyGroups(t *testing.T) {
	for _, by := range []By{Entry, Session} {
		s := NewSum(by)
		s.most = 2
		for i := range 5 {
			s.Add(entryOf(fmt.Sprint(i), noon.Add(time.Duration(i)*time.Minute), fmt.Sprint(i), cents(1)))
		}
		assert.Equal(t, []string{"group 0: 0.01 USD in 1", "group 1: 0.01 USD in 1", "more : 0.03 USD in 3", "total : 0.05 USD in 5"}, told(s.Rows()))
	}
}

// A hundred thousand lines take no more memory than their groups and entries need.
func TestMemory(t *testing.T) {
	used := func(entries int) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := NewSum(Day)
		for i := range 100_000 {
			s.Add(entryOf(fmt.Sprint(i%entries), noon.Add(time.Duration(i)*time.Minute), "s", cents(1)))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		_, total := s.Rows()
		assert.EqualValues(t, entries, total.Entries)
		assert.EqualValues(t, 1_000_000_000_000, total.Spent.Nanos)
		return after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
	}
	assert.Less(t, used(10), uint64(2<<20))
	assert.Less(t, used(100_000), uint64(16<<20))
}

// Where a day is 23 or 25 hours long, each line still belongs to the date that the
// clocks showed.
func TestDaysOfAClockChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	local := time.Local
	time.Local = berlin
	defer func() { time.Local = local }()
	for _, day := range []time.Time{time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), time.Date(2026, 10, 25, 0, 0, 0, 0, berlin)} {
		s := NewSum(Day)
		next := day.AddDate(0, 0, 1)
		s.Add(entryOf("before", day.Add(-time.Nanosecond).UTC(), "s", cents(1)))
		for at := day; at.Before(next); at = at.Add(30 * time.Minute) {
			s.Add(entryOf("in", at.UTC(), "s", cents(1)))
		}
		s.Add(entryOf("after", next.UTC(), "s", cents(1)))
		rows, _ := s.Rows()
		require.Len(t, rows, 3)
		assert.Equal(t, day.Format(time.DateOnly), rows[1].Name)
		assert.EqualValues(t, next.Sub(day)/(30*time.Minute), rows[1].Spent.Requests)
	}
}

func TestBy(t *testing.T) {
	for _, text := range []string{"day", "entry", "session", "meta.team", "meta.a.b", "meta.="} {
		var by By
		require.NoError(t, by.Set(text))
		assert.Equal(t, text, by.String())
	}
	for _, text := range []string{"", "days", "meta", "meta.", "Day"} {
		by := Day
		assert.Error(t, by.Set(text), text)
		assert.Equal(t, Day, by)
	}
	key := By("meta.a.b").Key()
	assert.Equal(t, "a.b", key)
	assert.Empty(t, Entry.Key())
}

// What one turn spent on several models is told apart, and the total stays what it is.
func TestByModel(t *testing.T) {
	two := entryOf("a", noon, "s1", cents(5))
	two.Models = []price.ByModel{{Model: "opus", Amount: cents(4).Amount}, {Model: "haiku", Amount: cents(1).Amount}}
	one := entryOf("b", noon, "s1", cents(2))
	one.Price.Model = "haiku"
	rows, total := sumOf(Model, two, one).Rows()
	var all []string
	for _, g := range append(rows, total) {
		all = append(all, fmt.Sprintf("%s %s %d", g.Label(Model), g.USD(), g.Entries))
	}
	assert.ElementsMatch(t, []string{"opus 0.04 1", "haiku 0.03 2", "total 0.07 2"}, all)
}

// The client's totals are the check on the table of prices, where they say something.
func TestCheck(t *testing.T) {
	amount := func(nanos, said, unpriced int64) price.Amount {
		return price.Amount{Nanos: nanos, Dollars: true, ClientNanos: said, Unpriced: unpriced}
	}
	for name, c := range map[string]struct {
		of  []price.Amount
		off bool
	}{
		"as it is":                               {[]price.Amount{amount(5e9, 5e9, 0), amount(1e9, 0, 0)}, false},
		"within 1 %":                             {[]price.Amount{amount(5e9, 5.04e9, 0)}, false},
		"dearer":                                 {[]price.Amount{amount(5e9, 5.1e9, 0)}, true},
		"cheaper":                                {[]price.Amount{amount(5e9, 2e9, 0)}, true},
		"too little to tell":                     {[]price.Amount{amount(5e8, 2e8, 0)}, false},
		"of a model that nobody knows":           {[]price.Amount{amount(5e9, 9e9, 1)}, false},
		"with a summary, whose price is a guess": {[]price.Amount{amount(5e9, 9e9, 0)}, false},
		"with a person's prices":                 {[]price.Amount{amount(5e9, 9e9, 0)}, false},
		"in lines of one session":                {[]price.Amount{amount(5e9, 0, 0)}, false},
		"said in a line of its own too":          {[]price.Amount{amount(0, 2e9, 0), amount(2e9, 0, 0)}, false},
	} {
		check := Check{}
		for i, a := range c.of {
			session := fmt.Sprint("s", i)
			if name == "said in a line of its own too" {
				session = "s"
			}
			check.Add(&price.Line{
				SessionID: session, Price: price.Price{Amount: a}, Guess: name == "with a summary, whose price is a guess", Own: name == "with a person's prices",
			})
		}
		assert.Equal(t, c.off, strings.Contains(check.Sentence(), "may be out of date"), name)
	}
}
