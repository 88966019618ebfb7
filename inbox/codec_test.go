package inbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/flat"
)

// The codec is written by hand, and the types declare the same with tags. These tests keep the two
// in step: each reads what the other writes.

// plain returns JSON on one line, as encoding/json lays it out. It loses nothing, so that values
// can be compared.
func plain(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// anyJSON makes a JSON value of any bytes, or nil of none.
func anyJSON(t testing.TB, b []byte) json.RawMessage {
	t.Helper()
	if len(b) == 0 {
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, b) == nil {
		return compact.Bytes()
	}
	return json.RawMessage(plain(t, string(b)))
}

func anyTime(sec, nsec int64) time.Time {
	const year9999 = 253402300799
	return time.Unix(((sec%year9999)+year9999)%year9999, ((nsec%1e9)+1e9)%1e9).UTC()
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func parse(t testing.TB, b []byte) *flat.Members {
	t.Helper()
	require.True(t, json.Valid(b), "%q", b)
	require.NotContains(t, string(b), "\n")
	m, err := flat.Parse(b)
	require.NoError(t, err)
	return m
}

func FuzzDeliveryCodec(f *testing.F) {
	f.Add("id", int64(0), int64(8), "line", "", int64(1), int64(2), 1, "s", "p", "inbox", false, false, []byte(nil), false)
	f.Add("\"\\\n\x00<&>\u2028", int64(-1), int64(1<<62), "caf\ufffd", "Y2Fm6Q==", int64(1<<40), int64(999999999), -7,
		"é", "😀", "\x7f", true, true, []byte(`{"a":[1,"<"]}`), true)
	f.Fuzz(func(t *testing.T, id string, start, end int64, line, base64 string, sec, nsec int64, attempt int,
		sessionID, promptID, name string, detached, unterminated bool, evidence []byte, failed bool,
	) {
		want := Delivery{
			EntryID: valid(id), StartOffset: start, EndOffset: end,
			RawLine: RawLine{Text: valid(line), Base64: valid(base64)}, DeliveredAt: anyTime(sec, nsec), Attempt: attempt,
			SessionID: valid(sessionID), PromptID: valid(promptID), Inbox: valid(name),
			Detached: detached, Unterminated: unterminated, Evidence: anyJSON(t, evidence),
		}
		if failed {
			want.Failure = &Failure{Error: want.SessionID, Message: want.RawLine.Text, At: want.DeliveredAt}
		}
		ours, err := want.encode()
		require.NoError(t, err)
		parse(t, ours)
		var got Delivery
		require.NoError(t, json.Unmarshal(ours, &got))
		assert.Equal(t, plain(t, want), plain(t, got))

		got = Delivery{}
		require.NoError(t, got.decode(parse(t, []byte(plain(t, want)))))
		assert.Equal(t, plain(t, want), plain(t, got))
	})
}

func FuzzResultCodec(f *testing.F) {
	f.Add("id", "", "", []byte(nil), int64(0), int64(8), 1, "s", "p", int64(1), int64(2), "reply")
	f.Add("\"\\\n\x00<&>\u2028", "é", "<name>", []byte(`{"a": [1, "<"]}`), int64(-1), int64(1<<62), 0, "", "", int64(0), int64(0), "\xff")
	f.Fuzz(func(t *testing.T, id, own, name string, meta []byte, start, end int64, attempt int,
		sessionID, promptID string, sec, nsec int64, reply string,
	) {
		want := Result{
			EntryID: valid(id), ID: valid(own), StartOffset: start, EndOffset: end, Attempt: attempt,
			SessionID: valid(sessionID), PromptID: valid(promptID),
			DeliveredAt: anyTime(sec, nsec), AcknowledgedAt: anyTime(nsec, sec), Prompt: valid(name), Reply: valid(reply),
		}
		if v := anyJSON(t, meta); v != nil {
			want.Metadata = map[string]json.RawMessage{valid(name): v, "m": v}
		}
		ours, err := want.encode()
		require.NoError(t, err)
		parse(t, ours)
		var got Result
		require.NoError(t, json.Unmarshal(ours, &got))
		assert.Equal(t, plain(t, want), plain(t, got))
	})
}

func FuzzTotalsCodec(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), int64(4), []byte(nil), int64(5), []byte{1, 2, 3}, int64(0), int64(0))
	f.Add(int64(-1), int64(1<<62), int64(0), int64(0), []byte(`{"orphaned":1,"é":2}`), int64(1<<62), []byte("\xff0123456789abc"), int64(1), int64(2))
	f.Fuzz(func(t *testing.T, delivered, redelivered, answered, dropped int64, deadLetters []byte, sum int64, counts []byte, sec, nsec int64) {
		want := Totals{Delivered: delivered, Redelivered: redelivered, Answered: answered, Dropped: dropped, LatencySum: time.Duration(sum)}
		var by map[Reason]int64
		if json.Unmarshal(deadLetters, &by) == nil && len(by) > 0 {
			want.deadLetters = json.RawMessage(plain(t, by))
		}
		for i := range want.latency {
			if i < len(counts) {
				want.latency[i] = int64(counts[i]) << (i * 4)
			}
		}
		if sec != 0 {
			at := anyTime(sec, nsec)
			want.LastAcknowledgedAt = &at
		}
		ours := want.encode()
		parse(t, ours)
		got, err := decodeTotals(ours)
		require.NoError(t, err)
		assert.Equal(t, plain(t, want.complete()), plain(t, got.complete()))
		assert.Equal(t, ours, got.encode())
	})
}

// FuzzTotals reads any record as totals: either it is refused, or writing and reading it again
// changes nothing.
func FuzzTotals(f *testing.F) {
	for _, s := range []string{"", "{}", `{"delivered":1}`, `{"latency":"1 2 3"}`, `{"latency":"x"}`, `{"dead_letters":[]}`, `{"last_acknowledged_at":"soon"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		n, err := decodeTotals(record)
		if err != nil {
			return
		}
		again, err := decodeTotals(n.encode())
		require.NoError(t, err)
		assert.Equal(t, plain(t, n.complete()), plain(t, again.complete()))
	})
}

// A batch keeps all its lines in memory, so a line must not keep spare capacity.
func TestMessageKeepsNoRoom(t *testing.T) {
	line, err := Message{ID: "a", Text: "hello"}.encode(time.Now())
	require.NoError(t, err)
	assert.LessOrEqual(t, cap(line), 2*len(line))
}
