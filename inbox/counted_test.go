package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// TestCountGoesOn checks that counting on from an earlier count gives the same as counting from the
// start, whatever happened in between.
func TestCountGoesOn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	box, err := inbox.Open(t.TempDir()+"/inbox.jsonl", inbox.Options{})
	require.NoError(t, err)
	write := func(text string) {
		f, err := os.OpenFile(box.Path(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	in := func(do func(tx *inbox.Tx) error) {
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		if do(tx) == nil {
			require.NoError(t, tx.Commit())
		}
		require.NoError(t, tx.Close())
	}
	steps := []func(){
		func() { write("line\n") }, func() { write("torn") }, func() { write("\n") }, func() { write("\n\n  \n") }, func() { write("a\nb\nc") },
		func() {
			in(func(tx *inbox.Tx) error {
				e, err := tx.Next(inbox.Mark{})
				if err == nil {
					_, err = tx.Deliver(e, inbox.Recipient{})
				}
				return err
			})
		},
		func() { in(func(tx *inbox.Tx) error { return tx.Acknowledge("done") }) },
		func() { in(func(tx *inbox.Tx) error { return tx.GiveBack("", true) }) },
		func() {
			in(func(tx *inbox.Tx) error {
				e, err := tx.Next(inbox.Mark{})
				if err == nil {
					_, err = tx.Cancel(e.EntryID, e.Start)
				}
				return err
			})
		},
		func() { require.NoError(t, os.WriteFile(box.Path(), []byte("new\n"), 0o600)) },
	}
	var last *inbox.Counted
	for i := range 400 {
		n := random.IntN(len(steps))
		if n == len(steps)-1 && i%20 > 0 { // rarely
			n = 0
		}
		steps[n]()
		v, err := box.View()
		require.NoError(t, err)
		want, err := v.Backlog(t.Context())
		require.NoError(t, err)
		got, now, err := v.Count(t.Context(), last)
		require.NoError(t, err)
		require.NoError(t, v.Close())
		assert.Equal(t, want, got, fmt.Sprintf("after step %d, which was %d", i, n))
		last = now
	}
}
