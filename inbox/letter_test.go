package inbox_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// deadBox is an inbox whose every entry became a dead letter.
func deadBox(t testing.TB, content string) *inbox.Inbox {
	t.Helper()
	box := newBox(t, content)
	setAsideAll(t, box)
	return box
}

func setAsideAll(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	for {
		if _, err := next(t, box); err != nil {
			require.ErrorIs(t, err, inbox.ErrEmpty)
			return
		}
		settleNext(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })
	}
}

func letters(t testing.TB, box *inbox.Inbox) []inbox.Letter {
	t.Helper()
	all, warnings, err := script.Letters(box)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	return all
}

// requeue requeues a letter, if need be after the inbox has stopped changing.
func requeue(t testing.TB, box *inbox.Inbox, l inbox.Letter) {
	t.Helper()
	mark := still(t, box)
	in(t, box, func(tx *inbox.Tx) {
		marked, err := tx.Requeue(l, mark)
		require.NoError(t, err)
		assert.Equal(t, noon, *marked.RequeuedAt)
	})
}

// marked returns the names of the requeued letters.
func marked(t testing.TB, box *inbox.Inbox) (names []string) {
	t.Helper()
	for _, l := range letters(t, box) {
		if l.RequeuedAt != nil {
			names = append(names, l.Letter)
		}
	}
	return names
}

func rawLines(all []inbox.Letter) (lines []string) {
	for _, l := range all {
		lines = append(lines, l.RawLine.Text)
	}
	return lines
}

func TestNoLetters(t *testing.T) {
	assert.Empty(t, letters(t, newBox(t, oldContent)))
}

// A letter goes back into the inbox with its original bytes.
func TestRequeuedByteForByte(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"text":           "one",
		"spaces":         "  one\t",
		"JSON string":    `"a\nb"`,
		"envelope":       `{"prompt":"x","id":"7","m":[1,  2]}`,
		"invalid UTF-8":  "caf\xe9 \xff",
		"U+FFFD":         "\ufffd",
		"CR amid":        "a\rb",
		"CR at the end":  "one\r",
		"NUL":            "a\x00b",
		"like a comment": "// <>&",
	} {
		t.Run(name, func(t *testing.T) {
			box := deadBox(t, line+"\r\n")
			before := read(t, box.Path())
			l := letters(t, box)[0]
			requeue(t, box, l)
			end := "\n"
			if strings.HasSuffix(line, "\r") {
				end = "\r\n"
			}
			assert.Equal(t, before+"\n"+line+end, read(t, box.Path()))
			e, err := next(t, box)
			require.NoError(t, err)
			assert.Equal(t, sha256Hex(line), e.EntryID)
			assert.Equal(t, l.EntryID, e.EntryID)
			assert.Equal(t, l.Text(), e.Text)
			assert.Equal(t, []string{l.Letter}, marked(t, box))
		})
	}
}

// The line and the mark are one commit: a second requeue is an error and appends nothing.
func TestRequeuedOnce(t *testing.T) {
	box := deadBox(t, "one\n")
	requeue(t, box, letters(t, box)[0])
	tx := begin(t, box)
	again := letters(t, box)[0]
	_, err := tx.Requeue(again, inbox.Mark{})
	assert.ErrorContains(t, err, "it was requeued at 2026-03-04T12:00:00Z")
	assert.False(t, tx.Dirty())
	assert.Equal(t, "one\n\none\n", read(t, box.Path()))
}

// The same entry may become a dead letter again, as a separate letter.
func TestRequeuedAndSetAsideAgain(t *testing.T) {
	box := deadBox(t, "one\n")
	requeue(t, box, letters(t, box)[0])
	setAsideAll(t, box)
	all := letters(t, box)
	require.Len(t, all, 2)
	assert.Equal(t, all[0].EntryID, all[1].EntryID)
	assert.NotEqual(t, all[0].Letter, all[1].Letter)
	assert.Equal(t, []string{all[0].Letter}, marked(t, box))
	requeue(t, box, all[1])
	assert.Equal(t, []string{"one"}, drain(t, box))
	assert.Len(t, marked(t, box), 2)
}

func TestNotRequeueable(t *testing.T) {
	for name, c := range map[string]struct{ line, says string }{
		"too long":             {`{"entry_id":"e","raw_line":"","raw_file":".dead-letter-0-e.raw","reason":"too long"}`, "it is too long, and would be set aside again"},
		"too long, no file":    {`{"entry_id":"e","raw_line":"x","reason":"too long"}`, "it is too long"},
		"empty":                {`{"entry_id":"e","raw_line":"\"\"","reason":"empty"}`, "it is empty, and would be set aside again"},
		"no line":              {`{"entry_id":"e"}`, "it has no raw_line: mend it in "},
		"blank line":           {`{"entry_id":"e","raw_line":" \r"}`, "it has no raw_line"},
		"two lines":            {`{"entry_id":"e","raw_line":"a\nb"}`, "its raw_line is more than one line"},
		"newline":              {`{"entry_id":"e","raw_line":"a\n"}`, "its raw_line is more than one line"},
		"no Base64":            {`{"entry_id":"e","raw_line":"a","raw_base64":"%"}`, "raw_base64: illegal base64 data"},
		"newline in Base64":    {`{"entry_id":"e","raw_line":"a","raw_base64":"YQpi"}`, "its raw_line is more than one line"},
		"expired":              {`{"entry_id":"e","raw_line":"{\"prompt\":\"a\",\"expires_at\":\"2026-03-04T11:59:59Z\"}"}`, "it expired at 2026-03-04T11:59:59Z"},
		"expired in the reply": {`{"entry_id":"e","raw_line":"{\"prompt\":\"a\",\"expires_at\":\"2026-03-04T11:59:59Z\"}","reason":"expired"}`, "send it anew"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			write(t, box.DeadLetterPath(), c.line+"\n")
			l := letters(t, box)[0]
			assert.ErrorContains(t, box.Requeueable(l), c.says)
			tx := begin(t, box)
			_, err := tx.Requeue(l, inbox.Mark{})
			assert.EqualError(t, err, box.Requeueable(l).Error())
			assert.False(t, tx.Dirty())
		})
	}
}

// A letter that an operator repaired can be requeued.
func TestMendedLetterIsRequeueable(t *testing.T) {
	box := newBox(t, "\"\"\n")
	assert.Empty(t, drain(t, box))
	assert.Error(t, box.Requeueable(letters(t, box)[0]))
	write(t, box.DeadLetterPath(), strings.Replace(read(t, box.DeadLetterPath()), `"\"\""`, `"mended"`, 1))
	requeue(t, box, letters(t, box)[0])
	assert.Equal(t, []string{"mended"}, drain(t, box))
}

// An inbox that ends inside a line gets its newline once it no longer changes.
func TestRequeueBehindATornLine(t *testing.T) {
	box := deadBox(t, "one\n")
	l := letters(t, box)[0]
	echo(t, box.Path(), "half")
	in(t, box, func(tx *inbox.Tx) {
		_, err := tx.Requeue(l, inbox.Mark{})
		require.ErrorIs(t, err, inbox.ErrTorn)
		assert.False(t, tx.Dirty())
	})
	requeue(t, box, l)
	assert.Equal(t, []string{"half", "one"}, drain(t, box))
}

// A torn line that was delivered counts as whole.
func TestRequeueBehindADeliveredTornLine(t *testing.T) {
	box := deadBox(t, "one\n")
	l := letters(t, box)[0]
	echo(t, box.Path(), "half")
	mark := still(t, box)
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(mark)
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
	in(t, box, func(tx *inbox.Tx) {
		_, err := tx.Requeue(l, inbox.Mark{})
		require.NoError(t, err)
	})
	assert.Equal(t, []string{"one"}, drain(t, box))
	assert.Len(t, results(t, box), 2)
}

// An inbox that a launcher removed is created again.
func TestRequeueIntoAMissingInbox(t *testing.T) {
	box := deadBox(t, oldContent)
	require.NoError(t, os.Remove(box.Path()))
	requeue(t, box, letters(t, box)[1])
	assert.Equal(t, "two\n", read(t, box.Path()))
	assert.Equal(t, []string{"two"}, drain(t, box))
}

// A commit whose lines cannot be written is repaired before the next one: after that one the
// journal would no longer vouch for the mark.
func TestCommitAfterOneThatDidNotReachTheFiles(t *testing.T) {
	for _, file := range []string{".dead-letter.jsonl", "inbox.jsonl", ".events.jsonl"} {
		t.Run(file, func(t *testing.T) {
			box := deadBox(t, oldContent)
			failing := true
			crash.Observe(t, func(op disk.Op) error {
				if failing && op.Kind == disk.OpWrite && strings.HasSuffix(op.Path, "/"+file) {
					return unix.ENOSPC
				}
				return nil
			})
			tx := begin(t, box)
			all := letters(t, box)
			_, err := tx.Requeue(all[0], inbox.Mark{})
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
			require.NotEmpty(t, tx.Warnings(), "the files do not show it yet")
			_, err = tx.Requeue(all[1], inbox.Mark{})
			require.NoError(t, err)
			require.ErrorIs(t, tx.Commit(), unix.ENOSPC, "nothing was changed by that")
			failing = false
			require.NoError(t, tx.Commit())
			require.NoError(t, tx.Close())
			assert.Len(t, marked(t, box), 2)
			assert.Equal(t, []string{"one", "two"}, drain(t, box))
		})
	}
}

// Changes that people make with an editor.
func TestLettersOfAnEditedFile(t *testing.T) {
	box := deadBox(t, oldContent)
	requeue(t, box, letters(t, box)[1])
	content := read(t, box.DeadLetterPath())
	lines := strings.SplitAfter(strings.TrimSuffix(content, "\n"), "\n")
	require.Len(t, lines, 4)
	one, two, three, mark := lines[0], lines[1], lines[2], lines[3]+"\n"
	names := []string{}
	for _, l := range letters(t, box) {
		names = append(names, l.Letter)
	}
	for name, c := range map[string]struct {
		content string
		want    []string
		marked  bool
		warns   string
	}{
		"as it was":          {content, names, true, ""},
		"other spelling":     {respelled(t, one) + respelled(t, two) + three + respelled(t, mark), names, true, ""},
		"blank lines":        {"\n" + one + "  \n" + two + three + mark + "\n", names, true, ""},
		"CRLF":               {strings.ReplaceAll(content, "\n", "\r\n"), names, true, ""},
		"one taken away":     {two + three + mark, names[1:], true, ""},
		"the marked one too": {one + three + mark, []string{names[0], names[2]}, false, ""},
		"twice":              {one + one + two + three + two + mark + mark, names, true, ""},
		"sorted":             {mark + three + two + one, []string{names[2], names[1], names[0]}, true, ""},
		"the mark alone":     {mark, nil, false, ""},
		"no last newline":    {strings.TrimSuffix(content, "\n"), names, true, ""},
		"no JSON":            {one + "# a note\n" + two + three + mark, names, true, ", line 2: not a dead letter on one line: it stays as it is"},
		"other JSON":         {"[]\n{\"prompt\":1}\nnull\n" + content, names, true, ", line 1, 2, 3: not a dead letter"},
		"over many lines":    {strings.Repeat("{\n", 9) + content, names, true, ", line 1, 2, 3, 4, 5 and 4 more: "},
		"torn":               {content + one[:20], names, true, " ends in the middle of line 5: that line is left out until it is whole"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, box.DeadLetterPath(), c.content)
			all, warnings, err := script.Letters(box)
			require.NoError(t, err)
			var got []string
			for _, l := range all {
				got = append(got, l.Letter)
				assert.Equal(t, c.marked && l.Letter == names[1], l.RequeuedAt != nil, l.Letter)
			}
			assert.Equal(t, c.want, got)
			if c.warns == "" {
				assert.Empty(t, warnings)
			} else {
				require.Len(t, warnings, 1)
				assert.Contains(t, warnings[0], box.DeadLetterPath()+c.warns)
			}
		})
	}
}

// respelled returns a line of JSON with other spaces and its members in another order.
func respelled(t testing.TB, line string) string {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(line), &v))
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return " " + strings.ReplaceAll(string(b), `,"`, ` , "`) + " \n"
}

// The letters of heartbeat-rs have few members, and others may have fewer.
func TestForeignLetters(t *testing.T) {
	const whole = `{"entry_id":"3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3","start_offset":4,"end_offset":8,"raw_line":"two",` +
		`"reason":"orphaned","delivered_at":"2025-05-01T10:11:12.123456Z","dead_lettered_at":"2025-05-01T10:12:13.5Z"}`
	for name, c := range map[string]struct {
		line       string
		requeueing string // what is requeued, if anything can be
	}{
		"heartbeat-rs":        {whole, "two"},
		"no reason":           {`{"entry_id":"x","start_offset":4,"end_offset":8,"raw_line":"two","delivered_at":null}`, "two"},
		"no entry_id":         {`{"raw_line":"two"}`, "two"},
		"no entry_id, Base64": {`{"raw_line":"","raw_base64":"` + base64.StdEncoding.EncodeToString([]byte("\xff")) + `"}`, "\ufffd"},
		"exported":            {`{"letter":"0123456789ab","entry_id":"x","raw_line":"two","requeued_at":"2026-03-04T12:00:00Z"}`, "two"},
		"no line":             {`{"entry_id":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			write(t, box.DeadLetterPath(), c.line+"\n")
			all := letters(t, box)
			require.Len(t, all, 1)
			assert.Len(t, all[0].Letter, 12)
			assert.NotEmpty(t, all[0].EntryID)
			assert.Nil(t, all[0].RequeuedAt)
			if c.requeueing == "" {
				assert.Error(t, box.Requeueable(all[0]))
				return
			}
			requeue(t, box, all[0])
			assert.Equal(t, []string{all[0].Letter}, marked(t, box))
			assert.Equal(t, []string{c.requeueing}, drain(t, box))
		})
	}
}

// A letter may be several times as long as its entry.
func TestLetterOfALongEntry(t *testing.T) {
	long.Only(t, "64 MiB")
	box := newBox(t, "")
	line := bytes.Repeat([]byte("\xe9a"), inbox.MaxLine*3/8+99)
	write(t, box.DeadLetterPath(), `{"entry_id":"e","raw_line":"x","raw_base64":"`+base64.StdEncoding.EncodeToString(line)+"\"}\n")
	require.Greater(t, fileSize(t, box.DeadLetterPath()), int64(inbox.MaxLine))
	all := letters(t, box)
	require.Len(t, all, 1)
	assert.NoError(t, box.Requeueable(all[0]))
	raw, err := all[0].RawLine.Bytes()
	require.NoError(t, err)
	assert.True(t, bytes.Equal(line, raw))
}

// purge deletes the letters at these places in the list.
func purge(t testing.TB, box *inbox.Inbox, at ...int) {
	t.Helper()
	in(t, box, func(*inbox.Tx) {}) // completes what a kill left
	all, _, err := script.Letters(box)
	require.NoError(t, err)
	var gone []inbox.Letter
	for _, i := range at {
		gone = append(gone, all[i])
	}
	purged, _, err := outcomes.Purge(context.Background(), box, gone)
	require.NoError(t, err)
	assert.Equal(t, gone, purged)
}

func TestPurge(t *testing.T) {
	box := deadBox(t, oldContent)
	requeue(t, box, letters(t, box)[0])
	requeue(t, box, letters(t, box)[1])
	purge(t, box, 0, 2)
	assert.Equal(t, []string{"two"}, rawLines(letters(t, box)))
	assert.Len(t, marked(t, box), 1)
	assert.Equal(t, 2, strings.Count(read(t, box.DeadLetterPath()), "\n"), "the mark of what is gone is gone")
	purge(t, box, 0)
	assert.Empty(t, read(t, box.DeadLetterPath()))
	assert.Equal(t, []string{"one", "two"}, drain(t, box), "what is in the inbox stays")
	setAsideAll(t, box)
}

// Purged letters do not come back, whatever a power loss takes.
func TestPurgedForGood(t *testing.T) {
	reboot(t, "one")
	box := deadBox(t, oldContent)
	purge(t, box, 1)
	reboot(t, "two")
	assert.Equal(t, []string{"one", "three"}, rawLines(letters(t, box)))
	in(t, box, func(*inbox.Tx) {})
	assert.Equal(t, []string{"one", "three"}, rawLines(letters(t, box)))
}

// Lines of others stay. A letter goes with all of its lines, even a last one without its newline.
func TestPurgeOfAnEditedFile(t *testing.T) {
	t.Parallel()
	box := deadBox(t, oldContent)
	content := read(t, box.DeadLetterPath())
	line := firstLine(t, box.DeadLetterPath())
	for name, c := range map[string]struct{ before, after string }{
		"notes":           {"# note\n" + content + "[]\n", "# note\n" + strings.TrimPrefix(content, line) + "[]\n"},
		"twice":           {content + line, strings.TrimPrefix(content, line)},
		"no last newline": {content + strings.TrimSuffix(line, "\n"), strings.TrimPrefix(content, line)},
		"torn":            {content + line[:30], strings.TrimPrefix(content, line) + line[:30]},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, box.DeadLetterPath(), c.before)
			purge(t, box, 0)
			assert.Equal(t, c.after, read(t, box.DeadLetterPath()))
		})
	}
}

// The bytes of a line that was too long go with its letter. A file that a letter only claims stays.
func TestPurgeTakesTheBytesAlong(t *testing.T) {
	box := newBox(t, "")
	write(t, beside(box, ".dead-letter-0-e.raw"), "bytes")
	write(t, beside(box, "precious.raw"), "bytes")
	write(t, box.DeadLetterPath(), `{"entry_id":"a","raw_file":".dead-letter-0-e.raw","reason":"too long"}`+"\n"+
		`{"entry_id":"b","raw_file":"precious.raw","reason":"too long"}`+"\n"+
		`{"entry_id":"c","raw_file":"../`+"x/.dead-letter-0-e.raw"+`","reason":"too long"}`+"\n")
	purge(t, box, 0, 1, 2)
	assert.NoFileExists(t, beside(box, ".dead-letter-0-e.raw"))
	assert.FileExists(t, beside(box, "precious.raw"))
	assert.Empty(t, letters(t, box))
}

// FuzzParseLetter: a letter has names, survives a round trip through JSON, and never reads as a
// mark, nor a mark as a letter.
func FuzzParseLetter(f *testing.F) {
	for _, s := range []string{
		"", "null", "[]", `{"entry_id":"e"}`, `{"raw_line":"two"}`, `{"raw_line":"","raw_base64":"%","reason":"orphaned"}`,
		`{"entry_id":"e","start_offset":-1,"dead_lettered_at":"0001-01-01T00:00:00Z","raw_line":"\ud800"}`,
		`{"letter":"0123456789ab","entry_id":"e","requeued_at":"2026-03-04T12:00:00Z"}`,
		`{"letter":"0123456789ab","entry_id":"e","raw_line":"x","requeued_at":"2026-03-04T12:00:00+23:59"}`,
		`{"entry_id":"e","metadata":{"a":[1]},"failure":{"error":"x","at":"2026-03-04T12:00:00Z"},"delivered_at":null,"raw_file":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		l, mark, ok := inbox.ParseLetter(line)
		if !ok {
			assert.Equal(t, inbox.Letter{}, l)
			assert.False(t, mark)
			return
		}
		require.NotEmpty(t, l.Letter)
		require.Equal(t, mark, l.RequeuedAt != nil)
		if !mark {
			require.Len(t, l.Letter, 12)
			require.NotEmpty(t, l.EntryID)
		}
		again, err := json.Marshal(l)
		require.NoError(t, err)
		l2, mark2, ok := inbox.ParseLetter(again)
		require.True(t, ok)
		require.Equal(t, mark, mark2)
		assert.Equal(t, l.Letter, l2.Letter)
		assert.Equal(t, l.EntryID, l2.EntryID)
		assert.Equal(t, l.RawLine, l2.RawLine)
		assert.Equal(t, l.Text(), l2.Text())
		if now := time.Now(); !mark {
			l.RequeuedAt = &now // as list prints a requeued letter
			again, err = json.Marshal(l)
			require.NoError(t, err)
			_, mark, ok = inbox.ParseLetter(again)
			hasLine := l.RawLine != inbox.RawLine{} || l.RawFile != "" || l.Reason != ""
			assert.True(t, ok)
			assert.Equal(t, !hasLine, mark, string(again))
		}
	})
}
