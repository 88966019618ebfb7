package inbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/journal"
)

// A batch searches for its names again each time it gets the lock back. It reads only what is new,
// and finds it wherever it is.
func TestLookedGoesOnFromWhereItWas(t *testing.T) {
	const old = "{\"id\":\"a\",\"prompt\":\"x\"}\n"
	line := func(id string) string { return strings.Replace(old, `"a"`, `"`+id+`"`, 1) }
	for name, c := range map[string]struct {
		since string // the inbox by then
		found map[string]string
	}{
		"nothing":          {old, map[string]string{}},
		"appended":         {old + line("b"), map[string]string{"b": FoundQueued}},
		"torn, then whole": {old + `{"id":"t","prompt":"x"}` + "\n", map[string]string{"t": FoundQueued}},
		"another file":     {line("b") + line("c") + line("d"), map[string]string{"b": FoundQueued, "c": FoundQueued}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "inbox.jsonl")
			box, err := Open(path, Options{})
			require.NoError(t, err)
			ids := map[string]bool{"b": true, "c": true, "t": true, "answered": true}
			find := func(names *nameSearch) map[string]place {
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				defer func() { require.NoError(t, tx.Close()) }()
				found, err := names.find(tx, names.ids)
				require.NoError(t, err)
				return found
			}
			require.NoError(t, os.WriteFile(path, []byte(old+`{"id":"t"`), 0o600))
			names := nameSearch{ids: ids}
			assert.Empty(t, find(&names))
			assert.EqualValues(t, len(old), names.seen.Off, "up to the line that is being written")

			require.NoError(t, os.WriteFile(path, []byte(c.since), 0o600))
			require.NoError(t, os.WriteFile(box.ResultsPath(), []byte(`{"id":"answered","entry_id":"e"}`+"\n"), 0o600))
			got := map[string]string{}
			for id, p := range find(&names) {
				got[id] = p.where
			}
			c.found["answered"] = FoundAnswered
			assert.Equal(t, c.found, got)
		})
	}
}

// The files are searched without the lock, and later changes are found with it.
func TestLookFirst(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 8<<10)
	line := func(id string) string { return `{"id":"` + id + `","prompt":"` + pad + `"}` + "\n" }
	result := func(id string) string { return `{"entry_id":"e","id":"` + id + `","reply":"` + pad + `"}` + "\n" }
	deliver := func(t *testing.T, box *Inbox, settle func(*Tx) error) {
		tx, err := box.Begin(context.Background())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Close()) }()
		e, err := tx.Next(Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, Recipient{})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		if settle != nil {
			require.NoError(t, settle(tx))
			require.NoError(t, tx.Commit())
		}
	}
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, box *Inbox)
		want      map[string]string
	}{
		"nothing":   {func(*testing.T, *Inbox) {}, map[string]string{"a": FoundQueued, "b": FoundQueued, "old": FoundAnswered}},
		"delivered": {func(t *testing.T, box *Inbox) { deliver(t, box, nil) }, map[string]string{"a": FoundInFlight, "b": FoundQueued, "old": FoundAnswered}},
		"answered":  {func(t *testing.T, box *Inbox) { deliver(t, box, func(tx *Tx) error { return tx.Acknowledge("done") }) }, map[string]string{"a": FoundAnswered, "b": FoundQueued, "old": FoundAnswered}},
		"set aside": {func(t *testing.T, box *Inbox) {
			deliver(t, box, func(tx *Tx) error { return tx.DeadLetter(ReasonOrphaned) })
		}, map[string]string{"a": setAside, "b": FoundQueued, "old": FoundAnswered}},
		"inbox replaced": {func(t *testing.T, box *Inbox) {
			deliver(t, box, nil)
			require.NoError(t, os.WriteFile(box.Path(), []byte(line("c")), 0o600))
		}, map[string]string{"a": FoundInFlight, "c": FoundQueued, "old": FoundAnswered}},
		"results rotated": {func(t *testing.T, box *Inbox) {
			require.NoError(t, os.Rename(box.ResultsPath(), box.ResultsPath()+".1"))
		}, map[string]string{"a": FoundQueued, "b": FoundQueued}},
	} {
		t.Run(name, func(t *testing.T) {
			box, err := Open(filepath.Join(t.TempDir(), "inbox.jsonl"), Options{})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(box.Path(), []byte(line("a")+line("b")), 0o600))
			require.NoError(t, os.WriteFile(box.ResultsPath(), []byte(result("old")), 0o600))
			ids := map[string]bool{"a": true, "b": true, "c": true, "old": true, "new": true}
			find := func(names *nameSearch) (map[string]place, error) {
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				defer func() { require.NoError(t, tx.Close()) }()
				return names.find(tx, names.ids)
			}
			names := nameSearch{ids: ids}
			require.NoError(t, names.searchUnlocked(box))
			c.meanwhile(t, box)
			found, err := find(&names)
			require.NoError(t, err)
			got := map[string]string{}
			for id, p := range found {
				got[id] = p.where
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A process that appends for weeks reads only the outcomes that came since, and still knows every id.
func TestAppendAgainReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	box, err := Open(filepath.Join(t.TempDir(), "inbox.jsonl"), Options{})
	require.NoError(t, err)
	result := func(id string) string {
		return `{"entry_id":"e","id":"` + id + `","prompt":"x","reply":"` + strings.Repeat("x", 8<<10) + `"}` + "\n"
	}
	var all strings.Builder
	for i := range 200 {
		all.WriteString(result(fmt.Sprint("old-", i)))
	}
	write := func(results string) { require.NoError(t, os.WriteFile(box.ResultsPath(), []byte(results), 0o600)) }
	found := func(id string) string {
		r, err := box.Append(t.Context(), Message{ID: id, Text: "x"}, 0)
		require.NoError(t, err)
		return r.Found
	}
	goesOnFrom := func() int64 {
		seen, err := box.seenWithout(journal.Results, map[string]bool{"unknown": true})
		require.NoError(t, err)
		return seen.Off
	}
	write(all.String())
	assert.Empty(t, found("a"))
	assert.Empty(t, found("b"))
	assert.EqualValues(t, all.Len(), goesOnFrom())
	assert.Equal(t, FoundAnswered, found("old-77"))

	all.WriteString(result("later") + result(`\u0069d`))
	write(all.String())
	assert.Equal(t, FoundAnswered, found("later"))
	assert.Equal(t, FoundAnswered, found("id"), "in another spelling")
	assert.EqualValues(t, all.Len(), goesOnFrom())
	assert.Equal(t, FoundAnswered, found("later"))

	rest := all.String()[strings.Index(all.String(), result("old-10")):]
	require.NoError(t, os.Remove(box.ResultsPath()))
	write(rest)
	assert.Equal(t, FoundAnswered, found("old-11"))
	assert.Empty(t, found("old-9"), "once a result is gone, its id can be sent again")
	assert.EqualValues(t, len(rest), goesOnFrom())
}
