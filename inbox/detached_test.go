package inbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// settles lists the ways to leave being in flight, each with what remains.
var settles = map[string]struct {
	settle                 func(*inbox.Tx) error
	answered, dead, queued bool
}{
	"acknowledge": {settle: func(tx *inbox.Tx) error { return tx.Acknowledge("done") }, answered: true},
	"dead-letter": {settle: func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) }, dead: true},
	"drop":        {settle: (*inbox.Tx).Drop},
	"give back":   {settle: func(tx *inbox.Tx) error { return tx.GiveBack("", true) }, queued: true},
}

// The inbox may be replaced while an entry is in flight: the entry lives on, and the new file is read whole.
func TestEntryOutlivesItsFile(t *testing.T) {
	t.Parallel()
	for how, change := range map[string]func(t testing.TB, path string){
		"truncated": func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"rewritten": func(t testing.TB, path string) { rewrite(t, path, "") },
		"replaced":  func(t testing.TB, path string) { replace(t, path, "") },
		"removed":   func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) },
	} {
		for name, c := range settles {
			t.Run(how+" "+name, func(t *testing.T) {
				box := newBox(t, "one\n{\"prompt\":\"two\",\"id\":\"2\",\"m\":1}\nthree\n")
				turn(t, box)
				require.Equal(t, "two", turn(t, box))
				change(t, box.Path())
				echo(t, box.Path(), "uno\ndos\n")

				in(t, box, func(tx *inbox.Tx) {
					require.NotNil(t, tx.InFlight())
					assert.True(t, tx.InFlight().Detached)
					assert.Equal(t, "two", tx.InFlight().Text())
					assert.NotEmpty(t, tx.Warnings())
				})
				assert.Empty(t, in(t, box, func(tx *inbox.Tx) { require.NoError(t, c.settle(tx)) }), "one warning")
				if c.answered {
					assert.Equal(t, "2", results(t, box)[1].ID)
				}
				if c.dead {
					require.Len(t, deadLetters(t, box), 1)
					assert.Equal(t, metadata{"m": raw("1")}, deadLetters(t, box)[0].Metadata)
				}
				want := []string{"uno", "dos"}
				if c.queued {
					want = []string{"two", "uno", "dos"}
				}
				assert.Equal(t, want, drain(t, box))
			})
		}
	}
}

// The file may also go between giving an entry back and delivering it again.
func TestGivenBackOutlivesItsFile(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	turn(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	rewrite(t, box.Path(), "new\n")
	assert.Len(t, in(t, box, func(*inbox.Tx) {}), 1)
	e := deliver(t, box)
	assert.Equal(t, "two", e.Text)
	assert.Equal(t, 2, e.Attempt)
	acknowledge(t, box, "done")
	assert.Equal(t, "0", cursorFile(t, box))
	assert.Equal(t, []string{"new"}, drain(t, box))
}

// The bytes before the cursor decide. If they are the settled ones, the file is the same inbox with
// other lines behind them, unless it was rewritten with exactly the same bytes.
func TestReplacedUnderTheEntryInFlight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"same first line":       {"one\nTWO\n", []string{"TWO"}},
		"first line only":       {"one\n", nil},
		"all the same":          {oldContent, []string{"one", "two", "three"}},
		"shifted":               {"zero\none\ntwo\n", []string{"zero", "one", "two"}},
		"other line, as long":   {"one\nowt\nthree\n", []string{"owt", "three"}},
		"line grown at its end": {"one\ntwofold\n", []string{"twofold"}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			require.Equal(t, "two", turn(t, box))
			rewrite(t, box.Path(), c.content)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
			require.Len(t, deadLetters(t, box), 1)
			assert.Equal(t, "two", deadLetters(t, box)[0].Text)
			assert.Equal(t, c.want, drain(t, box))
		})
	}
}

// A timer writes one prompt a night. Last night's session died with it in flight. Tonight's prompt
// is another entry, though its text is the same.
func TestSamePromptEveryNight(t *testing.T) {
	for name, night := range map[string]func(t testing.TB, path, content string){"rewritten": rewrite, "replaced": replace} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "triage\n")
			require.Equal(t, "triage", turn(t, box))
			night(t, box.Path(), "triage\n")
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
			assert.Equal(t, []string{"triage"}, drain(t, box))
		})
	}
}

// An .in-flight from another program may not fit the inbox. The inbox has not changed, so answered
// entries stay answered.
func TestForeignEntryDoesNotRewind(t *testing.T) {
	for name, content := range map[string]string{
		"beyond the end": fiveMembers(1_000, 1_004, "zero"),
		"another line":   fiveMembers(4, 8, "zero"),
		"edited text":    fiveMembers(4, 8, "two, but better"),
		"amid a line":    fiveMembers(5, 9, "zero"),
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			acknowledge(t, box, "done")
			write(t, beside(box, ".in-flight"), content)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
			assert.Len(t, deadLetters(t, box), 1)
			assert.Equal(t, []string{"two", "three"}, drain(t, box))
		})
	}
}

// Somebody removes the journal while an entry lives on without its file. An entry in flight has its
// own file; an entry that was given back is kept in an event.
func TestJournalRemovedWithADetachedEntry(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"text": "one\n", "not UTF-8": "caf\xe9\n"} {
		t.Run(name+" in flight", func(t *testing.T) {
			box := newBox(t, content)
			text := turn(t, box)
			replace(t, box.Path(), "uno\n")
			in(t, box, func(*inbox.Tx) {})
			require.NoError(t, os.Remove(beside(box, journal)))
			in(t, box, func(tx *inbox.Tx) {
				require.NotNil(t, tx.InFlight())
				assert.Equal(t, text, tx.InFlight().Text())
				require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned))
			})
			assert.Equal(t, []string{"uno"}, drain(t, box))
		})
		for how, giveBack := range map[string]func(t testing.TB, box *inbox.Inbox){
			"given back, then replaced": func(t testing.TB, box *inbox.Inbox) {
				in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
				replace(t, box.Path(), "uno\n")
				in(t, box, func(*inbox.Tx) {})
			},
			"replaced, then given back": func(t testing.TB, box *inbox.Inbox) {
				replace(t, box.Path(), "uno\n")
				in(t, box, func(*inbox.Tx) {})
				in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				box := newBox(t, content)
				turn(t, box)
				giveBack(t, box)
				in(t, box, func(*inbox.Tx) {})
				require.NoError(t, os.Remove(beside(box, journal)))
				var kept []string
				for _, e := range linesOf[inbox.Event](t, box.EventsPath()) {
					if e.Event == inbox.EventDetached {
						b, err := inbox.RawLine{Text: e.RawLine, Base64: e.RawBase64}.Bytes()
						require.NoError(t, err)
						kept = append(kept, string(b)+"\n")
					}
				}
				assert.Equal(t, []string{content}, kept)
			})
		}
	}
}
