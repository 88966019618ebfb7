package account_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
)

func charged(t testing.TB, box *inbox.Inbox) account.Account {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	a, err := account.Of(v).Charged()
	require.NoError(t, err)
	require.NoError(t, v.Close())
	return a
}

// deliverAt delivers the next entry to a session whose transcript has that length.
func deliverAt(t testing.TB, box *inbox.Inbox, session string, at int64) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		account.Of(tx).Position(session, "/t", at, true)
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: session})
		require.NoError(t, err)
	})
}

func costLines(t testing.TB, box *inbox.Inbox) (all []string) {
	t.Helper()
	require.NoError(t, box.CostLines(func(line []byte, whole bool) bool {
		assert.True(t, whole)
		all = append(all, string(line))
		return true
	}))
	return all
}

// book charges the first turn of a session.
func book(t testing.TB, box *inbox.Inbox, session string, nanos, from int64, rest bool) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		l := price.Line{
			Charged: account.Of(tx).Turns(session).Turns[0].Charged, SessionID: session, End: from,
			Price: price.Price{Amount: price.Amount{Nanos: nanos, Dollars: true, Requests: 1}},
		}
		account.Of(tx).Book(account.Booking{Uncharged: account.Uncharged{Line: l}, Since: 5, Rest: rest})
	})
}

// Where a transcript was cut, the entry's turn goes on, and all that the session spends in it counts: the prompts that came
// before cannot be told from a second client's.
func TestAPromptBehindACutIsUnknown(t *testing.T) {
	const prompt = "008fd6b2-0000-4000-8000-000000000000"
	box := newBox(t, "a\n")
	in(t, box, func(tx *inbox.Tx) {
		account.Of(tx).Position("s", "/t", 100, true)
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", PromptID: prompt})
		require.NoError(t, err)
	})
	of := charged(t, box)
	require.Equal(t, prompt, of.Session("s").Turns[1].Prompt)
	in(t, box, func(tx *inbox.Tx) { require.True(t, account.Of(tx).Position("s", "/t", 50, false)) })
	of = charged(t, box)
	assert.EqualValues(t, 50, of.Session("s").Turns[0].From)
	assert.Empty(t, of.Session("s").Turns[0].Prompt)
	assert.False(t, of.Session("s").Turns[0].Outside())
}

// The account stays small, whatever happens, since every record contains it.
func TestTheAccountIsBounded(t *testing.T) {
	t.Parallel()
	box := newBox(t, strings.Repeat(`{"prompt":"x","id":"`+strings.Repeat("i", 5000)+`"}`+"\n", 200))
	for i := range 200 {
		deliverAt(t, box, fmt.Sprint("session ", i%20, "\n\x00é\"", strings.Repeat("x", 100)), int64(i))
		acknowledge(t, box)
	}
	for range 3 { // an endless name has no account
		deliverAt(t, newBox(t, "a\n"), strings.Repeat("s", 100_000), 0)
	}
	a := charged(t, box)
	assert.Len(t, a.Sessions, 8)
	for _, s := range a.Sessions {
		assert.LessOrEqual(t, len(s.Turns), 24)
	}
	journal, err := os.ReadFile(filepath.Join(box.Dir(), ".inbox-journal"))
	require.NoError(t, err)
	_, last, ok := strings.Cut(string(journal[strings.LastIndex(string(journal), `"account":`):]), `"account":`)
	require.True(t, ok)
	assert.Less(t, strings.Index(last, `"results_end"`), 40<<10)
}

// What was spent before midnight counts in all sums but that of the day.
func TestSpentBeforeMidnight(t *testing.T) {
	box := newBox(t, "a\n")
	deliverAt(t, box, "s", 100)
	nanos := func(n int64) price.Amount { return price.Amount{Nanos: n, Dollars: true, Requests: 1} }
	in(t, box, func(tx *inbox.Tx) {
		of := account.Of(tx).Turns("s").Turns[0].Charged
		u := account.Uncharged{Line: price.Line{Charged: of, SessionID: "s", Price: price.Price{Amount: nanos(7)}, End: 150}, Before: nanos(5)}
		account.Of(tx).Count("s", []account.Uncharged{u})
		assert.EqualValues(t, 2, account.Of(tx).Today().Nanos)
		account.Of(tx).Count("s", nil)
		account.Of(tx).Book(account.Booking{Uncharged: u})
	})
	a := charged(t, box)
	assert.Equal(t, []int64{2, 7}, []int64{a.Today.Nanos, a.Total.Nanos})
	in(t, box, func(tx *inbox.Tx) {
		assert.Equal(t, account.Of(tx).Midnight().Local().AddDate(0, 0, -1), account.Of(tx).DayBegan().Local())
	})
}

// However many sessions come, the account keeps that of the entry in flight, by which limits hold. Others may have
// turns of entries that were answered.
func TestTheAccountKeepsTheEntry(t *testing.T) {
	box := newBox(t, strings.Repeat("a\n", 10))
	for i := range 9 {
		deliverAt(t, box, fmt.Sprint("other ", i), 100)
		in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("")) })
	}
	deliverAt(t, box, "s", 100)
	for i := range 20 {
		in(t, box, func(tx *inbox.Tx) {
			id := fmt.Sprint("other ", i)
			account.Of(tx).Position(id, "/t", 5, false)
			require.NoError(t, tx.In(id).Start(0, nil))
		})
	}
	a := charged(t, box)
	assert.Len(t, a.Sessions, 8)
	require.NotNil(t, a.Session("s"))
	assert.NotNil(t, a.Session("other 19"))
}

// A charge counts in the sums and for its entry, and the next turn begins at its end. A session whose turns are all
// charged is forgotten, and resumes where its charges ended.
func TestBooking(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliverAt(t, box, "s", 100)
	book(t, box, "s", 1, 150, false) // what was before
	book(t, box, "s", 2, 170, true)
	in(t, box, func(tx *inbox.Tx) {
		assert.EqualValues(t, 2, account.Amount(tx.InFlight().Spent).Nanos)
		s := account.Of(tx).Turns("s")
		require.Len(t, s.Turns, 1)
		assert.Equal(t, []int64{170, 5}, []int64{s.Turns[0].From, s.Turns[0].Since})
		account.Of(tx).Count("s", []account.Uncharged{{Line: price.Line{
			Charged: s.Turns[0].Charged, SessionID: "s", Price: price.Price{Amount: price.Amount{Nanos: 7, Dollars: true}, Model: "m"},
		}}})
		assert.EqualValues(t, 9, account.Of(tx).Spending().Entry.Nanos)
		assert.EqualValues(t, 7, account.Of(tx).Spending().Here.Nanos)
		assert.EqualValues(t, 10, account.Of(tx).Today().Nanos)
		require.NoError(t, tx.Acknowledge("done"))
	})
	r := results(t, box)[0]
	assert.EqualValues(t, 9, price.Of(r.Cost).Nanos)
	assert.Equal(t, "m", r.Model)
	book(t, box, "s", 3, 180, false)
	a := charged(t, box)
	assert.Equal(t, []int64{6, 1, 1}, []int64{a.Total.Nanos, a.Outside.Nanos, int64(len(a.Sessions))})
	assert.Len(t, costLines(t, box), 3)
	in(t, box, func(tx *inbox.Tx) { account.Of(tx).ForgetTurns("s") })
	in(t, box, func(tx *inbox.Tx) {
		assert.Nil(t, account.Of(tx).Turns("s"), "nobody said where it is")
		account.Of(tx).Position("s", "/t", 500, false)
		assert.EqualValues(t, 180, account.Of(tx).Turns("s").Turns[0].From)
		account.Of(tx).Position("other", "/o", 500, false)
		require.NoError(t, tx.In("other").Start(0, nil))
		assert.EqualValues(t, 500, account.Of(tx).Turns("other").Turns[0].From, "what it spent before is nobody's")
		account.Of(tx).Position("other", "/o", 300, false)
		assert.EqualValues(t, 300, account.Of(tx).Turns("other").Turns[0].From, "it was cut")
	})
}

// A delivery whose turn is reported later begins there. None of its lines is older than the delivery: the client may
// not have written the earlier ones yet.
func TestATurnThatIsToldLater(t *testing.T) {
	box := newBox(t, "a\n")
	in(t, box, func(tx *inbox.Tx) {
		account.Of(tx).Position("s", "/t", 0, false)
		require.NoError(t, tx.In("s").Start(0, nil))
	})
	deliverAt(t, box, "s", 0)
	in(t, box, func(tx *inbox.Tx) {
		account.Of(tx).Position("s", "/t", 0, false)
		require.NoError(t, tx.Bind(inbox.Recipient{SessionID: "s", PromptID: "p"}))
		turns := account.Of(tx).Turns("s").Turns
		require.Len(t, turns, 2)
		assert.True(t, turns[0].Outside())
		assert.Positive(t, turns[0].Since, "a forked session has older lines")
		assert.Equal(t, tx.InFlight().DeliveredAt.UnixMilli(), turns[1].Since)
	})
}

// Neither the costs nor the account that a repository brings along count.
func TestForgedCosts(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliverAt(t, box, "s", 10)
	book(t, box, "s", 9, 10, true)
	forged := brought(t, box)
	look := func() {
		v, err := forged.View()
		require.NoError(t, err)
		require.NoError(t, v.CostLines(func([]byte, bool) bool {
			assert.Fail(t, "it is believed")
			return true
		}))
		require.NoError(t, v.Close())
		assert.Equal(t, account.Account{}, charged(t, forged))
	}
	look()
	warnings := in(t, forged, func(tx *inbox.Tx) {
		require.NotNil(t, tx.InFlight())
		assert.Zero(t, account.Of(tx).Today().Nanos)
		require.NoError(t, tx.Acknowledge("done"))
	})
	assert.Contains(t, strings.Join(warnings, "\n"), ".costs.jsonl.foreign")
	look()
	assert.FileExists(t, filepath.Join(forged.Dir(), ".costs.jsonl.foreign"))
}

// Nor is it believed where a repository brings a state that the first transaction commits at once.
func TestForgedCostsThatAreCommittedAtOnce(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliverAt(t, box, "s", 10)
	book(t, box, "s", 9, 10, true)
	acknowledge(t, box)
	deliverAt(t, box, "s", 20)
	require.NoError(t, os.WriteFile(box.Path(), []byte("a\nB\n"), 0o600)) // the entry in flight is no longer there
	forged := brought(t, box)
	_, err := forged.MakeGood(t.Context())
	require.NoError(t, err)
	assert.Equal(t, account.Account{}, charged(t, forged))
}

// brought returns a copy of the inbox and its state, as a repository brings them.
func brought(t *testing.T, box *inbox.Inbox) *inbox.Inbox {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"inbox.jsonl", ".inbox-journal", ".costs.jsonl", ".inbox-offset", ".in-flight", ".responded"} {
		b, err := os.ReadFile(filepath.Join(box.Dir(), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, name), b, 0o600))
	}
	machine.TestOnlyTrustAll = false
	t.Cleanup(func() { machine.TestOnlyTrustAll = true })
	return open(t, filepath.Join(to, "inbox.jsonl"))
}

// What a turn has cost is charged once the next one has begun. By then its entry may have been put off.
func TestWhatWasChargedToAnEntryThatWasPutOff(t *testing.T) {
	now := noon
	box, err := inbox.Open(newBox(t, "a\n").Path(), inbox.Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	deliverAt(t, box, "s", 10)
	in(t, box, func(tx *inbox.Tx) {
		account.Of(tx).Position("s", "/t", 20, true)
		require.NoError(t, tx.PutOff("later", noon.Add(time.Hour)))
	})
	book(t, box, "s", 1, 10, false) // before the entry
	book(t, box, "s", 9, 20, false)
	now = noon.Add(time.Hour)
	deliverAt(t, box, "s", 30)
	in(t, box, func(tx *inbox.Tx) {
		assert.EqualValues(t, 9, account.Of(tx).Spending().Entry.Nanos)
		require.NoError(t, tx.GiveBack("", true))
	})
	deliverAt(t, box, "s", 40)
	in(t, box, func(tx *inbox.Tx) { assert.EqualValues(t, 9, account.Of(tx).Spending().Entry.Nanos, "nothing twice") })
}

// Rotating the file, or lines of others in it, affects only the lines and no sums.
func TestCostsAreRotatedAndTrimmed(t *testing.T) {
	box := newBox(t, "a\n")
	deliverAt(t, box, "s", 10)
	book(t, box, "s", 1, 10, true)
	require.NoError(t, os.Rename(box.CostsPath(), box.CostsPath()+".old"))
	require.NoError(t, os.WriteFile(box.CostsPath(), []byte("{}\nnot a cost\n"), 0o600))
	book(t, box, "s", 8, 20, true)
	assert.EqualValues(t, 9, charged(t, box).Total.Nanos)
	assert.Len(t, costLines(t, box), 3)
	trimmed, err := outcomes.Trim(t.Context(), box, noon.Add(1))
	require.NoError(t, err)
	assert.Positive(t, trimmed.Costs)
	assert.EqualValues(t, 9, charged(t, box).Total.Nanos, "sums do not depend on the lines")
}

// A journal of an earlier version has no account, and an invalid account keeps nobody from being served.
func TestEarlierJournals(t *testing.T) {
	box := newBox(t, "a\nb\n")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		require.NoError(t, err)
	})
	assert.Equal(t, account.Account{}, charged(t, box))
	acknowledge(t, box)
	assert.NoFileExists(t, box.CostsPath())
	assert.Zero(t, results(t, box)[0].Cost)
}
