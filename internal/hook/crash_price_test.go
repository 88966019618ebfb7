package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/crash"
)

// pricedEvent is an event of a session that has a transcript.
func pricedEvent(event, reply string) string {
	return fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s0","prompt_id":"p-s0","stop_hook_active":%v,"last_assistant_message":%q,"transcript_path":"DIR/t.jsonl"}`,
		event, reply != "ready", reply)
}

// cents are what the turns of the session cost: before the first entry, A and B.
var cents = []int64{1, 2, 4}

const cent = 10_000_000 // billionths of a dollar

func init() {
	spends := situation{prepare: spendBefore, holds: everyCentOnce, stdin: pricedEvent("Stop", "reply to B")}
	situations["a price is completed"] = spends
	spends.stdin, spends.prepare = pricedEvent("SessionEnd", ""), endUnheard
	situations["a session that spent ends"] = spends
	spends.stdin = `{"hook_event_name":"SessionStart","session_id":"s1","source":"startup","transcript_path":"DIR/other.jsonl"}`
	situations["another session starts"] = spends
	spends.stdin, spends.args = "", []string{"recover", "--on-orphan", "retry"}
	spends.policy = "retry"
	situations["recover charges"] = spends
}

// spendBefore lets a session answer A and work on B.
func spendBefore(t testing.TB, s situation, dir string) { workOnB(t, s, dir) }

func workOnB(t testing.TB, s situation, dir string) (total int64) {
	for i, reply := range []string{"ready", "reply to A"} {
		transcribe(t, dir, i, reply)
		inProcess(t, s.command(dir, nil), inDir(pricedEvent("Stop", reply), dir))
		total += cents[i]
	}
	transcribe(t, dir, 2, "reply to B")
	return total + cents[2]
}

// endUnheard lets such a session end; its own hook is the first to read what that cost.
func endUnheard(t testing.TB, s situation, dir string) {
	total := workOnB(t, s, dir)
	appendTo(t, filepath.Join(dir, "t.jsonl"), fmt.Sprintf(`{"type":"cost-state","sessionId":"s0","totalCostUSD":0.0%d}`+"\n", total))
}

// transcribe writes a turn as the client does.
func transcribe(t testing.TB, dir string, n int, reply string) {
	appendTo(t, filepath.Join(dir, "t.jsonl"), fmt.Sprintf(`{"type":"user","sessionId":"s0","message":{"role":"user","content":%[4]q}}
{"type":"assistant","sessionId":"s0","message":{"role":"assistant","id":"m%[1]d","model":"claude-opus-5-5","content":[{"type":"text","text":%[2]q}],"usage":{"input_tokens":%[3]d,"output_tokens":0}}}
`, n, reply, cents[n]*2500, []string{"hello", "Stop hook feedback:\nA", "Stop hook feedback:\nB"}[n]))
}

func appendTo(t testing.TB, path, text string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// everyCentOnce finds what each entry has cost, however often it is asked for.
func everyCentOnce(t *testing.T, s situation, c crash.Crash) {
	box, err := inbox.Open(s.inbox(c.Dir), inbox.Options{})
	require.NoError(t, err)
	prices, err := charging.Read(box)
	require.NoError(t, err)
	assert.Equal(t, int64(7*cent), prices.Total().Nanos, "before anything is made good")
	for range 2 {
		s.settle(t, c.Dir, func(box *inbox.Inbox, tx *inbox.Tx) {
			require.NoError(t, charging.Note(tx, "s0"))
			require.NoError(t, tx.Commit())
		})
	}
	got := map[string]int64{}
	warnings, err := charging.Lines(box, func(l price.Line) { got[l.EntryID] += l.Nanos / cent })
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, map[string]int64{"": cents[0], entryIDOf("A"): cents[1], entryIDOf("B"): cents[2]}, got)
	prices, err = charging.Read(box)
	require.NoError(t, err)
	assert.Equal(t, int64(7*cent), prices.Total().Nanos)
	assert.Equal(t, int64(cent), prices.Outside().Nanos)
}
