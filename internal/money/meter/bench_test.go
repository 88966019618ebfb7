package meter_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
)

// BenchmarkTurn charges one turn of a session of many, without a commit.
func BenchmarkTurn(b *testing.B) {
	dir := b.TempDir()
	path, transcript := filepath.Join(dir, "inbox.jsonl"), filepath.Join(dir, "t.jsonl")
	require.NoError(b, os.WriteFile(path, []byte(strings.Repeat("x\n", 400)), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(b, err)
	turn := func(n int, commit bool) {
		tx, err := box.Begin(context.Background())
		require.NoError(b, err)
		info, _ := os.Stat(transcript)
		size := int64(0)
		if info != nil {
			size = info.Size()
		}
		account.Of(tx).Position("s", transcript, size, true)
		require.NoError(b, meter.ChargeTurn(tx, "s"))
		if tx.InFlight() != nil {
			require.NoError(b, tx.Acknowledge("done"))
		}
		e, err := tx.Next(inbox.Mark{})
		require.NoError(b, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		require.NoError(b, err)
		if commit {
			require.NoError(b, tx.Commit())
		}
		require.NoError(b, tx.Close())
	}
	for n := range 150 {
		f, err := os.OpenFile(transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(b, err)
		fmt.Fprintf(f, `{"type":"user","message":{"role":"user","content":"q"}}`+"\n"+`{"type":"assistant","message":{"id":"m%d","model":"claude-opus-5-5","usage":{"input_tokens":1000,"output_tokens":5}}}`+"\n", n)
		require.NoError(b, f.Close())
		if n < 149 {
			turn(n, true)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		turn(0, false)
	}
}
