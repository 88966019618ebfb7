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
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
)

// cut truncates the transcript to its first line.
func (s *spender) cut() {
	content, err := os.ReadFile(s.transcript())
	require.NoError(s.t, err)
	require.NoError(s.t, os.Truncate(s.transcript(), int64(bytes.IndexByte(content, '\n')+1)))
}

// total returns the charged and the uncharged spending.
func (s *spender) total() int64 {
	box, err := inbox.Open(filepath.Join(s.dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(s.t, err)
	p, err := book.Read(box)
	require.NoError(s.t, err)
	return p.Total().Tokens.Sum()
}

// A transcript that is truncated in place suspends no limit: uncharged spending in the lost part is gone, and counting
// continues from the new end.
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
		assert.EqualValues(t, 3300, price.Of(s.letters()[0].Cost).Tokens.Sum())
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
