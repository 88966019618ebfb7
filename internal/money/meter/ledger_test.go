package meter_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
)

// summarising is a session whose client makes summaries. A token of input costs 4,000 billionths, and one that is read
// from the cache 200.
type summarising struct{ *printing }

func newSummarising(t *testing.T) summarising {
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("a\nb\nc\nd\ne\nf\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	s := summarising{&printing{T: t, box: box, transcript: filepath.Join(dir, "t.jsonl")}}
	s.starts()
	return s
}

// starts begins a process of the session.
func (s summarising) starts() {
	size := int64(0)
	if info, err := os.Stat(s.transcript); err == nil {
		size = info.Size()
	}
	s.in(func(tx *inbox.Tx) {
		account.Of(tx).Position("s", s.transcript, size, false)
		require.NoError(s, tx.In("s").Start(0, agent.StartNote(s.transcript, false)))
	})
}

// ends has whoever finds that the process is gone charge all that it has written.
func (s summarising) ends() {
	s.in(func(tx *inbox.Tx) { require.NoError(s, meter.NoteCharge(tx, "s", false)) })
}

// summarised is a turn with a summary of a conversation of so many tokens.
func (s summarising) summarised(tokens, conversation int) {
	s.turn(tokens)
	s.line(`{"type":"system","subtype":"compact_boundary","uuid":"u%d","compactMetadata":{"trigger":"auto","preTokens":%d}}`, s.requests, conversation)
	s.line(`{"type":"user","isCompactSummary":true,"message":{"role":"user","content":"summary"}}`)
	s.ended()
}

// says is the client's own total, in thousandths of a dollar.
func (s summarising) says(total int) {
	s.line(`{"type":"cost-state","totalCostUSD":%d.%03d,"modelUsage":{}}`, total/1000, total%1000)
}

// costs are those of the entries that are settled, in thousandths of a dollar, and by how much they and what is outside
// of them are more than was charged.
func (s summarising) costs() (all []int64, more int64) {
	s.Helper()
	prices, err := book.Read(s.box)
	require.NoError(s, err)
	require.Empty(s, prices.Warnings)
	more = prices.Outside().Nanos - prices.Total().Nanos
	for _, line := range resultsOf(s.T, s.box) {
		of := prices.Of(line.EntryID, line.FirstSeq, line.Cost)
		more += of.Nanos
		all = append(all, of.Nanos/1_000_000)
	}
	return all, more
}

// What a summary cost is a guess until the client's total at the end tells it, and is the entry's in whose turn it was
// made. Nobody counts it again.
func TestASummaryIsOfItsEntry(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(s summarising)
		want []int64
	}{
		"the total is not known": {func(s summarising) {}, []int64{10, 12}},
		"it is":                  {func(s summarising) { s.says(126) }, []int64{110, 12}},
		"it is below the guess":  {func(s summarising) { s.says(25) }, []int64{10, 12}},
		"it is said again":       {func(s summarising) { s.says(126); s.says(126) }, []int64{110, 12}},
		"it is of other prices": {func(s summarising) {
			s.line(`{"type":"assistant","message":{"id":"x","model":"house-model","usage":{"input_tokens":1}}}`)
			s.says(126)
		}, []int64{10, 12}},
		"the client does not know a price": {func(s summarising) {
			s.line(`{"type":"cost-state","totalCostUSD":0.126,"hasUnknownModelCost":true}`)
		}, []int64{10, 12}},
		"a person has another price": {func(s summarising) {
			dir := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "heartbeat")
			require.NoError(s, os.MkdirAll(dir, 0o700))
			require.NoError(s, os.WriteFile(filepath.Join(dir, "prices.toml"), []byte("multiplier = 0.5\n"), 0o600))
			s.says(126)
		}, []int64{10, 12}},
		"several": {func(s summarising) {
			s.summarised(1000, 30_000)
			s.says(136) // 100 beyond the guesses: a quarter is the first one's
			s.ends()
		}, []int64{35, 12, 85}},
		"resumed": {func(s summarising) {
			s.says(126)
			s.ends()
			s.starts()
			s.turn(1000)
			s.ended()
			s.summarised(1000, 30_000)
			s.says(184) // 58: 4 for the prompt, 4 and the guess of 6
		}, []int64{110, 12, 0, 54}},
		"killed, and begun anew": {func(s summarising) {
			s.ends()
			s.starts()
			s.stop(1000)
			s.says(500) // nobody knows of what: the range begins behind requests
		}, []int64{10, 12}},
		"another process took over": {func(s summarising) {
			s.starts() // nobody has found the first one gone
			s.stop(1000)
			s.says(500)
			s.stop(1000) // and from there on all is known
			s.summarised(1000, 30_000)
			s.says(600)
		}, []int64{10, 12, 0, 4, 96}},
		"the transcript was cut": {func(s summarising) {
			require.NoError(s, os.Truncate(s.transcript, 100))
			s.stop(1000)
			s.says(500)
		}, []int64{10, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			s := newSummarising(t)
			s.stop(1000) // outside
			s.summarised(2000, 10_000)
			s.stop(3000)
			c.run(s)
			got, _ := s.costs()
			assert.Equal(t, c.want, got[:len(c.want)], "as it is read")
			for n := range 3 {
				if n == 0 { // it is killed before it commits
					tx, err := s.box.Begin(t.Context())
					require.NoError(t, err)
					require.NoError(t, meter.NoteCharge(tx, "s", false))
					require.NoError(t, tx.Close())
				} else {
					s.ends()
				}
				got, more := s.costs()
				assert.Equal(t, c.want, got[:len(c.want)], "charged %d times", n)
				if name != "the transcript was cut" && name != "a person has another price" { // the outcome has what it was
					assert.Zero(t, more)
				}
			}
		})
	}
}
