package inbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestGiveBackCountsAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		counted []bool
		attempt int // of the next delivery
	}{
		"never":            {nil, 1},
		"counted":          {[]bool{true}, 2},
		"not counted":      {[]bool{false}, 1},
		"counted thrice":   {[]bool{true, true, true}, 4},
		"not counted once": {[]bool{true, false, true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "\n\none\ntwo\n")
			for _, counted := range c.counted {
				require.Equal(t, "one", deliver(t, box).Text)
				in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", counted)) })
				assert.NoFileExists(t, beside(box, ".in-flight"))
				assert.NoFileExists(t, beside(box, ".responded"))
				assert.Equal(t, "2", cursorFile(t, box), "at the entry's start")
			}
			e := deliver(t, box)
			assert.Equal(t, "one", e.Text)
			assert.Equal(t, c.attempt, e.Attempt)
			acknowledge(t, box, "done")
			assert.Equal(t, c.attempt, results(t, box)[0].Attempt)
			assert.Equal(t, "two", deliver(t, box).Text)
		})
	}
}

// An entry is given back as it was read, with its exact bytes.
func TestGivenBackIsTheSameEntry(t *testing.T) {
	for name, line := range map[string]string{
		"envelope":      `{"prompt":"x","id":"7","m":[1]}`,
		"invalid UTF-8": "caf\xe9",
		"JSON string":   `"a\nb"`,
		"CRLF":          "x\r",
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, line+"\n")
			first := deliver(t, box)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack(inbox.NeverArrived, false)) })
			again, err := next(t, box)
			require.NoError(t, err)
			assert.EqualExportedValues(t, first, again)
			deliver(t, box)
			in(t, box, func(tx *inbox.Tx) {
				exact, err := tx.InFlight().RawLine.Bytes()
				require.NoError(t, err)
				assert.Equal(t, strings.TrimSuffix(line, "\r"), string(exact))
			})
		})
	}
}

func TestOneInFlightAtATime(t *testing.T) {
	box := newBox(t, oldContent)
	e := deliver(t, box)
	tx := begin(t, box)
	_, err := tx.Next(inbox.Mark{})
	assert.ErrorContains(t, err, "one is still in flight")
	assert.NotErrorIs(t, err, inbox.ErrEmpty)
	_, err = tx.Deliver(e, inbox.Recipient{})
	assert.ErrorContains(t, err, "still in flight")
	assert.False(t, tx.Dirty())
}

func TestNothingInFlightToSettle(t *testing.T) {
	tx := begin(t, newBox(t, oldContent))
	assert.Nil(t, tx.InFlight())
	for name, c := range settles {
		assert.ErrorContains(t, c.settle(tx), "nothing is in flight", name)
	}
	assert.False(t, tx.Dirty())
}

// Uncommitted steps did not happen.
func TestUncommittedIsForgotten(t *testing.T) {
	box := newBox(t, oldContent)
	deliver(t, box)
	for name, c := range settles {
		before := snapshot(t, box)
		tx := begin(t, box)
		require.NoError(t, c.settle(tx), name)
		assert.True(t, tx.Dirty(), name)
		require.NoError(t, tx.Close())
		assert.Equal(t, before, snapshot(t, box), name)
	}
}

// A transaction may take any number of steps, in one commit or several.
func TestManyStepsInOneTransaction(t *testing.T) {
	for name, commit := range map[string]bool{"one commit": false, "a commit each": true} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n\"\"\ntwo\nthree\nfour\n")
			in(t, box, func(tx *inbox.Tx) {
				for range 4 {
					e, err := tx.Next(inbox.Mark{})
					require.NoError(t, err)
					_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
					require.NoError(t, err)
					if commit {
						require.NoError(t, tx.Commit())
					}
					require.NoError(t, tx.Acknowledge("re "+e.Text))
					if commit {
						require.NoError(t, tx.Commit())
					}
				}
				assert.Equal(t, 4, tx.In("s").Acknowledged())
			})
			var replies []string
			for _, r := range results(t, box) {
				replies = append(replies, r.Reply)
			}
			assert.Equal(t, []string{"re one", "re two", "re three", "re four"}, replies)
			assert.Len(t, deadLetters(t, box), 1)
			_, err := next(t, box)
			assert.ErrorIs(t, err, inbox.ErrEmpty)
		})
	}
}
