package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

func sendAll(t testing.TB, box *inbox.Inbox, all ...inbox.Message) []inbox.Receipt {
	t.Helper()
	receipts, err := box.AppendAll(context.Background(), all, 0)
	require.NoError(t, err)
	require.Len(t, receipts, len(all))
	return receipts
}

// numbered returns messages with their number as name and text.
func numbered(n int) (all []inbox.Message) {
	for i := range n {
		all = append(all, inbox.Message{ID: fmt.Sprint(i), Text: fmt.Sprint("entry ", i)})
	}
	return all
}

// checkReceipts checks that each receipt's bytes are the entry's line.
func checkReceipts(t testing.TB, box *inbox.Inbox, receipts []inbox.Receipt) {
	t.Helper()
	content := read(t, box.Path())
	for _, r := range receipts {
		require.True(t, r.Appended)
		require.True(t, 0 <= r.Start && r.Start < r.End && r.End <= int64(len(content)), "[%d,%d) of %d", r.Start, r.End, len(content))
		line, ok := strings.CutSuffix(content[r.Start:r.End], "\n")
		require.True(t, ok, "%q", line)
		require.Equal(t, r.EntryID, sha256Hex(line))
		require.True(t, r.Start == 0 || content[r.Start-1] == '\n')
	}
}

// commits returns the number of records that f adds to the journal.
func commits(t testing.TB, box *inbox.Inbox, f func()) (records int) {
	t.Helper()
	stop := crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpWrite && op.Path == beside(box, journal) && !strings.Contains(string(op.Data), `{"followed"`) {
			records++
		}
		return nil
	})
	defer stop()
	f()
	return records
}

func TestAppendAll(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "lines": "one\ntwo\n", "torn": "one\ntorn", "torn blank": "one\n  ",
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, content)
			still(t, box)
			var receipts []inbox.Receipt
			n := commits(t, box, func() { receipts = sendAll(t, box, numbered(50)...) })
			assert.Equal(t, 1, n, "one commit")
			checkReceipts(t, box, receipts)
			got := drain(t, box)
			var want []string
			for _, m := range numbered(50) {
				want = append(want, m.Text)
			}
			assert.Equal(t, append(strings.Fields(content), want...), got)
			assert.Empty(t, deadLetters(t, box))
		})
	}
}

func TestAppendAllOfNothing(t *testing.T) {
	box := open(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	receipts, err := box.AppendAll(context.Background(), nil, 0)
	require.NoError(t, err)
	assert.Empty(t, receipts)
	assert.NoFileExists(t, box.Path())
}

// A batch of more than a mebibyte, or of very many lines, is committed in parts. The journal is
// small again afterwards.
func TestAppendAllInParts(t *testing.T) {
	for name, c := range map[string]struct {
		n, size, parts int
	}{
		"many lines":  {10_000, 1, 3},
		"long lines":  {30, 100 << 10, 3},
		"a long one":  {3, 3 << 20, 3},
		"just a part": {4096, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "first\n")
			all := numbered(c.n)
			for i := range all {
				all[i].Text = strings.Repeat("x", c.size) + all[i].ID
			}
			var receipts []inbox.Receipt
			n := commits(t, box, func() { receipts = sendAll(t, box, all...) })
			assert.Equal(t, c.parts, n)
			checkReceipts(t, box, receipts)
			for i := 1; i < len(receipts); i++ {
				require.Equal(t, receipts[i-1].End, receipts[i].Start, "one behind the other")
			}
			turn(t, box)
			acknowledge(t, box, "")
			assert.LessOrEqual(t, fileSize(t, beside(box, journal)), int64(256<<10))
			assert.EqualValues(t, c.n, backlog(t, box).Entries)
			again := sendAll(t, box, all...)
			for i, r := range again {
				require.Equal(t, inbox.FoundQueued, r.Found)
				require.Equal(t, []int64{receipts[i].Start, receipts[i].End}, []int64{r.Start, r.End})
			}
		})
	}
}

// One message that cannot be appended keeps the whole batch out.
func TestAppendAllRefuses(t *testing.T) {
	year10000 := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		m    inbox.Message
		says string
	}{
		"no text":           {inbox.Message{}, "empty"},
		"no UTF-8":          {inbox.Message{Text: "\xff"}, "not UTF-8"},
		"metadata":          {inbox.Message{Text: "x", Metadata: map[string]any{"id": 1}}, `"id"`},
		"sent_at":           {inbox.Message{Text: "x", Metadata: map[string]any{"sent_at": "now"}}, `"sent_at"`},
		"not_before":        {inbox.Message{Text: "x", Metadata: map[string]any{"not_before": "now"}}, `"not_before"`},
		"expires_at":        {inbox.Message{Text: "x", Metadata: map[string]any{"expires_at": "now"}}, `"expires_at"`},
		"no JSON":           {inbox.Message{Text: "x", Metadata: map[string]any{"f": func() {}}}, `"f"`},
		"a time too far":    {inbox.Message{Text: "x", NotBefore: year10000}, "not_before"},
		"an expiry too far": {inbox.Message{Text: "x", Expires: year10000}, "expires_at"},
	} {
		for _, at := range []int{0, 1, 4} {
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				box := newBox(t, oldContent)
				all := numbered(5)
				all[3].NotBefore = noon.Add(time.Hour)
				all[at] = c.m
				before := snapshot(t, box)
				receipts, err := box.AppendAll(context.Background(), all, 0)
				require.ErrorContains(t, err, c.says)
				assert.ErrorContains(t, err, fmt.Sprintf("entry %d:", at+1))
				assert.Empty(t, receipts)
				assert.Equal(t, before, snapshot(t, box))
			})
		}
	}
}

// A known name, wherever it is, is not appended; nor is the second use of a name within the batch.
func TestAppendAllLeavesOutKnownNames(t *testing.T) {
	box := newBox(t, "{\"prompt\":\"x\",\"id\":\"answered\"}\n{\"prompt\":\"x\",\"id\":\"dead\"}\n{\"prompt\":\"x\",\"id\":\"in flight\"}\n{\"prompt\":\"x\",\"id\":\"queued\"}\n")
	settle(t, box, answer(""))
	settle(t, box, orphan)
	deliver(t, box)
	later := noon.Add(time.Hour)
	send(t, box, inbox.Message{Text: "x", ID: "scheduled", NotBefore: later})
	line, id := read(t, box.Path()), func(s string) inbox.Message { return inbox.Message{ID: s, Text: "x"} }
	receipts := sendAll(t, box, id("answered"), id("new"), id("in flight"), id("queued"), id("new"), id("scheduled"), id("dead"),
		inbox.Message{ID: "later", Text: "x", NotBefore: later}, id("later"))
	var found []string
	for _, r := range receipts {
		found = append(found, r.Found)
		assert.Equal(t, r.Found == "", r.Appended)
	}
	assert.Equal(t, []string{inbox.FoundAnswered, "", inbox.FoundInFlight, inbox.FoundQueued, inbox.FoundQueued, inbox.FoundScheduled, "", "", inbox.FoundScheduled}, found)
	for i, want := range map[int]string{2: `{"prompt":"x","id":"in flight"}`, 3: `{"prompt":"x","id":"queued"}`} {
		r := receipts[i]
		assert.Equal(t, want+"\n", line[r.Start:r.End])
		assert.Equal(t, sha256Hex(want), r.EntryID)
	}
	assert.Equal(t, receipts[1].EntryID, receipts[4].EntryID)
	assert.Equal(t, receipts[7].EntryID, receipts[8].EntryID)
	for _, i := range []int{5, 7, 8} {
		require.NotNil(t, receipts[i].NotBefore, i)
		assert.True(t, later.Equal(*receipts[i].NotBefore))
	}
	checkReceipts(t, box, []inbox.Receipt{receipts[1], receipts[6]})
	acknowledge(t, box, "")
	assert.Equal(t, []string{"x", "x", "x"}, drain(t, box))
}

// Producers without the lock may write at any moment. Receipts are right all the same.
func TestReceiptsAmidRawWriters(t *testing.T) {
	for when, is := range map[string]func(box *inbox.Inbox, op disk.Op) bool{
		"before the commit": func(box *inbox.Inbox, op disk.Op) bool {
			return op.Kind == disk.OpWrite && op.Path == beside(box, journal)
		},
		"after the commit": func(box *inbox.Inbox, op disk.Op) bool {
			return op.Kind == disk.OpSync && op.Path == beside(box, journal)
		},
		"just before the lines":    func(box *inbox.Inbox, op disk.Op) bool { return op.Kind == disk.OpWrite && op.Path == box.Path() },
		"between lines and cursor": func(box *inbox.Inbox, op disk.Op) bool { return op.Path == beside(box, ".inbox-offset") },
	} {
		for _, wrote := range []string{"raw\n", "raw\nraw\n", "{\"prompt\":\"a long line, " + strings.Repeat("x", 5000) + "\"}\n"} {
			for _, n := range []int{1, 2, 100} {
				t.Run(fmt.Sprintf("%s %.10q %d", when, wrote, n), func(t *testing.T) {
					box := newBox(t, "one\n")
					turn(t, box)
					once := true
					stop := crash.Observe(t, func(op disk.Op) error {
						if once && is(box, op) {
							once = false
							echo(t, box.Path(), wrote)
						}
						return nil
					})
					receipts := sendAll(t, box, numbered(n)...)
					stop()
					require.False(t, once)
					checkReceipts(t, box, receipts)
					assert.Equal(t, int64(n+1+strings.Count(wrote, "\n")), int64(strings.Count(read(t, box.Path()), "\n")), "each line once")
					assert.EqualValues(t, n+strings.Count(wrote, "\n"), backlog(t, box).Entries)
				})
			}
		}
	}
}

// A line that somebody begins while the batch is committed stays at the end.
func TestBatchBehindALineThatIsBeingWritten(t *testing.T) {
	box := newBox(t, "one\n")
	stop := crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpSync && op.Path == beside(box, journal) {
			echo(t, box.Path(), "printf")
		}
		return nil
	})
	receipts := sendAll(t, box, numbered(3)...)
	stop()
	checkReceipts(t, box, receipts)
	assert.Equal(t, []string{"one", "entry 0", "entry 1", "entry 2", "printf"}, drainStill(t, box))
}

// Many senders' batches and raw writers' lines at once: each entry is answered once, and no other
// sender's lines come between those of a batch.
func TestConcurrentBatches(t *testing.T) {
	t.Parallel()
	const batches, size = 3, 7
	senders, raws := long.Rounds(8, 20), long.Rounds(4, 10)
	box := newBox(t, "")
	written := make(chan error, 1)
	go func() {
		written <- all(senders+raws, func(i int) error {
			for n := range batches {
				if i >= senders {
					if err := appendRaw(box.Path(), fmt.Sprintf("raw %d", n)); err != nil {
						return err
					}
					continue
				}
				var batch []inbox.Message
				for k := range size {
					batch = append(batch, inbox.Message{Text: fmt.Sprintf("%d.%d.%d %s", i, n, k, strings.Repeat("x", 100*(i+k)))})
				}
				if _, err := box.AppendAll(context.Background(), batch, time.Minute); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	var got []string
	for running := true; running; {
		select {
		case err := <-written:
			require.NoError(t, err)
			running = false
		default:
		}
		got = append(got, drainWhole(t, box)...)
	}
	require.Len(t, got, (senders*size+raws)*batches)
	batch, next := "", 0
	for _, text := range got {
		name, _, _ := strings.Cut(text, " ")
		if name == "raw" {
			continue
		}
		of, k, _ := cutLast(name, ".")
		if next == 0 {
			batch = of
		}
		require.Equal(t, []string{batch, fmt.Sprint(next)}, []string{of, k})
		next = (next + 1) % size
	}
	assert.Empty(t, deadLetters(t, box))
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// While a batch waits for a torn line, an entry that it found may become a dead letter.
func TestBatchThatWaitedLooksAgain(t *testing.T) {
	box := newBox(t, "{\"prompt\":\"x\",\"id\":\"job\"}\n")
	deliver(t, box)
	echo(t, box.Path(), "torn")
	ctx := &waiting{Context: t.Context(), waits: make(chan struct{})}
	done := make(chan inbox.Receipt, 1)
	go func() {
		all, err := box.AppendAll(ctx, []inbox.Message{{ID: "job", Text: "x"}, {ID: "other", Text: "y"}}, never)
		if err != nil || len(all) == 0 {
			all = []inbox.Receipt{{ID: fmt.Sprint(err)}}
		}
		done <- all[0]
	}()
	<-ctx.waits
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, orphan(tx)) })
	echo(t, box.Path(), " no more\n")
	r := <-done
	assert.True(t, r.Appended, "%+v", r)
	assert.Equal(t, []string{"torn no more", "x", "y"}, drain(t, box))
}

// The files must not fall two commits behind, since only the last commit is repaired: a full disk
// that lets the second commit through must not lose the first one's lines.
func TestNoCommitBeforeTheLastOneFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		first func(*inbox.Tx) error
		file  string
	}{
		"answered":      {answer("done"), ".results.jsonl"},
		"dead-lettered": {orphan, ".dead-letter.jsonl"},
	} {
		for how, passes := range map[string]bool{"the disk stays full": false, "the disk has space again": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				box := newBox(t, oldContent)
				turn(t, box)
				full := true
				stop := crash.Observe(t, func(op disk.Op) error {
					if full && op.Kind == disk.OpWrite && op.Path == beside(box, c.file) {
						return unix.ENOSPC
					}
					return nil
				})
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				require.NoError(t, c.first(tx))
				require.NoError(t, tx.Commit())
				require.Len(t, tx.Warnings(), 1)
				full = !passes
				e, err := tx.Next(inbox.Mark{})
				require.NoError(t, err)
				_, err = tx.Deliver(e, inbox.Recipient{})
				require.NoError(t, err)
				err = tx.Commit()
				if passes {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, unix.ENOSPC)
				}
				require.NoError(t, tx.Close())
				stop()
				in(t, box, func(*inbox.Tx) {})
				assert.Equal(t, 1, len(results(t, box))+len(deadLetters(t, box)))
				want := view{Cursor: 4, Next: "two"}
				if passes {
					want = view{Cursor: 4, InFlight: "two"}
				}
				got, err := look(t, box)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			})
		}
	}
}

// After a kill between a commit and its lines, all of the lines appear, once.
func TestBatchIsMadeGood(t *testing.T) {
	t.Parallel()
	const n = 5
	for name, spoil := range map[string]func(content string, receipts []inbox.Receipt) string{
		"nothing written":   func(c string, r []inbox.Receipt) string { return c[:r[0].Start] },
		"one line written":  func(c string, r []inbox.Receipt) string { return c[:r[0].End] },
		"torn amid a line":  func(c string, r []inbox.Receipt) string { return c[:r[2].Start+5] },
		"last newline":      func(c string, r []inbox.Receipt) string { return c[:len(c)-1] },
		"all written":       func(c string, _ []inbox.Receipt) string { return c },
		"raw lines instead": func(c string, r []inbox.Receipt) string { return c[:r[0].Start] + "raw\n" },
		"raw lines behind":  func(c string, _ []inbox.Receipt) string { return c + "raw\n" },
		"zeros instead": func(c string, r []inbox.Receipt) string {
			return c[:r[1].Start] + strings.Repeat("\x00", int(r[n-1].End-r[1].Start))
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n")
			receipts := sendAll(t, box, numbered(n)...)
			content := read(t, box.Path())
			f, err := os.OpenFile(box.Path(), os.O_WRONLY, 0)
			require.NoError(t, err)
			spoilt := spoil(content, receipts)
			_, err = f.WriteAt([]byte(spoilt), 0)
			require.NoError(t, err)
			require.NoError(t, errors.Join(f.Truncate(int64(len(spoilt))), f.Close()))
			forget(t, box)
			want := []string{"one"}
			if strings.Contains(name, "instead") && strings.Contains(name, "raw") {
				want = append(want, "raw")
			}
			for _, m := range numbered(n) {
				want = append(want, m.Text)
			}
			if strings.Contains(name, "behind") {
				want = append(want, "raw")
			}
			assert.Equal(t, want, drain(t, box))
		})
	}
}
