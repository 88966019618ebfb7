package inbox_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
)

const cent = 10_000_000

// told is a reading of a session that has spent so many cents, all of it behind its lines
// of a user at these offsets, a cent before each.
func told(session string, cents int64, marks ...int64) inbox.Reading {
	return inbox.Reading{
		Session: session, Spent: price.Amount{Nanos: cents * cent, Dollars: true, Requests: cents},
		Read: 10_000,
		Boundary: func(position int64) (inbox.Boundary, bool) {
			for i, at := range marks {
				if at >= position {
					return inbox.Boundary{Offset: at, Before: price.Amount{Nanos: int64(i) * cent, Dollars: true, Requests: int64(i)}}, true
				}
			}
			return inbox.Boundary{}, false
		},
	}
}

func costs(t testing.TB, box *inbox.Inbox) (all []inbox.Cost) {
	t.Helper()
	_, err := box.Costs(func(c inbox.Cost) bool {
		all = append(all, c)
		return true
	})
	require.NoError(t, err)
	return all
}

func account(t testing.TB, box *inbox.Inbox) inbox.Account {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	a, err := v.Account()
	require.NoError(t, err)
	require.NoError(t, v.Close())
	return a
}

// deliverAt delivers the next entry to a session whose transcript has that length.
func deliverAt(t testing.TB, box *inbox.Inbox, session string, at int64) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		tx.Position(session, at, inbox.TurnOver)
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: session})
		require.NoError(t, err)
	})
}

// What no meter can say is not counted, and keeps nobody from being served.
func TestImpossibleReadings(t *testing.T) {
	for name, change := range map[string]func(*inbox.Reading){
		"negative dollars": func(r *inbox.Reading) { r.Spent.Nanos = -1 },
		"negative tokens":  func(r *inbox.Reading) { r.Spent.Tokens.CacheRead = -1 },
		"huge dollars":     func(r *inbox.Reading) { r.Spent.Nanos = math.MaxInt64 },
		"huge tokens":      func(r *inbox.Reading) { r.Spent.Tokens.Input = math.MaxInt64 },
		"a negative total": func(r *inbox.Reading) { r.Spent.Said = math.MinInt64 },
		"without a price":  func(r *inbox.Reading) { r.Spent.Unpriced = -1 },
		"no session":       func(r *inbox.Reading) { r.Session = "" },
		"a long name":      func(r *inbox.Reading) { r.Session = strings.Repeat("s", 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "a\n")
			deliverAt(t, box, "s", 0)
			r := told("s", 5, 10)
			change(&r)
			r.Over = true
			warnings := in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Charge(r)) })
			assert.Len(t, warnings, 1)
			assert.Empty(t, costs(t, box))
			acknowledge(t, box, "done")
		})
	}
}

// A meter of another session, one that is older than the delivery and one that falls say
// nothing of the entry.
func TestReadingsOfSomethingElse(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliverAt(t, box, "s", 0)
	in(t, box, func(tx *inbox.Tx) {
		require.NoError(t, tx.Charge(told("other", 3)))
		p, known := tx.SpentOn(tx.InFlight())
		assert.True(t, p.IsZero())
		assert.False(t, known)
	})
	charge := func(r inbox.Reading) (p price.Price) {
		in(t, box, func(tx *inbox.Tx) {
			require.NoError(t, tx.Charge(r))
			p, _ = tx.SpentOn(tx.InFlight())
		})
		return p
	}
	assert.Equal(t, int64(4*cent), charge(told("s", 4, 10)).Nanos)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack(true)) })
	deliverAt(t, box, "s", 500) // of which the meter has heard nothing
	assert.Equal(t, int64(0), charge(told("s", 4, 10)).Nanos-4*cent, "all of it was the first attempt's")
	ends := told("s", 4, 10)
	ends.Over = true
	assert.Equal(t, int64(4*cent), charge(ends).Nanos)
	falls := told("s", 2, 10)
	falls.Over = true
	assert.Equal(t, int64(4*cent), charge(falls).Nanos, "a falling count takes nothing back")
	rises := told("s", 4, 10)
	rises.Over = true
	assert.Equal(t, int64(4*cent), charge(rises).Nanos, "nor is it charged again as it rises")
}

// The account stays small, whatever happens: it is part of every record.
func TestTheAccountIsBounded(t *testing.T) {
	t.Parallel()
	box := newBox(t, strings.Repeat(`{"prompt":"x","id":"`+strings.Repeat("i", 5000)+`"}`+"\n", 200))
	for i := range 200 {
		deliverAt(t, box, fmt.Sprint("session ", i%20, "\n\x00é\"", strings.Repeat("x", 100)), int64(i))
		acknowledge(t, box, "done")
	}
	for range 3 { // an endless name has no account
		deliverAt(t, newBox(t, "a\n"), strings.Repeat("s", 100_000), 0)
	}
	a := account(t, box)
	assert.Len(t, a.Sessions, 8)
	for _, s := range a.Sessions {
		assert.LessOrEqual(t, len(s.Spans), 24)
	}
	journal, err := os.ReadFile(filepath.Join(box.Dir(), ".inbox-journal"))
	require.NoError(t, err)
	_, last, ok := strings.Cut(string(journal[strings.LastIndex(string(journal), `"account":`):]), `"account":`)
	require.True(t, ok)
	assert.Less(t, strings.Index(last, `"results_end"`), 40<<10)
}

// A session whose meter is read late takes no more room than others: its oldest entries
// become part of what is outside, and later ones keep their price.
func TestASessionThatIsReadLate(t *testing.T) {
	t.Parallel()
	const entries = 300
	box := newBox(t, strings.Repeat("x\n", entries))
	var marks []int64
	for i := range entries {
		in(t, box, func(tx *inbox.Tx) {
			tx.Position("s", int64(i*100), inbox.TurnEnded)
			if tx.InFlight() != nil {
				require.NoError(t, tx.Acknowledge("done"))
			}
			e, err := tx.Next(inbox.Mark{})
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
			require.NoError(t, err)
		})
		marks = append(marks, int64(i*100+50))
	}
	r := told("s", entries, marks...)
	r.Gone = true
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Charge(r)) })
	prices, err := box.Prices(nil)
	require.NoError(t, err)
	assert.Equal(t, int64(entries*cent), prices.Total().Nanos)
	assert.Len(t, costs(t, box), 24)
	acknowledge(t, box, "done")
}

// Costs that a repository brings along count for nothing, and nor does its account.
func TestForgedCosts(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliverAt(t, box, "s", 0)
	r := told("s", 90_000, 10)
	r.Over = true
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Charge(r)) })
	elsewhere := filepath.Join(t.TempDir(), "inbox.jsonl")
	for _, name := range []string{"inbox.jsonl", ".inbox-journal", ".costs.jsonl", ".inbox-offset", ".in-flight", ".responded"} {
		b, err := os.ReadFile(filepath.Join(box.Dir(), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(elsewhere), name), b, 0o600))
	}
	inbox.TestOnlyTrustAll = false
	t.Cleanup(func() { inbox.TestOnlyTrustAll = true })
	forged := open(t, elsewhere)
	look := func() {
		prices, err := forged.Prices(func(string) *inbox.Reading { return &r })
		require.NoError(t, err)
		assert.Zero(t, prices.Total().Nanos)
		assert.Zero(t, prices.Today().Nanos)
		assert.Zero(t, account(t, forged).Total.Nanos)
	}
	look()
	warnings := in(t, forged, func(tx *inbox.Tx) {
		require.NotNil(t, tx.InFlight())
		assert.Zero(t, tx.Today().Nanos)
		require.NoError(t, tx.Acknowledge("done"))
	})
	assert.Contains(t, strings.Join(warnings, "\n"), ".costs.jsonl.foreign")
	look()
	assert.FileExists(t, filepath.Join(filepath.Dir(elsewhere), ".costs.jsonl.foreign"))
}

// A rotated file, and lines of others in it, cost nothing but their lines.
func TestCostsAreRotatedAndTrimmed(t *testing.T) {
	box := newBox(t, "a\nb\nc\n")
	for i, entry := range []int64{1, 2, 3} {
		in(t, box, func(tx *inbox.Tx) {
			tx.Position("s", int64(i*100), inbox.TurnEnded)
			var marks []int64
			for j := range i {
				marks = append(marks, int64(j*100+50))
			}
			require.NoError(t, tx.Charge(told("s", int64(i), marks...)))
			if tx.InFlight() != nil {
				require.NoError(t, tx.Acknowledge("done"))
			}
			e, err := tx.Next(inbox.Mark{})
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
			require.NoError(t, err)
		})
		if entry == 3 {
			require.NoError(t, os.Rename(box.CostsPath(), box.CostsPath()+".old"))
			write(t, box.CostsPath(), "{}\nnot a cost\n{\"at\":\"2026-03-04T12:00:00Z\",\"cost_usd\":-5}\n")
		}
	}
	ends := told("s", 9, 50, 150, 250)
	ends.Gone = true
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Charge(ends)) })
	assert.Equal(t, int64(9*cent), account(t, box).Total.Nanos)
	prices, err := box.Prices(nil)
	require.NoError(t, err)
	assert.Len(t, prices.Warnings, 1)
	trimmed, err := box.Trim(t.Context(), noon.Add(1))
	require.NoError(t, err)
	assert.Positive(t, trimmed.Costs)
	assert.Equal(t, int64(9*cent), account(t, box).Total.Nanos, "sums do not depend on the lines")
}

// A journal of an earlier version has no account, and one that is no account keeps nobody
// from being served.
func TestEarlierJournals(t *testing.T) {
	box := newBox(t, "a\nb\n")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
	assert.Equal(t, inbox.Account{}, account(t, box))
	acknowledge(t, box, "done")
	assert.Empty(t, costs(t, box))
	assert.NoFileExists(t, box.CostsPath())
	prices, err := box.Prices(nil)
	require.NoError(t, err)
	_, known := prices.OfResult(results(t, box)[0])
	assert.False(t, known)
}

func FuzzParseCost(f *testing.F) {
	for _, line := range []string{
		`{"at":"2026-03-04T12:00:00Z","entry_id":"e","first_seq":2,"cost_usd":0.5,"tokens":{"input":1,"output":2,"cache_read":3,"cache_write":4},"charged":"5 1 2 3 4 1"}`,
		`{"at":"2026-03-04T12:00:00Z","outside":true,"cost_usd":-1}`, `{}`, `{"at":"x"}`, `{"at":"2026-03-04T12:00:00Z","charged":"- 1"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := inbox.ParseCost(line)
		if err != nil {
			return
		}
		assert.GreaterOrEqual(t, c.Nanos, int64(0))
		out, err := c.MarshalJSON()
		require.NoError(t, err)
		again, err := inbox.ParseCost(out)
		require.NoError(t, err, "%s", out)
		assert.Equal(t, c, again)
	})
}
