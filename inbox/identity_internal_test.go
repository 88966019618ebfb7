package inbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many tests here write an inbox anew, and nobody else writes there.
func init() { restBetweenPolls = func() { time.Sleep(time.Millisecond) } }

// An editor that saves in place empties the file first. Whoever looks just then waits for the rest, and takes the file
// for another one only if nothing comes.
func TestAnEditorSavesInPlace(t *testing.T) {
	for name, c := range map[string]struct{ first, then, next string }{
		"emptied":          {"", "one\ntwo\nthree\n", "three"},
		"half written":     {"one\n", "one\ntwo\nthree\n", "three"},
		"a line is edited": {"one\ntwo\n", "one\ntwo\nthree, edited\n", "three, edited"},
		"truncated":        {"", "", ""},
		"begun anew":       {"", "four\n", "four"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "inbox.jsonl")
			save := func(content string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
			save("one\ntwo\n")
			box, err := Open(path, Options{})
			require.NoError(t, err)
			next := func() (text string) {
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				if tx.InFlight() != nil {
					require.NoError(t, tx.Acknowledge("done"))
				}
				e, err := tx.Next(Mark{})
				if err != ErrEmpty {
					require.NoError(t, err)
					_, err = tx.Deliver(e, Recipient{})
					require.NoError(t, err)
				}
				require.NoError(t, tx.Commit())
				require.NoError(t, tx.Close())
				return e.Text
			}
			require.Equal(t, []string{"one", "two", ""}, []string{next(), next(), next()})
			rest := restBetweenPolls
			t.Cleanup(func() { restBetweenPolls = rest })
			restBetweenPolls = func() {
				if save(c.then); c.then != "" {
					restBetweenPolls = rest
				}
			}
			save(c.first)
			assert.Equal(t, c.next, next())
		})
	}
}

// Whoever looks at many inboxes that were emptied a while ago, and that nobody works on, waits at none of them, and not
// long for somebody who writes on and on.
func TestNobodyWritesToAnOldFile(t *testing.T) {
	rest, old, looks := restBetweenPolls, longStill, 0
	t.Cleanup(func() { restBetweenPolls, longStill = rest, old })
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	box, err := Open(path, Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	e, err := tx.Next(Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(e, Recipient{})
	require.NoError(t, err)
	require.NoError(t, tx.Acknowledge("done"))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())

	require.NoError(t, os.Truncate(path, 0))
	restBetweenPolls = func() { looks++ }
	view := func() {
		looks = 0
		v, err := box.View()
		require.NoError(t, err)
		require.Zero(t, v.Cursor())
		require.NoError(t, v.Close())
	}
	longStill = time.Hour
	view()
	assert.Positive(t, looks)
	longStill = -time.Hour
	view()
	assert.Zero(t, looks)

	longStill = time.Hour
	restBetweenPolls = func() { // somebody writes without pause
		looks++
		require.NoError(t, os.Truncate(path, int64(looks%2)))
	}
	view()
	assert.LessOrEqual(t, looks, 20)
}
