package inbox_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/long"
)

// clientSession is a session of a client in a world of prices: what it really spent on
// what, and what a meter makes of its transcript.
type clientSession struct {
	id    string
	clock *worldClock
	lines []*sessionLine // of the transcript
	size  int64
	late  []*sessionLine // that the client has not written yet

	running bool
	owner   string // whose turn it is: of an entry, or ""
	turns   bool   // a turn goes on

	meter meterModel
}

// worldClock passes with everything that happens.
type worldClock struct{ milliseconds int64 }

func (c *worldClock) now() time.Time {
	c.milliseconds += 7
	return time.UnixMilli(c.milliseconds)
}

type sessionLine struct {
	at   int64
	when int64 // it came to be, whenever it is written
	user bool
	cost int64
}

// meterModel is what a meter keeps.
type meterModel struct {
	run  int
	read int // lines that were counted
}

func (c *clientSession) write(user bool, cost int64) {
	c.late = append(c.late, &sessionLine{when: c.clock.now().UnixMilli(), user: user, cost: cost})
}

// flush writes some of the lines that are late.
func (c *clientSession) flush(n int) {
	for _, l := range c.late[:n] {
		l.at = c.size + 10
		c.size = l.at + 90
		c.lines = append(c.lines, l)
	}
	c.late = c.late[n:]
}

// reading is what the meter says: the price of each request that it has read.
func (c *clientSession) reading(over, gone bool) inbox.Reading {
	m := &c.meter
	r := inbox.Reading{Session: c.id, Over: over, Gone: gone}
	var marks []inbox.Boundary
	for _, l := range c.lines[:m.read] {
		if l.user {
			marks = append(marks, inbox.Boundary{Offset: l.at, At: l.when, Before: r.Spent})
			continue
		}
		r.Spent = r.Spent.Plus(price.Amount{Nanos: l.cost, Dollars: true, Requests: 1, Tokens: price.Tokens{Output: l.cost / 10_000}})
	}
	if m.read > 0 {
		r.Read = min(c.size, c.lines[m.read-1].at+90)
	}
	r.Boundary = func(position int64) (inbox.Boundary, bool) {
		for _, m := range marks {
			if m.Offset >= position {
				return m, true
			}
		}
		return inbox.Boundary{}, false
	}
	return r
}

// see has the meter read everything.
func (c *clientSession) see() { c.meter.read = len(c.lines) }

type priceWorld struct {
	t        *testing.T
	r        *rand.Rand
	box      *inbox.Inbox
	sessions []*clientSession
	now      *clientSession
	sent     int
	boots    int
	clock    *worldClock
	spent    map[string]int64 // by entry, "" outside
	ownerOf  map[*sessionLine]string
	trace    []string
}

func (w *priceWorld) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// ask is a request of the model in the turn that goes on.
func (w *priceWorld) ask() {
	cost := int64(1+w.r.IntN(50)) * 10_000_000
	w.now.write(false, cost)
	w.ownerOf[w.now.late[len(w.now.late)-1]] = w.now.owner
	w.spent[w.now.owner] += cost
	w.log("%s asks for %q: %d", w.now.id, w.now.owner, cost/10_000_000)
}

// turn begins with a line of a user.
func (w *priceWorld) turn(owner string) {
	w.now.write(true, 0)
	w.now.owner, w.now.turns = owner, true
	for range 1 + w.r.IntN(3) {
		if w.r.IntN(8) == 0 {
			w.now.write(true, 0) // a summary, or the end of a task
		}
		w.ask()
	}
}

func (w *priceWorld) begin(c *clientSession, length int64) {
	w.now = c
	c.running = true
	w.in(func(tx *inbox.Tx) {
		tx.Position(c.id, length, inbox.TurnUnknown)
		require.NoError(w.t, tx.StartSession(c.id, 0))
	})
	w.log("%s starts at %d", c.id, length)
}

func (w *priceWorld) in(f func(tx *inbox.Tx)) {
	for _, warning := range in(w.t, w.box, f) {
		require.Fail(w.t, warning, strings.Join(w.trace, "\n"))
	}
}

// stop is the end of a turn: it settles, and delivers.
func (w *priceWorld) stop() {
	c := w.now
	if !c.turns {
		w.turn("")
	}
	c.flush(w.r.IntN(len(c.late) + 1))
	if w.r.IntN(2) == 0 {
		c.see()
	}
	next := ""
	w.in(func(tx *inbox.Tx) {
		tx.Position(c.id, c.size, inbox.TurnEnded)
		require.NoError(w.t, tx.Charge(c.reading(false, false)))
		if d := tx.InFlight(); d != nil {
			require.NoError(w.t, tx.Acknowledge("done"))
			w.log("%s answers %s", c.id, d.Text())
		}
		e, err := tx.Next(inbox.Mark{})
		if errors.Is(err, inbox.ErrEmpty) {
			return
		}
		require.NoError(w.t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: c.id})
		require.NoError(w.t, err)
		next = e.Text
		w.log("%s gets %s at %d", c.id, next, c.size)
	})
	if next != "" {
		w.turn(next)
		return
	}
	c.owner, c.turns = "", false
}

// end ends the session, and settles what it left.
func (w *priceWorld) end(kill bool) {
	c := w.now
	before := c.meter
	if w.r.IntN(2) == 0 {
		c.see()
	}
	if kill {
		w.lose(c)
	} else {
		c.flush(len(c.late))
	}
	c.running, c.turns, c.owner = false, false, ""
	c.see()
	gone := w.r.IntN(3) > 0
	w.log("%s ends: killed %v, gone %v", c.id, kill, gone)
	w.in(func(tx *inbox.Tx) {
		require.NoError(w.t, tx.Charge(c.reading(true, gone)))
		if tx.InFlight() != nil {
			require.NoError(w.t, tx.GiveBack(true))
		}
	})
	switch w.r.IntN(6) {
	case 0: // a power loss takes the meter's file
		c.meter = meterModel{run: c.meter.run + 1}
		w.boots++
	case 1: // or leaves an older one
		c.meter = before
		w.boots++
	}
	if boot := fmt.Sprint("boot ", w.boots); boot != machine.BootID() {
		machine.TestOnlyBootID = boot
		w.log("the power is lost, and the meter's file falls back to %d of run %d", c.meter.read, c.meter.run)
	}
}

// lose takes back the requests that a killed client has not written: nobody hears of them.
func (w *priceWorld) lose(c *clientSession) {
	n := len(c.late)
	for n > 0 && !c.late[n-1].user {
		n--
	}
	lost := c.late[n:]
	c.flush(n)
	c.late = nil
	for _, l := range lost {
		w.spent[w.ownerOf[l]] -= l.cost
		w.log("nobody hears of %d for %q", l.cost/10_000_000, w.ownerOf[l])
	}
}

// Every cent is charged once, to what it was spent on: with lines that the client writes
// late, sessions that are ended and resumed, and meters that are lost.
func TestAWorldOfPrices(t *testing.T) {
	t.Cleanup(func() { machine.TestOnlyBootID = "" })
	for seed := range long.Rounds(60, 1500) {
		w := &priceWorld{t: t, r: rand.New(rand.NewPCG(uint64(seed), 13)), spent: map[string]int64{}, ownerOf: map[*sessionLine]string{}}
		w.clock = &worldClock{noon.UnixMilli()}
		w.box = newBox(t, "")
		var err error
		w.box, err = inbox.Open(w.box.Path(), inbox.Options{Now: w.clock.now})
		require.NoError(t, err)
		machine.TestOnlyBootID = "boot 0"
		w.run()
		w.check(seed)
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, strings.Join(w.trace, "\n"))
		}
	}
}

func (w *priceWorld) run() {
	for range 3 + w.r.IntN(12) {
		if w.now == nil || !w.now.running {
			if n := len(w.sessions); n > 0 && w.r.IntN(2) == 0 {
				c := w.sessions[w.r.IntN(n)]
				w.begin(c, c.size)
			} else {
				c := &clientSession{id: fmt.Sprint("session-", n), clock: w.clock, meter: meterModel{run: 1}}
				w.sessions = append(w.sessions, c)
				w.begin(c, 0)
			}
			if w.r.IntN(2) == 0 {
				w.turn("")
			}
		}
		for range w.r.IntN(4) {
			w.sent++
			w.append(fmt.Sprint("entry ", w.sent))
		}
		switch w.r.IntN(8) {
		case 0:
			w.end(true)
		case 1:
			w.end(false)
		case 2:
			w.now.see()
			w.now.flush(len(w.now.late))
		case 3:
			w.now.flush(len(w.now.late))
			w.now.see()
		default:
			w.stop()
		}
	}
	if w.now.running {
		w.end(false)
	}
	for _, c := range w.sessions {
		c.see()
		w.in(func(tx *inbox.Tx) { require.NoError(w.t, tx.Charge(c.reading(false, true))) })
	}
}

func (w *priceWorld) append(text string) {
	f, err := os.OpenFile(w.box.Path(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(w.t, err)
	_, err = f.WriteString(text + "\n")
	require.NoError(w.t, errors.Join(err, f.Close()))
}

func (w *priceWorld) check(seed int) {
	t := w.t
	prices, err := w.box.Prices(nil)
	require.NoError(t, err)
	assert.Empty(t, prices.Warnings)
	got, outside, total := map[string]int64{}, int64(0), int64(0)
	_, err = w.box.Costs(func(c inbox.Cost) bool {
		of := c.Nanos
		total += of
		if c.Outside() {
			outside += of
		} else if of != 0 {
			got[c.EntryID] += of
		}
		return true
	})
	require.NoError(t, err)
	want := map[string]int64{}
	sum := int64(0)
	for text, cost := range w.spent {
		sum += cost
		if text != "" && cost != 0 {
			want[sha256Hex(text)] = cost
		}
	}
	assert.Equal(t, sum, total, "every cent, once")
	assert.Equal(t, w.spent[""], outside, "outside")
	assert.Equal(t, want, got)
	if prices.Account.Total.Dollars {
		assert.Equal(t, total, prices.Total().Nanos)
		assert.Equal(t, outside, prices.Outside().Nanos)
	}
}
