package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/long"
)

// all runs f n times at once, and returns the errors joined.
func all(n int, f func(i int) error) error {
	errs := make([]error, n)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			errs[i] = f(i)
		})
	}
	start.Done()
	done.Wait()
	return errors.Join(errs...)
}

// appendRaw is `echo >>`: one write, without a lock.
func appendRaw(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// A hundred senders and twenty raw writers work while the queue is drained. Each entry is answered
// once, and each sender's entries in order.
func TestConcurrentAppenders(t *testing.T) {
	t.Parallel()
	const each = 3
	senders, raws := long.Rounds(30, 100), long.Rounds(6, 20)
	path := newBox(t, "").Path()
	box, err := inbox.Open(path, inbox.Options{LockWait: 5 * time.Minute}) // all of them at once, on a busy machine
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		written <- all(senders+raws, func(i int) error {
			for n := range each {
				text := fmt.Sprintf("%d.%d %s", i, n, strings.Repeat("x", 100*(i%40)))
				if i >= senders {
					if err := appendRaw(path, text); err != nil {
						return err
					}
					continue
				}
				// The settle time is so long that no writer is taken for dead.
				if _, err := box.Append(context.Background(), inbox.Message{Text: text}, time.Minute); err != nil {
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
	require.Len(t, got, (senders+raws)*each)
	seen := map[string]int{}
	for _, text := range got {
		name, _, _ := strings.Cut(text, " ")
		who, n, _ := strings.Cut(name, ".")
		assert.Equal(t, fmt.Sprint(seen[who]), n, "of writer %s", who)
		seen[who]++
	}
	assert.Len(t, results(t, box), len(got))
	assert.Empty(t, deadLetters(t, box))
}

// drainWhole is drain while others write.
func drainWhole(t testing.TB, box *inbox.Inbox) (texts []string) {
	t.Helper()
	for more := true; more; {
		in(t, box, func(tx *inbox.Tx) {
			if tx.InFlight() != nil {
				require.NoError(t, tx.Acknowledge("done"))
			}
			e, err := tx.Next(inbox.Mark{})
			if errors.Is(err, inbox.ErrEmpty) || errors.Is(err, inbox.ErrTorn) {
				more = false
				return
			}
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{})
			require.NoError(t, err)
			texts = append(texts, e.Text)
		})
	}
	return texts
}

// However many processes send one id at once, it is appended once.
func TestConcurrentAppendsOfOneID(t *testing.T) {
	box := newBox(t, "")
	receipts := make([]inbox.Receipt, 40)
	require.NoError(t, all(len(receipts), func(i int) (err error) {
		receipts[i], err = box.Append(context.Background(), inbox.Message{ID: "same", Text: "x"}, time.Minute)
		return err
	}))
	appended := slices.DeleteFunc(receipts, func(r inbox.Receipt) bool { return !r.Appended })
	assert.Len(t, appended, 1)
	assert.Equal(t, []string{"x"}, drain(t, box))
}

// Random ids differ.
func TestAppendWithoutIDs(t *testing.T) {
	box := newBox(t, "")
	first, second := send(t, box, inbox.Message{Text: "x"}), send(t, box, inbox.Message{Text: "x"})
	assert.NotEqual(t, first.ID, second.ID)
	assert.NotEqual(t, first.EntryID, second.EntryID)
	assert.Equal(t, []string{"x", "x"}, drain(t, box))
}

// No entry is answered twice by concurrent consumers.
func TestConcurrentConsumers(t *testing.T) {
	box := newBox(t, strings.Repeat("entry\n", 60))
	require.NoError(t, all(8, func(int) error {
		for {
			tx, err := box.Begin(context.Background())
			if err != nil {
				return err
			}
			e, err := tx.Next(inbox.Mark{})
			if err == nil {
				_, err = tx.Deliver(e, inbox.Recipient{})
			}
			if err == nil {
				err = errors.Join(tx.Acknowledge("done"), tx.Commit())
			}
			if err = errors.Join(err, tx.Close()); err != nil {
				if errors.Is(err, inbox.ErrEmpty) {
					return nil
				}
				return err
			}
		}
	}))
	var got []int64
	for _, r := range results(t, box) {
		got = append(got, r.StartOffset)
	}
	require.Len(t, got, 60)
	assert.True(t, slices.IsSorted(got))
	assert.Len(t, slices.Compact(got), 60)
}
