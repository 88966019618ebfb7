package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/crash"
)

// pricedEvent returns an event of a session with a transcript.
func pricedEvent(event, reply string) string {
	return fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s0","prompt_id":"p-s0","stop_hook_active":%v,"last_assistant_message":%q,"transcript_path":"DIR/t.jsonl"}`,
		event, reply != "ready", reply)
}

// cents are the costs of the session's turns: before the first entry, of A and of B.
var cents = []int64{1, 2, 4}

const cent = 10_000_000 // in billionths of a dollar

func init() {
	spends := situation{prepare: spendBefore, holds: everyCentOnce, stdin: pricedEvent("Stop", "reply to B")}
	situations["a price is completed"] = spends
	spends.stdin, spends.prepare = pricedEvent("SessionEnd", ""), endUnheard
	situations["a session that spent ends"] = spends
	spends.stdin = `{"hook_event_name":"SessionStart","session_id":"s1","source":"startup","transcript_path":"DIR/other.jsonl"}`
	situations["another session starts"] = spends
	told := spends
	told.prepare, told.holds = endSummarised, func(t *testing.T, s situation, c crash.Crash) { everyCentIs(t, s, c, 1, 5, 4) }
	situations["a total tells what a summary cost"] = told
	spends.stdin, spends.args = "", []string{"recover", "--on-orphan", "retry"}
	spends.policy = "retry"
	situations["recover charges"] = spends
}

// spendBefore lets a session answer A and start on B.
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

// endUnheard ends such a session. Its own hook is the first to read what that cost.
func endUnheard(t testing.TB, s situation, dir string) {
	total := workOnB(t, s, dir)
	appendTo(t, filepath.Join(dir, "t.jsonl"), fmt.Sprintf(`{"type":"cost-state","sessionId":"s0","totalCostUSD":0.0%d}`+"\n", total))
}

// endSummarised ends a session that was compacted in A's turn. The summary cost three cents, but is estimated at a
// twentieth of a cent.
func endSummarised(t testing.TB, s situation, dir string) {
	for i, reply := range []string{"ready", "reply to A", "reply to B"} {
		transcribe(t, dir, i, reply)
		if i == 1 {
			appendTo(t, filepath.Join(dir, "t.jsonl"), `{"type":"system","subtype":"compact_boundary","uuid":"u","compactMetadata":{"trigger":"auto","preTokens":2500}}`+"\n")
		}
		event := "Stop"
		if i == 2 {
			event = "SessionEnd"
		}
		inProcess(t, s.command(dir, nil), inDir(pricedEvent(event, reply), dir))
	}
	appendTo(t, filepath.Join(dir, "t.jsonl"), `{"type":"cost-state","sessionId":"s0","totalCostUSD":0.1}`+"\n")
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

func everyCentOnce(t *testing.T, s situation, c crash.Crash) {
	everyCentIs(t, s, c, cents[0], cents[1], cents[2])
}

// everyCentIs checks what each entry has cost, and asks repeatedly.
func everyCentIs(t *testing.T, s situation, c crash.Crash, before, a, b int64) {
	all := (before + a + b) * cent
	box, err := inbox.Open(s.inbox(c.Dir), inbox.Options{})
	require.NoError(t, err)
	prices, err := book.Read(box)
	require.NoError(t, err)
	assert.Equal(t, all, prices.Total().Nanos, "before anything is made good")
	for range 2 {
		s.settle(t, c.Dir, func(box *inbox.Inbox, tx *inbox.Tx) {
			require.NoError(t, meter.NoteCharge(tx, "s0", false))
			require.NoError(t, tx.Commit())
		})
	}
	got := map[string]int64{}
	warnings, err := book.Lines(box, func(l price.Line) { got[l.EntryID] += l.Nanos })
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, map[string]int64{"": before * cent, entryIDOf("A"): a * cent, entryIDOf("B"): b * cent}, got)
	prices, err = book.Read(box)
	require.NoError(t, err)
	assert.Equal(t, all, prices.Total().Nanos)
	assert.Equal(t, before*cent, prices.Outside().Nanos)
}
