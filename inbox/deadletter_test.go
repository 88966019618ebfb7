package inbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// Reasons must be complete: a missing one would be left out wherever all are shown.
func TestReasonsAreAll(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "deadletter.go", nil, 0)
	require.NoError(t, err)
	declared := 0
	ast.Inspect(source, func(n ast.Node) bool {
		if c, is := n.(*ast.ValueSpec); is && strings.HasPrefix(c.Names[0].Name, "Reason") {
			declared++
		}
		return true
	})
	assert.Len(t, inbox.Reasons(), declared)
}

func TestDeadLetterOnDisk(t *testing.T) {
	const line = "{\"prompt\":\"caf\xe9\",\"id\":\"job\",\"m\":1}"
	box := newBox(t, "zero\n"+line+"\r\n")
	turn(t, box)
	acknowledge(t, box, "done")
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", PromptID: "p", Evidence: evidence})
		require.NoError(t, err)
		require.NoError(t, tx.In("s").Fail("overloaded", "try later"))
		require.NoError(t, tx.DeadLetter(inbox.ReasonInterrupted))
	})
	delivered := noon
	want := inbox.DeadLetter{
		EntryID: sha256Hex(line), ID: "job", Metadata: metadata{"m": raw("1")},
		RawLine:     inbox.RawLine{Text: "{\"prompt\":\"caf\ufffd\",\"id\":\"job\",\"m\":1}"},
		StartOffset: 5, EndOffset: int64(5 + len(line) + 2), Attempts: 1, Reason: "interrupted",
		DeliveredAt: &delivered, SessionID: "s", PromptID: "p",
		Failure:        &inbox.Failure{Error: "overloaded", Message: "try later", At: noon},
		DeadLetteredAt: noon, FirstSeq: 3,
	}
	got := deadLetters(t, box)
	require.Len(t, got, 1)
	exact, err := got[0].RawLine.Bytes()
	require.NoError(t, err)
	assert.Equal(t, line, string(exact))
	got[0].RawLine.Base64 = ""
	assert.Equal(t, want, got[0])
	assert.Len(t, results(t, box), 1)
	assert.NoFileExists(t, beside(box, ".in-flight"))
	assert.NoFileExists(t, beside(box, ".responded"))
}

// Entries with nothing to deliver are set aside on the way to the next one, once.
func TestEmptyEntriesAreSetAside(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"empty JSON string":  `""`,
		"blank JSON string":  `" \n\t "`,
		"empty prompt":       `{"prompt":"","id":"job","m":1}`,
		"blank prompt":       `{"prompt":"\u00a0\r\n","id":"job","m":1}`,
		"empty, with spaces": ` "" `,
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n"+line+"\n"+line+"\ntwo\n"+line+"\n")
			assert.Equal(t, []string{"one", "two"}, drain(t, box))
			assert.Empty(t, drain(t, box))
			dead := deadLetters(t, box)
			require.Len(t, dead, 3)
			assert.Equal(t, inbox.RawLine{Text: line}, dead[0].RawLine)
			assert.Equal(t, inbox.Reason("empty"), dead[0].Reason)
			assert.Equal(t, int64(4), dead[0].StartOffset)
			assert.Equal(t, int64(5+len(line)), dead[0].EndOffset)
			assert.Equal(t, dead[0].EndOffset, dead[1].StartOffset)
			assert.Zero(t, dead[0].Attempts, "it was never delivered")
			assert.Nil(t, dead[0].DeliveredAt)
			assert.Equal(t, noon, dead[0].DeadLetteredAt)
			if dead[0].ID != "" {
				assert.Equal(t, "job", dead[0].ID)
				assert.Equal(t, metadata{"m": raw("1")}, dead[0].Metadata)
			}
		})
	}
}

// Setting aside on the way takes effect only with the commit.
func TestSetAsideIsCommittedWithTheRest(t *testing.T) {
	box := newBox(t, "\"\"\none\n")
	for range 3 {
		_, err := next(t, box)
		require.NoError(t, err)
	}
	assert.Empty(t, deadLetters(t, box))
	in(t, box, func(tx *inbox.Tx) {
		for range 3 {
			e, err := tx.Next(inbox.Mark{})
			require.NoError(t, err)
			assert.Equal(t, "one", e.Text)
		}
		assert.Equal(t, []inbox.SetAside{{Reason: inbox.ReasonEmpty, Count: 1, Entry: "12ae32cb1ec0", End: 3}}, tx.SetAside())
	})
	assert.Len(t, deadLetters(t, box), 1)
}

// An empty entry without its newline is set aside only once the file no longer changes.
func TestEmptyTornEntry(t *testing.T) {
	box := newBox(t, `""`)
	_, err := next(t, box)
	assert.ErrorIs(t, err, inbox.ErrTorn)
	in(t, box, func(tx *inbox.Tx) {
		_, err := tx.Next(still(t, box))
		assert.ErrorIs(t, err, inbox.ErrEmpty)
	})
	assert.Len(t, deadLetters(t, box), 1)
}

func TestDropKeepsNothing(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Drop()) })
	assert.Empty(t, deadLetters(t, box))
	assert.Empty(t, results(t, box))
	assert.Equal(t, "4", cursorFile(t, box))
	assert.Equal(t, []string{"two", "three"}, drain(t, box))
}
