package meter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/agent"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
)

// printing is a session, whose client says a total only when it ends.
type printing struct {
	*testing.T
	box        *inbox.Inbox
	transcript string
	requests   int
}

func (p *printing) line(format string, args ...any) {
	f, err := os.OpenFile(p.transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(p, err)
	_, err = fmt.Fprintf(f, format+"\n", args...)
	require.NoError(p, err)
	require.NoError(p, f.Close())
}

func (p *printing) turn(tokens int) {
	p.line(`{"type":"user","message":{"role":"user","content":"q"}}`)
	p.requests++
	p.line(`{"type":"assistant","message":{"id":"m%d","model":"claude-opus-5-5","usage":{"input_tokens":%d,"output_tokens":0}}}`, p.requests, tokens)
}

func (p *printing) in(f func(*inbox.Tx)) {
	tx, err := p.box.Begin(p.Context())
	require.NoError(p, err)
	f(tx)
	require.NoError(p, tx.Commit())
	require.NoError(p, tx.Close())
}

// stop ends a turn, which had that many tokens, and hands the next entry over.
func (p *printing) stop(tokens int) {
	p.turn(tokens)
	p.ended()
}

func (p *printing) ended() {
	p.in(func(tx *inbox.Tx) {
		info, err := os.Stat(p.transcript)
		require.NoError(p, err)
		account.Of(tx).Position("s", p.transcript, info.Size(), true)
		require.NoError(p, meter.ChargeTurn(tx, "s"))
		if tx.InFlight() != nil {
			require.NoError(p, tx.Acknowledge("done"))
		}
		if e, err := tx.Next(inbox.Mark{}); err == nil {
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
			require.NoError(p, err)
		}
	})
}

// Each entry costs what its requests do, however late they are counted, and the client's total at
// the end is only kept beside that.
func TestASessionIsCountedLate(t *testing.T) {
	const entries = 200
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	text := ""
	for i := range entries {
		text += fmt.Sprintf(`{"prompt":"x","id":"%d"}`+"\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	p := &printing{T: t, box: box, transcript: filepath.Join(dir, "t.jsonl")}
	p.in(func(tx *inbox.Tx) {
		account.Of(tx).Position("s", p.transcript, 0, false)
		require.NoError(t, tx.In("s").Start(0, nil))
	})
	p.stop(1000) // the prompt that the client was started with
	sum := 1000
	for i := range entries {
		p.stop(1000 + i)
		sum += 1000 + i
	}
	p.in(func(tx *inbox.Tx) { require.NoError(t, meter.ChargeTurn(tx, "s")) })
	const total = 7_654_321_987 // billionths
	p.line(`{"type":"cost-state","totalCostUSD":7.654321987}`)
	for range 2 { // whoever finds the session once more adds nothing
		p.in(func(tx *inbox.Tx) { require.NoError(t, meter.NoteCharge(tx, "s", false)) })
	}
	const token = 4000
	prices, err := book.Read(box)
	require.NoError(t, err)
	assert.EqualValues(t, sum*token, prices.Total().Nanos)
	assert.EqualValues(t, total, prices.Total().ClientNanos)
	for i, line := range resultsOf(t, box) {
		of := prices.Of(line.EntryID, line.FirstSeq, line.Cost)
		assert.EqualValues(t, (1000+i)*token, of.Nanos, "entry %d", i)
	}
	assert.EqualValues(t, 1000*token, prices.Outside().Nanos)
}

// Whoever finds that a client is gone counts its last turns, before the session's account is closed.
func TestAKilledSessionIsCountedToItsEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("a\nb\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	p := &printing{T: t, box: box, transcript: filepath.Join(dir, "t.jsonl")}
	p.in(func(tx *inbox.Tx) {
		account.Of(tx).Position("s", p.transcript, 0, false)
		require.NoError(t, tx.In("s").Start(0, agent.StartNote(p.transcript, false)))
	})
	p.stop(1000)
	p.stop(2000)
	p.turn(3000)
	p.in(func(tx *inbox.Tx) { require.NoError(t, tx.In("s").End()) })
	p.in(func(tx *inbox.Tx) { require.NoError(t, meter.NoteCharge(tx, "", false)) })
	prices, err := book.Read(box)
	require.NoError(t, err)
	assert.EqualValues(t, 6000*4000, prices.Total().Nanos)
	assert.Empty(t, prices.Account.Sessions)
}

// A transcript that cannot be read as its client is gone is counted once it can.
func TestAKilledSessionIsCountedOnceItCanBe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("a\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	p := &printing{T: t, box: box, transcript: filepath.Join(dir, "t.jsonl")}
	p.stop(1000)
	p.turn(2000)
	away := p.transcript + ".away"
	require.NoError(t, os.Rename(p.transcript, away))
	require.NoError(t, os.Mkdir(p.transcript, 0o700))
	p.in(func(tx *inbox.Tx) { require.ErrorContains(t, meter.NoteCharge(tx, "s", false), "it is a directory") })
	require.NoError(t, os.Remove(p.transcript))
	require.NoError(t, os.Rename(away, p.transcript))
	p.in(func(tx *inbox.Tx) { require.NoError(t, meter.NoteCharge(tx, "s", false)) })
	prices, err := book.Read(box)
	require.NoError(t, err)
	assert.EqualValues(t, 3000*4000, prices.Total().Nanos)
	assert.EqualValues(t, 1000*4000, prices.Outside().Nanos)
	assert.Empty(t, prices.Account.Sessions)
}

func resultsOf(t *testing.T, box *inbox.Inbox) (all []inbox.Result) {
	tail, err := outcomes.OpenTail(box.ResultsPath(), -1)
	require.NoError(t, err)
	require.NoError(t, tail.Lines(func(l []byte) {
		var r inbox.Result
		require.NoError(t, json.Unmarshal(l, &r))
		all = append(all, r)
	}))
	require.NoError(t, tail.Close())
	return all
}
