package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// fiveMembers returns an .in-flight as heartbeat-rs writes it.
func fiveMembers(start, end int64, line string) string {
	return fmt.Sprintf(`{"entry_id":%q,"start_offset":%d,"end_offset":%d,"raw_line":%q,"delivered_at":"2026-01-02T03:04:05.678901234+00:00"}`,
		sha256Hex(line), start, end, line)
}

// heartbeat-rs left an entry in flight.
func TestInFlightOfHeartbeatRs(t *testing.T) {
	for name, layout := range map[string]func(string) string{
		"one line":     func(s string) string { return s },
		"with newline": func(s string) string { return s + "\n" },
		"pretty":       pretty,
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			write(t, beside(box, ".inbox-offset"), "4")
			write(t, beside(box, ".in-flight"), layout(fiveMembers(4, 8, "two")))
			write(t, beside(box, ".responded"), "")
			tx := begin(t, box)
			delivered := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
			d := tx.InFlight()
			require.NotNil(t, d)
			assert.WithinDuration(t, delivered, d.DeliveredAt, 0)
			d.DeliveredAt = time.Time{}
			assert.Equal(t, &inbox.Delivery{
				EntryID: sha256Hex("two"), StartOffset: 4, EndOffset: 8, RawLine: inbox.RawLine{Text: "two"}, Attempt: 1,
			}, d)
			assert.True(t, tx.Responded())
			assert.Empty(t, tx.Warnings())
			require.NoError(t, tx.Close())
			acknowledge(t, box, "done")
			assert.Equal(t, []string{"three"}, drain(t, box))
			assert.WithinDuration(t, delivered, results(t, box)[0].DeliveredAt, 0)
		})
	}
}

func pretty(s string) string {
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		panic(err)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// An operator may save .in-flight with a tool that lays it out differently. It stays the same
// entry, with its attempts and evidence.
func TestInFlightLaidOutAnew(t *testing.T) {
	box := newBox(t, oldContent)
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", PromptID: "p", Evidence: evidence})
		require.NoError(t, err)
		require.NoError(t, tx.In("s").Fail("overloaded", "try later"))
	})
	want := inFlightFile(t, box)
	write(t, beside(box, ".in-flight"), pretty(read(t, beside(box, ".in-flight"))))
	for range 2 {
		in(t, box, func(tx *inbox.Tx) {
			require.NotNil(t, tx.InFlight())
			got := *tx.InFlight()
			assert.JSONEq(t, string(want.Evidence), string(got.Evidence))
			got.Evidence = want.Evidence
			assert.Equal(t, want, got)
		})
	}
}

// heartbeat-rs was killed while it acknowledged: the cursor is past the entry, and only its
// .in-flight is left.
func TestStaleInFlight(t *testing.T) {
	for _, cursor := range []int64{8, 14} {
		box := newBox(t, oldContent)
		write(t, beside(box, ".inbox-offset"), fmt.Sprint(cursor))
		write(t, beside(box, ".in-flight"), fiveMembers(4, 8, "two"))
		write(t, beside(box, ".responded"), "")
		in(t, box, func(tx *inbox.Tx) {
			require.NotNil(t, tx.Stale())
			assert.Equal(t, "two", tx.Stale().Text())
			assert.Nil(t, tx.InFlight())
			assert.Equal(t, cursor, tx.Cursor())
		})
		assert.NoFileExists(t, beside(box, ".in-flight"))
		assert.NoFileExists(t, beside(box, ".responded"))
		in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.Stale()) })
		assert.Empty(t, results(t, box))
	}
}

func TestRespondedIsTakenAway(t *testing.T) {
	box := newBox(t, oldContent)
	write(t, beside(box, ".responded"), "")
	tx := begin(t, box)
	assert.True(t, tx.Responded())
	assert.True(t, tx.Dirty())
	require.NoError(t, tx.Close())
	assert.FileExists(t, beside(box, ".responded"), "only a commit changes something")
	in(t, box, func(*inbox.Tx) {})
	assert.NoFileExists(t, beside(box, ".responded"))
}

// Changes that a launcher makes to the documented files between two transactions.
func TestFilesChangedByOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t testing.TB, box *inbox.Inbox)
		want   []string
	}{
		"cursor reset":   {func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, ".inbox-offset"), "0") }, []string{"one", "two", "three"}},
		"cursor removed": {func(t testing.TB, box *inbox.Inbox) { require.NoError(t, os.Remove(beside(box, ".inbox-offset"))) }, []string{"one", "two", "three"}},
		"cursor set on":  {func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, ".inbox-offset"), "8\n") }, []string{"three"}},
		"cursor at the end": {
			func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, ".inbox-offset"), " 0014 ") }, nil,
		},
		"all state removed": {
			func(t testing.TB, box *inbox.Inbox) {
				for name := range snapshot(t, box) {
					if name[0] == '.' {
						require.NoError(t, os.Remove(beside(box, name)))
					}
				}
			}, []string{"one", "two", "three"},
		},
		"journal removed": {
			func(t testing.TB, box *inbox.Inbox) { require.NoError(t, os.Remove(beside(box, journal))) }, []string{"two", "three"},
		},
		"lock removed": {
			func(t testing.TB, box *inbox.Inbox) { require.NoError(t, os.Remove(beside(box, ".inbox-lock"))) }, []string{"two", "three"},
		},
		"entry put in flight": {
			func(t testing.TB, box *inbox.Inbox) { write(t, beside(box, ".in-flight"), fiveMembers(4, 8, "two")) }, []string{"three"},
		},
		"inbox emptied, cursor reset": {
			func(t testing.TB, box *inbox.Inbox) {
				rewrite(t, box.Path(), "new\n")
				write(t, beside(box, ".inbox-offset"), "0")
			}, []string{"new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			acknowledge(t, box, "done")
			c.change(t, box)
			assert.Equal(t, c.want, drain(t, box))
		})
	}
}

// Removing .in-flight says nothing about its entry, which may still be worked on. The entry stays
// in flight, and that is reported once.
func TestInFlightRemoved(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	want := inFlightFile(t, box)
	require.NoError(t, os.Remove(beside(box, ".in-flight")))
	v, err := box.View()
	require.NoError(t, err)
	assert.Equal(t, "one", v.InFlight().Text())
	require.NoError(t, v.Close())
	warnings := in(t, box, func(*inbox.Tx) {})
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], ".in-flight was removed, and written again")
	assert.Equal(t, want, inFlightFile(t, box))
	assert.Empty(t, in(t, box, func(*inbox.Tx) {}))
	assert.Contains(t, restoreTold(t, box), ".in-flight was removed, and written again")
	assert.Len(t, eventsOf(t, box, inbox.EventRemoved), 1)
	assert.Equal(t, []string{"two", "three"}, drain(t, box))
	assert.Len(t, results(t, box), 3)
}

// Removing .responded too is how heartbeat-rs gives an entry back.
func TestInFlightAndRespondedRemoved(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	require.NoError(t, os.Remove(beside(box, ".in-flight")))
	require.NoError(t, os.Remove(beside(box, ".responded")))
	in(t, box, func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		assert.Equal(t, 2, e.Attempt)
	})
	assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
	assert.Equal(t, []string{"its .in-flight and .responded were removed"}, eventsOf(t, box, inbox.EventRedelivered))
	assert.Len(t, results(t, box), 3)
}

// A reset of the cursor does not take back the entry in flight.
func TestCursorResetUnderTheEntryInFlight(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	require.Equal(t, "two", turn(t, box))
	write(t, beside(box, ".inbox-offset"), "0")
	assert.Empty(t, in(t, box, func(tx *inbox.Tx) {
		require.NotNil(t, tx.InFlight())
		assert.Equal(t, "two", tx.InFlight().Text())
		require.NoError(t, tx.GiveBack("", true))
	}))
	assert.Equal(t, "two", drain(t, box)[0])
}

// corruptInFlight are contents that no program should have written.
var corruptInFlight = map[string]string{
	"empty":             "",
	"blank":             " \n",
	"zeros":             "\x00\x00\x00",
	"truncated":         strings.TrimSuffix(fiveMembers(0, 4, "one"), `"}`),
	"two objects":       fiveMembers(0, 4, "one") + fiveMembers(4, 8, "two"),
	"no JSON":           "entry one",
	"array":             "[" + fiveMembers(0, 4, "one") + "]",
	"null":              "null",
	"empty object":      "{}",
	"no raw_line":       `{"entry_id":"x","start_offset":0,"end_offset":4,"delivered_at":"2026-01-02T03:04:05Z"}`,
	"null raw_line":     strings.ReplaceAll(fiveMembers(0, 4, "one"), `"one"`, "null"),
	"offset is text":    strings.ReplaceAll(fiveMembers(0, 4, "one"), `:4,`, `:"4",`),
	"offset is no int":  strings.ReplaceAll(fiveMembers(0, 4, "one"), `:4,`, `:4.5,`),
	"offset too large":  strings.ReplaceAll(fiveMembers(0, 4, "one"), `:4,`, `:9223372036854775808,`),
	"offset negative":   fiveMembers(-4, 4, "one"),
	"offsets reversed":  fiveMembers(4, 0, "one"),
	"raw_line is list":  strings.ReplaceAll(fiveMembers(0, 4, "one"), `"one"`, `["one"]`),
	"time is a number":  strings.ReplaceAll(fiveMembers(0, 4, "one"), `"2026-01-02T03:04:05.678901234+00:00"`, "5"),
	"time is no time":   strings.ReplaceAll(fiveMembers(0, 4, "one"), "2026-01-02T", "yesterday "),
	"attempt is text":   `{"attempt":"1",` + fiveMembers(0, 4, "one")[1:],
	"base64 is none":    `{"raw_base64":"&",` + fiveMembers(0, 4, "one")[1:],
	"detached is text":  `{"detached":"true",` + fiveMembers(0, 4, "one")[1:],
	"session is number": `{"session_id":1,` + fiveMembers(0, 4, "one")[1:],
	"failure is text":   `{"failure":"x",` + fiveMembers(0, 4, "one")[1:],
}

func TestCorruptInFlightIsRefused(t *testing.T) {
	t.Parallel()
	for name, content := range corruptInFlight {
		for _, ours := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, journal %v", name, ours), func(t *testing.T) {
				box := newBox(t, oldContent)
				if ours {
					turn(t, box)
				}
				write(t, beside(box, ".in-flight"), content)
				refuses(t, box, ".in-flight", inbox.ErrCorrupt)
			})
		}
	}
}

func TestCorruptCursorIsRefused(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "blank": "\n", "negative": "-1", "plus": "+1", "text": "abc", "fraction": "1.5", "hex": "0x4",
		"huge": "9223372036854775808", "long": strings.Repeat("9", 100), "two": "4 8", "zeros": "\x00\x00", "grouped": "1_000",
	} {
		for _, ours := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, journal %v", name, ours), func(t *testing.T) {
				box := newBox(t, oldContent)
				if ours {
					turn(t, box)
				}
				write(t, beside(box, ".inbox-offset"), content)
				refuses(t, box, ".inbox-offset", inbox.ErrCorrupt)
			})
		}
	}
}

// refuses checks that the inbox cannot be used because of the file, and that nothing changed.
func refuses(t testing.TB, box *inbox.Inbox, name string, want error) {
	t.Helper()
	before := snapshot(t, box)
	_, err := box.Begin(context.Background())
	require.ErrorIs(t, err, want)
	assert.ErrorContains(t, err, beside(box, name))
	assert.ErrorContains(t, err, "nothing was changed")
	after := snapshot(t, box)
	delete(before, ".inbox-lock")
	delete(after, ".inbox-lock")
	assert.Equal(t, before, after)
}

// With offsets beyond the file, the entry and every line of the file are kept.
func TestInFlightOffsetsOutsideTheFile(t *testing.T) {
	t.Parallel()
	for name, offsets := range map[string][2]int64{
		"beyond the end": {1_000, 1_004},
		"over the end":   {8, 1_000},
		"another line":   {4, 8},
		"amid a line":    {1, 5},
		"huge":           {0, 1<<63 - 1},
		"nothing":        {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			write(t, beside(box, ".in-flight"), fiveMembers(offsets[0], offsets[1], "zero"))
			warnings := in(t, box, func(tx *inbox.Tx) {
				require.NotNil(t, tx.InFlight())
				assert.True(t, tx.InFlight().Detached)
				require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned))
			})
			assert.Len(t, warnings, 1)
			assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
			assert.Equal(t, "zero", deadLetters(t, box)[0].Text)
		})
	}
}
