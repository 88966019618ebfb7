package meter_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/long"
)

// clientSession is a session of a client in a world of prices: what it really spent on
// what, and what a meter makes of its transcript.
type clientSession struct {
	id    string
	clock *worldClock
	t     testing.TB
	asked int            // requests in the transcript
	late  []*sessionLine // that the client has not written yet

	running bool
	owner   string // whose turn it is: of an entry, or ""
	turns   bool   // a turn goes on

	path string // of the transcript
}

// worldClock passes with everything that happens.
type worldClock struct{ milliseconds int64 }

func (c *worldClock) now() time.Time {
	c.milliseconds += 7
	return time.UnixMilli(c.milliseconds)
}

type sessionLine struct {
	when int64 // it came to be, whenever it is written
	user bool
	cost int64
}

func (c *clientSession) write(user bool, cost int64) {
	c.late = append(c.late, &sessionLine{when: c.clock.now().UnixMilli(), user: user, cost: cost})
}

// flush writes some of the lines that are late.
func (c *clientSession) flush(n int) {
	for _, l := range c.late[:n] {
		kind, more := "user", `"content":"q"`
		if !l.user {
			c.asked++
			kind, more = "assistant", fmt.Sprintf(`"id":"m%d","model":"claude-opus-5-5","usage":{"input_tokens":%d,"output_tokens":0}`, c.asked, l.cost/4000)
		}
		at := time.UnixMilli(l.when).UTC().Format("2006-01-02T15:04:05.000Z")
		appendTo(c.t, c.path, `{"type":"`+kind+`","timestamp":"`+at+`","message":{"role":"`+kind+`",`+more+`}}`)
	}
	c.late = c.late[n:]
}

func (c *clientSession) size() int64 {
	info, err := os.Stat(c.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

type priceWorld struct {
	t        *testing.T
	r        *rand.Rand
	box      *inbox.Inbox
	dir      string
	sessions []*clientSession
	now      *clientSession
	sent     int
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
		account.Of(tx).Position(c.id, c.path, length, false)
		require.NoError(w.t, tx.In(c.id).Start(0, nil))
	})
	w.log("%s starts at %d", c.id, length)
}

func (w *priceWorld) in(f func(tx *inbox.Tx)) {
	tx, err := w.box.Begin(w.t.Context())
	require.NoError(w.t, err)
	f(tx)
	require.NoError(w.t, tx.Commit())
	require.Empty(w.t, tx.Warnings(), strings.Join(w.trace, "\n"))
	require.NoError(w.t, tx.Close())
}

// stop is the end of a turn: it settles, and delivers.
func (w *priceWorld) stop() {
	c := w.now
	if !c.turns {
		w.turn("")
	}
	c.flush(w.r.IntN(len(c.late) + 1))
	next := ""
	w.in(func(tx *inbox.Tx) {
		account.Of(tx).Position(c.id, c.path, c.size(), true)
		require.NoError(w.t, meter.ChargeTurn(tx, c.id))
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
		w.log("%s gets %s at %d", c.id, next, c.size())
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
	if kill {
		w.lose(c)
	} else {
		c.flush(len(c.late))
	}
	c.running, c.turns, c.owner = false, false, ""
	gone := w.r.IntN(3) > 0
	w.log("%s ends: killed %v, gone %v", c.id, kill, gone)
	w.in(func(tx *inbox.Tx) {
		if gone {
			require.NoError(w.t, meter.NoteCharge(tx, c.id, false))
		} else {
			account.Of(tx).Position(c.id, c.path, c.size(), false)
			require.NoError(w.t, meter.ChargeTurn(tx, c.id))
		}
		if tx.InFlight() != nil {
			require.NoError(w.t, tx.GiveBack("", true))
		}
	})
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
	for seed := range long.Rounds(60, 1500) {
		w := &priceWorld{t: t, r: rand.New(rand.NewPCG(uint64(seed), 13)), spent: map[string]int64{}, ownerOf: map[*sessionLine]string{}}
		w.clock = &worldClock{time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).UnixMilli()}
		w.dir = t.TempDir()
		var err error
		w.box, err = inbox.Open(filepath.Join(w.dir, "inbox.jsonl"), inbox.Options{Now: w.clock.now})
		require.NoError(t, err)
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
				w.begin(c, c.size())
			} else {
				id := fmt.Sprint("session-", n)
				c := &clientSession{t: w.t, id: id, clock: w.clock, path: filepath.Join(w.dir, id+".jsonl")}
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
			w.now.flush(len(w.now.late))
		default:
			w.stop()
		}
	}
	if w.now.running {
		w.end(false)
	}
	for _, c := range w.sessions {
		w.in(func(tx *inbox.Tx) { require.NoError(w.t, meter.NoteCharge(tx, c.id, false)) })
	}
}

func (w *priceWorld) append(text string) {
	appendTo(w.t, w.box.Path(), text)
}

func (w *priceWorld) check(seed int) {
	t := w.t
	prices, err := book.Read(w.box)
	require.NoError(t, err)
	assert.Empty(t, prices.Warnings)
	got, outside, total := map[string]int64{}, int64(0), int64(0)
	_, err = book.Lines(w.box, func(c price.Line) {
		of := c.Nanos
		total += of
		if c.Outside() {
			outside += of
		} else if of != 0 {
			got[c.EntryID] += of
		}
	})
	require.NoError(t, err)
	want := map[string]int64{}
	sum := int64(0)
	for text, cost := range w.spent {
		sum += cost
		if text != "" && cost != 0 {
			want[entryID(text)] = cost
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

func entryID(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:])
}
