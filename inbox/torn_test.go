package inbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// still returns a mark of the inbox as it is now.
func still(t testing.TB, box *inbox.Inbox) inbox.Mark {
	t.Helper()
	mark, err := box.AwaitStill(context.Background(), 0)
	require.NoError(t, err)
	return mark
}

// nextAt is next for an inbox that has not changed since mark.
func nextAt(t testing.TB, box *inbox.Inbox, mark inbox.Mark) (text string, err error) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	e, err := tx.Next(mark)
	return e.Text, err
}

func TestTornLineIsNoEntryYet(t *testing.T) {
	for name, content := range map[string]string{
		"text":        "half",
		"JSON string": `"half"`,
		"envelope":    `{"prompt":"half"}`,
		"CR":          "half\r",
		"after blank": "\n\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, content)
			_, err := next(t, box)
			require.ErrorIs(t, err, inbox.ErrTorn)
			text, err := nextAt(t, box, still(t, box))
			require.NoError(t, err)
			assert.Contains(t, text, "half")
		})
	}
}

func TestTornBlankTailIsEmpty(t *testing.T) {
	_, err := next(t, newBox(t, "\n  \t"))
	assert.ErrorIs(t, err, inbox.ErrEmpty)
}

func TestWholeLinesBeforeATornOne(t *testing.T) {
	box := newBox(t, "whole\nhal")
	assert.Equal(t, "whole", turn(t, box))
	in(t, box, func(tx *inbox.Tx) {
		require.NoError(t, tx.Acknowledge("done"))
		_, err := tx.Next(inbox.Mark{})
		assert.ErrorIs(t, err, inbox.ErrTorn)
	})
	assert.Len(t, results(t, box), 1)
}

// A line that is written in pieces is delivered whole or not yet: a mark holds only for the file as
// it was seen.
func TestLineInPieces(t *testing.T) {
	box := newBox(t, "")
	const line = `{"prompt":"a line in pieces"}`
	for i := range line {
		mark := still(t, box)
		echo(t, box.Path(), line[i:i+1])
		_, err := nextAt(t, box, mark)
		require.ErrorIs(t, err, inbox.ErrTorn, "after %d bytes", i+1)
	}
	mark := still(t, box)
	echo(t, box.Path(), "\n")
	text, err := nextAt(t, box, mark)
	require.NoError(t, err)
	assert.Equal(t, "a line in pieces", text)
}

// printf writers never write a newline.
func TestUnterminatedEntryIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{"nothing": "", "its newline": "\n", "CRLF": "\r\n", "another": "\nanother\n"} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "printf")
			in(t, box, func(tx *inbox.Tx) {
				e, err := tx.Next(still(t, box))
				require.NoError(t, err)
				d, err := tx.Deliver(e, inbox.Recipient{})
				require.NoError(t, err)
				assert.True(t, d.Unterminated)
				assert.Equal(t, int64(len("printf")), d.EndOffset)
			})
			echo(t, box.Path(), rest)
			warnings := in(t, box, func(tx *inbox.Tx) {
				require.NotNil(t, tx.InFlight())
				assert.Equal(t, "printf", tx.InFlight().Text())
				assert.False(t, tx.InFlight().Detached)
				require.NoError(t, tx.Acknowledge("done"))
			})
			assert.Empty(t, warnings)
			if rest == "\nanother\n" {
				assert.Equal(t, []string{"another"}, drain(t, box))
			}
			_, err := next(t, box)
			assert.ErrorIs(t, err, inbox.ErrEmpty)
		})
	}
}

func TestUnterminatedEntryIsRedelivered(t *testing.T) {
	box := newBox(t, "printf")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(still(t, box))
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err, "it was an entry once, and remains one")
		assert.Equal(t, "printf", e.Text)
		d, err := tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
		assert.True(t, d.Unterminated)
		require.NoError(t, tx.Acknowledge("done"))
	})
	assert.Equal(t, "6", cursorFile(t, box))
}

// The newline ends the wait, however long the file would have to be still.
func TestAwaitStillSeesTheNewline(t *testing.T) {
	box := newBox(t, "half")
	waited := make(chan error, 1)
	var mark inbox.Mark
	go func() {
		var err error
		mark, err = box.AwaitStill(context.Background(), 1000*time.Hour)
		waited <- err
	}()
	echo(t, box.Path(), " and half\n")
	require.NoError(t, <-waited)
	assert.Equal(t, int64(len("half and half\n")), mark.Size)
}

func TestAwaitStillEnds(t *testing.T) {
	t.Run("with its context", func(t *testing.T) {
		why := errors.New("the session ended")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		_, err := newBox(t, "half").AwaitStill(ctx, time.Hour)
		assert.ErrorIs(t, err, why)
	})
	t.Run("with the inbox", func(t *testing.T) {
		box := open(t, filepath.Join(t.TempDir(), "none"))
		_, err := box.AwaitStill(context.Background(), 0)
		assert.NoError(t, err, "there is nothing to wait for")
	})
	t.Run("at once for a whole line", func(t *testing.T) {
		mark, err := newBox(t, "whole\n").AwaitStill(context.Background(), 0)
		require.NoError(t, err)
		assert.Equal(t, int64(6), mark.Size)
	})
	t.Run("at once for nothing", func(t *testing.T) {
		mark, err := newBox(t, "").AwaitStill(context.Background(), 0)
		require.NoError(t, err)
		assert.Zero(t, mark.Size)
	})
}
