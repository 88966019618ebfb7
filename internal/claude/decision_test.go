package claude_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude"
)

func block(t testing.TB, text string, form claude.Form) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, claude.WriteBlock(&out, text, form, ""))
	require.Equal(t, 1, strings.Count(out.String(), "\n"), "one line")
	return out.String()
}

func TestBlockAsReason(t *testing.T) {
	for _, text := range []string{"next", "two\nlines\r\n\t", `"quoted" \`, "<b>&amp;</b> \u2028", "é😀\x00", strings.Repeat("x", 1<<20)} {
		var got map[string]string
		require.NoError(t, json.Unmarshal([]byte(block(t, text, claude.AsReason)), &got))
		assert.Equal(t, map[string]string{"decision": "block", "reason": text}, got)
	}
}

func TestBlockAsContext(t *testing.T) {
	const text = "two\nlines \"é\""
	var got map[string]map[string]string
	require.NoError(t, json.Unmarshal([]byte(block(t, text, claude.AsContext)), &got))
	assert.Equal(t, map[string]map[string]string{
		"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": text},
	}, got)
}

// The client counts characters as JavaScript does, and writes what exceeds 10,000 of
// them to a file. Such a text goes as a reason.
func TestLongContextIsAReason(t *testing.T) {
	for name, unit := range map[string]string{"ASCII": "x", "two bytes": "é", "three bytes": "€", "a pair": "😀"} {
		t.Run(name, func(t *testing.T) {
			fits := strings.Repeat(unit, 10_000/len(utf16.Encode([]rune(unit))))
			assert.Contains(t, block(t, fits, claude.AsContext), "additionalContext")
			assert.Contains(t, block(t, fits+"x", claude.AsContext), `"decision":"block"`)
			assert.Contains(t, block(t, fits, claude.AsReason), `"decision":"block"`)
		})
	}
}

type writes struct {
	n    int
	lost int // how many bytes of a write are
	err  error
}

func (w *writes) Write(b []byte) (int, error) {
	w.n++
	return max(0, len(b)-w.lost), w.err
}

// With one write, a kill leaves the whole decision or nothing.
func TestBlockIsOneWrite(t *testing.T) {
	w := new(writes)
	require.NoError(t, claude.WriteBlock(w, strings.Repeat("x", 1<<20), claude.AsReason, ""))
	assert.Equal(t, 1, w.n)
}

// The client accepts only complete JSON as a decision.
func TestBlockIsWholeOrNone(t *testing.T) {
	nobody := errors.New("nobody reads")
	for lost, want := range map[int]error{0: nil, 1: nil, 2: nobody, 1000: nobody} {
		assert.ErrorIs(t, claude.WriteBlock(&writes{lost: lost, err: nobody}, "x", claude.AsReason, ""), want, "%d bytes lost", lost)
	}
	assert.ErrorIs(t, claude.WriteBlock(&writes{lost: 2}, "x", claude.AsReason, ""), io.ErrShortWrite)
}

func TestBlockWithMessage(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, claude.WriteBlock(&out, "next", claude.AsReason, "heartbeat: run r1"))
	assert.JSONEq(t, `{"decision":"block","reason":"next","systemMessage":"heartbeat: run r1"}`, out.String())
}
