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
func init() { restBetweenLooks = func() { time.Sleep(time.Millisecond) } }

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
			rest := restBetweenLooks
			t.Cleanup(func() { restBetweenLooks = rest })
			restBetweenLooks = func() {
				if save(c.then); c.then != "" {
					restBetweenLooks = rest
				}
			}
			save(c.first)
			assert.Equal(t, c.next, next())
		})
	}
}
