package notify_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// day is a session over hours, with a look every five minutes.
type day struct {
	*rig
	transcript string
	sent       int
	told       []string
}

// pass has the time go by, with something that the session writes at each look.
func (d *day) pass(span time.Duration, write string) {
	d.Helper()
	for end := d.clock.Add(span); d.clock.Before(end); {
		d.clock = d.clock.Add(5 * time.Minute)
		if write != "" {
			d.write(write)
		}
		d.told = append(d.told, d.said()...)
	}
}

func (d *day) write(line string) {
	d.Helper()
	f, err := os.OpenFile(d.transcript, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(d, err)
	_, err = f.WriteString(line + "\n")
	require.NoError(d, err)
	require.NoError(d, f.Close())
	require.NoError(d, os.Chtimes(d.transcript, d.clock, d.clock))
}

func (d *day) send(n int) {
	d.Helper()
	for range n {
		d.sent++
		_, err := d.box.Append(d.Context(), inbox.Message{ID: fmt.Sprint("job-", d.sent), Text: "do it"}, 0)
		require.NoError(d, err)
	}
	require.NoError(d, os.Chtimes(d.box.Path(), d.clock, d.clock))
}

func (d *day) deliverNext() {
	d.Helper()
	d.in(func(tx *inbox.Tx) error {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(d, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", Evidence: recovery.Evidence{Transcript: d.transcript}.Encode()})
		return err
	})
	d.write(`{"type":"user"}`)
}

func (d *day) answer() {
	d.Helper()
	d.in(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
}

// A day of bursts, long turns, tools that run for long and idle hours has nobody told of
// anything. A model that hangs in it is told, and that it goes on.
func TestADay(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	r.o.Stall = 20 * time.Minute
	d := &day{rig: r, transcript: filepath.Join(r.dir, "session.jsonl")}
	d.write(`{"type":"system"}`)
	d.in(func(tx *inbox.Tx) error { return tx.In("s").Start(os.Getpid(), nil) })
	end := noon.Add(24 * time.Hour)
	for tool := 0; d.clock.Before(end); tool++ {
		d.send(1 + random.IntN(5))
		for waits := true; waits; {
			d.deliverNext()
			switch random.IntN(3) {
			case 0:
				d.pass(time.Duration(random.IntN(60))*time.Minute, `{"type":"assistant"}`)
			case 1:
				d.write(fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t%d"}]}}`, tool))
				d.pass(time.Duration(random.IntN(90))*time.Minute, "")
				d.write(fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%d"}]}}`, tool))
			}
			d.answer()
			v, err := d.box.View()
			require.NoError(t, err)
			next, err := v.Next(1)
			require.NoError(t, err)
			require.NoError(t, v.Close())
			waits = len(next) > 0
		}
		d.pass(time.Duration(random.IntN(300))*time.Minute, "")
	}
	assert.Empty(t, d.told, "seed %d", seed)

	d.send(1)
	d.deliverNext()
	d.pass(time.Hour, "")
	d.write(`{"type":"assistant"}`)
	d.pass(10*time.Minute, `{"type":"assistant"}`)
	require.Len(t, d.told, 2, "seed %d", seed)
	assert.Contains(t, d.told[0], "stalled stalled nothing has moved in ")
	assert.Contains(t, d.told[1], "over stalled over: nothing has moved in ")
}
