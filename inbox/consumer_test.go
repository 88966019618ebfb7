package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
)

// answered returns a line of results, and dead one of dead letters, of the n-th second.
func answered(n int) string {
	return fmt.Sprintf(`{"entry_id":"r%d","id":"r%d","metadata":{"pr":%d},"start_offset":%d,"acknowledged_at":"%s","reply":"did %d"}`+"\n", n, n, n, n, second(n), n)
}

func dead(n int) string {
	return fmt.Sprintf(`{"entry_id":"d%d","raw_line":"x","start_offset":%d,"reason":"orphaned","dead_lettered_at":"%s"}`+"\n", n, n, second(n))
}

func second(n int) string { return noon.Add(time.Duration(n) * time.Second).Format(time.RFC3339Nano) }

func consuming(t testing.TB, box *inbox.Inbox, name string, fresh bool) *outcomes.Consuming {
	t.Helper()
	c, err := outcomes.Consume(context.Background(), box, name, fresh, time.Nanosecond)
	require.NoError(t, err)
	return c
}

// take takes up to most outcomes, and returns the ids of their entries.
func take(t testing.TB, c *outcomes.Consuming, most int) (all []string) {
	t.Helper()
	for len(all) < most {
		h, err := c.Next()
		require.NoError(t, err)
		if h == nil {
			break
		}
		require.NoError(t, c.Done())
		all = append(all, h.EntryID)
	}
	return all
}

// takes is take with a new consumer of that name.
func takes(t testing.TB, box *inbox.Inbox, name string, most int) []string {
	t.Helper()
	c := consuming(t, box, name, false)
	defer func() { require.NoError(t, c.Close()) }()
	return take(t, c, most)
}

const every = 1000

// Whatever happens to the files while a consumer is away, nothing is lost or repeated.
func TestConsumerFindsItsPlace(t *testing.T) {
	move := func(t testing.TB, from, to string) { require.NoError(t, os.Rename(from, to)) }
	for name, c := range map[string]struct {
		meanwhile func(t testing.TB, results, letters string)
		missed    bool
		want      string
	}{
		"nothing":       {func(testing.TB, string, string) {}, false, "r5 d6"},
		"more":          {func(t testing.TB, r, _ string) { echo(t, r, answered(7)) }, false, "r5 d6 r7"},
		"half a line":   {func(t testing.TB, r, _ string) { echo(t, r, strings.TrimSuffix(answered(7), "\n")) }, false, "r5 d6"},
		"a foreign one": {func(t testing.TB, r, _ string) { echo(t, r, "no JSON\n\n{}\n"+answered(7)) }, false, "r5 d6 r7"},
		"rotated": {func(t testing.TB, r, l string) {
			move(t, r, r+".1")
			write(t, r, answered(7))
			move(t, l, l+"-20261122")
		}, false, "r5 d6 r7"},
		"rotated twice": {func(t testing.TB, r, _ string) {
			move(t, r, r+".2")
			write(t, r+".1", answered(7)+answered(8))
			write(t, r, answered(9))
		}, false, "r5 d6 r7 r8 r9"},
		"rotated, the clock set back": {func(t testing.TB, r, _ string) {
			back := noon.Add(-time.Hour)
			echo(t, r, answered(-3600))
			move(t, r, r+".1")
			require.NoError(t, os.Chtimes(r+".1", back, back))
			write(t, r, answered(-3599))
		}, false, "r5 r-3600 r-3599 d6"},
		"rotated, older ones there": {func(t testing.TB, r, _ string) {
			write(t, r+".2", answered(-9)+answered(-8))
			move(t, r, r+".1")
		}, false, "r5 d6"},
		"copied and truncated": {func(t testing.TB, r, _ string) {
			write(t, r+".1", read(t, r))
			write(t, r, answered(7))
		}, false, "r5 d6 r7"},
		"trimmed":             {func(t testing.TB, r, _ string) { rewritten(t, r, answered(3)+answered(5)+answered(7)) }, false, "r5 d6 r7"},
		"edited in place":     {func(t testing.TB, r, _ string) { write(t, r, answered(2)+read(t, r)) }, false, "r5 d6"},
		"its line is gone":    {func(t testing.TB, r, _ string) { rewritten(t, r, answered(1)+answered(5)+answered(7)) }, true, "r5 d6 r7"},
		"all gone, then on":   {func(t testing.TB, r, _ string) { rewritten(t, r, answered(7)) }, true, "d6 r7"},
		"a letter was purged": {func(t testing.TB, _, l string) { rewritten(t, l, dead(2)+dead(6)) }, true, "r5 d6"},
		"links and pipes": {func(t testing.TB, r, _ string) {
			require.NoError(t, os.Symlink("/dev/zero", r+".1"))
			require.NoError(t, unix.Mkfifo(r+".2", 0o600))
			write(t, r+".3", strings.Repeat("\x00", 1<<20))
			rewritten(t, r, answered(1)+answered(5))
		}, true, "r5 d6"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			write(t, box.ResultsPath(), answered(1)+answered(3)+answered(5))
			write(t, box.DeadLetterPath(), dead(2)+`{"letter":"0123456789ab","requeued_at":"`+second(2)+`"}`+"\n"+dead(4)+dead(6))
			require.Equal(t, []string{"r1", "d2", "r3", "d4"}, takes(t, box, "mail", 4))
			c.meanwhile(t, box.ResultsPath(), box.DeadLetterPath())

			behind := consumers(t, box)[0]
			n, err := outcomes.Behind(box, behind)
			require.NoError(t, err)
			assert.Len(t, strings.Fields(c.want), n)

			work := consuming(t, box, "mail", false)
			assert.Equal(t, strings.Fields(c.want), take(t, work, every))
			assert.Equal(t, c.missed, len(work.Notes()) > 0)
			assert.Empty(t, take(t, work, every))
			assert.Empty(t, work.Notes(), "it is said once")
			require.NoError(t, work.Close())
			assert.Empty(t, takes(t, box, "mail", every))
		})
	}
}

// rewritten replaces a file with another file.
func rewritten(t testing.TB, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	require.NoError(t, os.Rename(path+".new", path))
}

func consumers(t testing.TB, box *inbox.Inbox) []outcomes.Consumer {
	t.Helper()
	all, err := outcomes.Consumers(box)
	require.NoError(t, err)
	return all
}

// A rotated file is not left before its late lines were read. A place in an absent file becomes a
// place in the next one.
func TestConsumerFollowsARotation(t *testing.T) {
	box := newBox(t, "")
	path := box.ResultsPath()
	c := consuming(t, box, "mail", false)
	defer func() { require.NoError(t, c.Close()) }()
	assert.Empty(t, take(t, c, every))
	write(t, path, answered(1))
	assert.Equal(t, []string{"r1"}, take(t, c, every))
	rename(t, path, path+".1")
	assert.Empty(t, take(t, c, every))
	echo(t, path+".1", answered(2))
	write(t, path, answered(3))
	assert.Equal(t, []string{"r2", "r3"}, take(t, c, every))
	rename(t, path, path+".2")
	write(t, path, "")
	assert.Empty(t, take(t, c, every))
	echo(t, path, answered(4))
	assert.Equal(t, []string{"r4"}, take(t, c, every))
	assert.Empty(t, c.Notes())
}

// A fresh consumer gets only later outcomes.
func TestFreshConsumer(t *testing.T) {
	for name, before := range map[string]string{"nothing before": "", "some before": answered(1) + answered(2)} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			if before != "" {
				write(t, box.ResultsPath(), before)
			}
			c := consuming(t, box, "launch", true)
			assert.Empty(t, take(t, c, every))
			require.NoError(t, c.Close())
			box2 := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
			echo(t, box.ResultsPath(), strings.Replace(answered(9), second(9), box2, 1))
			assert.Equal(t, []string{"r9"}, takes(t, box, "launch", every))
		})
	}
}

// A name has one consumer at a time, and the key of each outcome stays the same.
func TestConsumersOfAName(t *testing.T) {
	box := newBox(t, "")
	write(t, box.ResultsPath(), answered(1)+answered(2))
	c := consuming(t, box, "mail", false)
	_, err := outcomes.Consume(context.Background(), box, "mail", false, time.Nanosecond)
	assert.ErrorIs(t, err, inbox.ErrLocked)
	assert.ErrorIs(t, outcomes.ForgetConsumer(t.Context(), box, "mail"), inbox.ErrLocked)
	assert.Equal(t, []string{"r1", "r2"}, takes(t, box, "chat", every))

	first, err := c.Next()
	require.NoError(t, err)
	require.NoError(t, c.Failed(errors.New("no\x1b[2J way\xff"+strings.Repeat("é", 2000)), time.Minute))
	failing := consumers(t, box)[1].Failing
	assert.Equal(t, 1, failing.Tries)
	assert.False(t, failing.Long(failing.Since))
	assert.True(t, failing.Long(failing.Since.Add(time.Minute)))
	assert.True(t, failing.Long(failing.Since.Add(-time.Hour)), "the clock was set back")
	require.NoError(t, c.Close())

	rename(t, box.ResultsPath(), box.ResultsPath()+".1")
	c = consuming(t, box, "mail", false)
	again, err := c.Next()
	require.NoError(t, err)
	assert.Equal(t, first, again)
	require.NoError(t, c.Done())
	second, err := c.Next()
	require.NoError(t, err)
	assert.NotEqual(t, first.Key, second.Key)
	assert.Nil(t, consumers(t, box)[1].Failing)
	require.NoError(t, c.Close())

	require.NoError(t, outcomes.ForgetConsumer(t.Context(), box, "mail"))
	assert.ErrorContains(t, outcomes.ForgetConsumer(t.Context(), box, "mail"), "no consumer")
	assert.Len(t, consumers(t, box), 1)
	for _, name := range []string{"", "-x", "a/b", "a.b", "é", strings.Repeat("x", 41)} {
		_, err := outcomes.Consume(t.Context(), box, name, false, 0)
		assert.ErrorContains(t, err, "not a valid name for a consumer", name)
	}
}

// Without its mark a letter that stays for a consumer would be open once more, and could be requeued again.
func TestTrimKeepsTheMarksOfLettersThatStay(t *testing.T) {
	box := newBox(t, "")
	require.Empty(t, takes(t, box, "mail", 0))
	l, _, _ := inbox.ParseLetter([]byte(dead(2)))
	write(t, box.DeadLetterPath(), dead(2)+`{"letter":"`+l.Letter+`","entry_id":"d2","of":"orphaned","requeued_at":"`+second(2)+`"}`+"\n")

	trim(t, box, noon.Add(time.Hour))
	open, err := outcomes.CountLetters(box)
	require.NoError(t, err)
	assert.Zero(t, open.All())
	assert.Equal(t, []string{"d2"}, takes(t, box, "mail", every))
}

// Lines that a consumer has not had are not trimmed, nor is the line that marks its place.
func TestTrimKeepsWhatConsumersHaveNotHad(t *testing.T) {
	box := newBox(t, "")
	closed := func(n int) string {
		l, _, _ := inbox.ParseLetter([]byte(dead(n)))
		return `{"letter":"` + l.Letter + `","entry_id":"d` + fmt.Sprint(n) + `","of":"orphaned","requeued_at":"` + second(n) + `"}` + "\n"
	}
	write(t, box.ResultsPath(), answered(1)+answered(3)+answered(5)+answered(7))
	write(t, box.DeadLetterPath(), dead(2)+closed(2)+dead(4)+closed(4)+dead(6)+closed(6))
	require.Equal(t, []string{"r1", "d2", "r3"}, takes(t, box, "mail", 3))
	require.Equal(t, []string{"r1", "d2", "r3", "d4", "r5"}, takes(t, box, "chat", 5))

	n := trim(t, box, noon.Add(time.Hour))
	assert.Equal(t, 1, n.Results)
	assert.Equal(t, 0, n.DeadLetters)
	require.Len(t, n.Warnings, 2)
	assert.Contains(t, n.Warnings[0], "stay, since chat or mail has yet to be handed them")
	assert.Equal(t, answered(3)+answered(5)+answered(7), read(t, box.ResultsPath()))
	assert.Equal(t, []string{"d4", "r5", "d6", "r7"}, takes(t, box, "mail", every))
	assert.Equal(t, []string{"d6", "r7"}, takes(t, box, "chat", every))

	n = trim(t, box, noon.Add(time.Hour))
	assert.Empty(t, n.Warnings)
	assert.Equal(t, answered(7), read(t, box.ResultsPath()))
	for _, name := range []string{"mail", "chat"} {
		assert.Empty(t, takes(t, box, name, every))
		require.NoError(t, outcomes.ForgetConsumer(t.Context(), box, name))
	}
	trim(t, box, noon.Add(time.Hour))
	assert.Empty(t, read(t, box.ResultsPath()))
	assert.Empty(t, read(t, box.DeadLetterPath()))
}

// A file that does not say how far a consumer has come keeps everything, and is named.
func TestBadConsumerFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"no JSON":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"another's": func(path string) error { return os.WriteFile(path, []byte(`{"name":"chat"}`), 0o600) },
		"huge":      func(path string) error { return os.Truncate(path, 1<<40) },
		"a FIFO":    func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"a link":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		"negative place": func(path string) error {
			return os.WriteFile(path, []byte(`{"name":"mail","results":{"end":-5}}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			write(t, box.ResultsPath(), answered(1)+answered(2))
			takes(t, box, "mail", every)
			require.NoError(t, spoil(box.Dir()+"/.consumer-mail"))
			require.Len(t, consumers(t, box), 1)
			assert.Error(t, consumers(t, box)[0].Err)
			_, err := outcomes.Consume(t.Context(), box, "mail", false, 0)
			assert.Error(t, err)
			assert.Equal(t, 0, trim(t, box, noon.Add(time.Hour)).Results)
			require.NoError(t, outcomes.ForgetConsumer(t.Context(), box, "mail"))
			assert.Equal(t, []string{"r1", "r2"}, takes(t, box, "mail", every))
		})
	}
}

// On a full disk a taken outcome counts, and is recorded once there is room.
func TestConsumerOnAFullDisk(t *testing.T) {
	box := newBox(t, "")
	write(t, box.ResultsPath(), answered(1)+answered(2))
	c := consuming(t, box, "mail", false)
	_, err := c.Next()
	require.NoError(t, err)
	stop := crash.Observe(t, crash.FailFrom(1, unix.ENOSPC, disk.OpWrite))
	assert.ErrorIs(t, c.Done(), unix.ENOSPC)
	stop()
	h, err := c.Next()
	require.NoError(t, err)
	assert.Equal(t, "r2", h.EntryID)
	require.NoError(t, c.Save())
	require.NoError(t, c.Close())
	assert.Equal(t, []string{"r2"}, takes(t, box, "mail", every))
}

// Removing the lock's file ends the work, since another process may have taken the lock.
func TestConsumerWithoutItsLock(t *testing.T) {
	box := newBox(t, "")
	write(t, box.ResultsPath(), answered(1)+answered(2))
	c := consuming(t, box, "mail", false)
	require.Equal(t, []string{"r1"}, take(t, c, 1))
	require.NoError(t, os.Remove(box.Dir()+"/.consumer-mail.lock"))
	_, err := c.Next()
	assert.ErrorIs(t, err, outcomes.ErrConsumerGone)
	assert.Equal(t, []string{"r2"}, takes(t, box, "mail", every))
}

// The number of consumers of an inbox is limited.
func TestTooManyConsumers(t *testing.T) {
	box := newBox(t, "")
	for n := range 32 {
		takes(t, box, fmt.Sprint("c", n), 0)
	}
	_, err := outcomes.Consume(t.Context(), box, "more", false, 0)
	assert.ErrorContains(t, err, "may have no more")
}

// A kill at any write loses nothing. At most the outcome in hand comes again, with the same key.
func TestConsumerCrashes(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			box := open(t, dir+"/inbox.jsonl")
			in(t, box, func(*inbox.Tx) {})
			write(t, box.ResultsPath(), answered(1)+answered(3)+answered(5))
			write(t, box.DeadLetterPath(), dead(2)+dead(4))
		},
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "consume", Args: []string{dir + "/inbox.jsonl"}}
		},
	}
	check := func(t *testing.T, c crash.Crash) {
		before := strings.Split(strings.TrimSuffix(c.Result.Stdout, "\n"), "\n")
		again := crash.Child(t, "consume", []string{c.Dir + "/inbox.jsonl"})
		require.Zero(t, again.ExitCode, again.Stderr)
		after := strings.Split(strings.TrimSuffix(again.Stdout, "\n"), "\n")
		if len(after) > 0 && len(before) > 0 && after[0] == before[len(before)-1] {
			after = after[1:]
		}
		var ids []string
		for _, line := range append(before, after...) {
			if id, _, _ := strings.Cut(line, " "); id != "" {
				ids = append(ids, id)
			}
		}
		assert.Equal(t, []string{"r1", "d2", "r3", "d4", "r5"}, ids)
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
	t.Run("broken disk", func(t *testing.T) { s.EveryFail(t, unix.EIO, check) })
}

// The power fails while entries are answered and their results taken: each result is delivered, and
// none that is known as taken comes again.
func TestConsumerPowerLoss(t *testing.T) {
	dir := t.TempDir()
	now := noon
	opened := func(dir string) *inbox.Inbox {
		box, err := inbox.Open(dir+"/inbox.jsonl", inbox.Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
		require.NoError(t, err)
		return box
	}
	box := opened(dir)
	write(t, box.Path(), "one\ntwo\nthree\nfour\n")
	require.NoError(t, consuming(t, box, "c", false).Close())
	rec := crash.Record(t, dir, func() {
		for n := range 4 {
			deliver(t, box)
			in(t, box, func(tx *inbox.Tx) {
				if n == 1 {
					require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned))
				} else {
					require.NoError(t, tx.Acknowledge("did it"))
				}
			})
			c := consuming(t, box, "c", false)
			h, err := c.Next()
			require.NoError(t, err)
			crash.Promise("handed over " + h.EntryID)
			require.NoError(t, c.Done())
			crash.Promise("taken " + h.EntryID)
			require.NoError(t, c.Close())
		}
	})
	crash.EveryPowerLoss(t, rec, 1, 3, func(t *testing.T, c crash.Crash) {
		reboot(t, "after the power loss")
		box := opened(c.Dir)
		again := takes(t, box, "c", every)
		for _, id := range again {
			assert.NotContains(t, c.Promised, "taken "+id)
		}
		settled, err := os.ReadFile(box.ResultsPath())
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		letters, err := os.ReadFile(box.DeadLetterPath())
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		for line := range strings.Lines(string(settled) + string(letters)) {
			_, id, _ := strings.Cut(line, `"entry_id":"`)
			id, _, _ = strings.Cut(id, `"`)
			assert.True(t, slices.Contains(again, id) || slices.Contains(c.Promised, "handed over "+id), "%s was handed to nobody", line)
		}
	})
}
