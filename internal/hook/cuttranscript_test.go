package hook_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hook"
	"heartbeat/internal/money/charging"
)

// cut leaves the transcript its first line.
func (s *spender) cut() {
	content, err := os.ReadFile(s.transcript())
	require.NoError(s.t, err)
	require.NoError(s.t, os.Truncate(s.transcript(), int64(bytes.IndexByte(content, '\n')+1)))
}

// total is what was charged and what is not charged yet.
func (s *spender) total() int64 {
	box, err := inbox.Open(filepath.Join(s.dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(s.t, err)
	p, err := charging.Read(box)
	require.NoError(s.t, err)
	return p.Total().Tokens.Sum()
}

// A transcript that is cut in its place keeps no entry from its limit: what it had that was not charged is lost, and
// it counts on from its end.
func TestACutTranscript(t *testing.T) {
	hook.SetLineWait(0)
	t.Run("between two entries", func(t *testing.T) {
		s := spending(t, "--max-tokens-per-entry", "3k").deliver()
		s.request()
		require.Empty(t, s.event("PostToolBatch", ""))
		s.cut()
		require.Contains(t, s.stop(true, "did A"), `"reason":"B"`)
		s.user("Stop hook feedback:\\nB")
		for range 2 {
			s.request()
			require.Empty(t, s.event("PostToolBatch", ""))
		}
		s.request()
		require.Contains(t, s.event("PostToolBatch", ""), "it took 3300 of 3000 tokens")
		require.Len(t, s.letters(), 1)
		assert.EqualValues(t, 3300, s.letters()[0].Tokens.Sum())
		assert.EqualValues(t, 3300, s.total())
	})
	t.Run("amid an entry", func(t *testing.T) {
		s := spending(t, "--max-tokens-per-entry", "3k").deliver()
		s.request()
		require.Contains(t, s.stop(true, "did A"), `"reason":"B"`)
		s.user("Stop hook feedback:\\nB")
		s.request()
		require.Empty(t, s.event("PostToolBatch", ""))
		s.cut()
		require.Empty(t, s.event("PostToolBatch", ""))
		for range 2 {
			s.request()
			require.Empty(t, s.event("PostToolBatch", ""))
		}
		s.request()
		require.Contains(t, s.event("PostToolBatch", ""), "it took 3300 of 3000 tokens")
		require.Len(t, s.letters(), 1)
		assert.Equal(t, inbox.ReasonOverBudget, s.letters()[0].Reason)
	})
}
