package meter_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
)

// A client that tells nothing for many turns, each of which is several transactions: no
// entry loses what it cost.
func TestManyTurnsWithoutAReading(t *testing.T) {
	for before := range 4 { // other transactions
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			const commits = 2
			const n = 60
			dir := t.TempDir()
			path, transcript := filepath.Join(dir, "inbox.jsonl"), filepath.Join(dir, "t.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x\n", n)), 0o600))
			box, err := inbox.Open(path, inbox.Options{})
			require.NoError(t, err)
			for i := range before {
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				require.NoError(t, tx.In(fmt.Sprint("other ", i)).Start(0, nil))
				require.NoError(t, tx.Commit())
				require.NoError(t, tx.Close())
			}
			for i := range n + 1 {
				f, err := os.OpenFile(transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				require.NoError(t, err)
				fmt.Fprintf(f, `{"type":"user","message":{"role":"user","content":"q"}}`+"\n"+`{"type":"assistant","message":{"id":"m%d","model":"m","usage":{"input_tokens":1000,"output_tokens":5}}}`+"\n", i)
				size, err := f.Seek(0, 2)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				for c := range commits {
					tx, err := box.Begin(context.Background())
					require.NoError(t, err)
					account.Of(tx).Position("s", transcript, size, true)
					if c == 0 {
						require.NoError(t, meter.ChargeTurn(tx, "s"))
						if tx.InFlight() != nil {
							require.NoError(t, tx.Acknowledge("done"))
						}
					}
					if c == commits-1 && i < n {
						e, err := tx.Next(inbox.Mark{})
						require.NoError(t, err)
						_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
						require.NoError(t, err)
					}
					require.NoError(t, tx.Commit())
					require.NoError(t, tx.Close())
				}
			}
			p, err := book.Read(box)
			require.NoError(t, err)
			assert.EqualValues(t, n+1, p.Total().Requests)
			assert.EqualValues(t, 1, p.Outside().Requests, "the first turn's")
		})
	}
}
