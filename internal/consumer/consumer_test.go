package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/consumer"
)

// A command that fails is a sentence, and what it did not take stays the next one.
func TestCommandFails(t *testing.T) {
	for name, c := range map[string]struct {
		command, says string
		limit         time.Duration
	}{
		"status":   {"echo first; echo why >&2; exit 3", `hand over the result of a: the command of --exec failed: exit status 3: it printed why`, time.Minute},
		"screen":   {`printf '\033[2J\033]0;x\007evil'; exit 1`, "evil", time.Minute},
		"floods":   {"yes | head -c 20000000; exit 1", "it printed y", time.Minute},
		"hangs":    {"exec sleep 1000", "took longer than", 100 * time.Millisecond},
		"forks":    {"sleep 1001 & setsid sleep 1001 & sleep 1001", "took longer than", 100 * time.Millisecond},
		"no stdin": {"exec <&-; exit 1", "exit status 1", time.Minute},
		"missing":  {"/no/such/thing", "127", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.answer(`{"id":"a","prompt":"x","big":"` + strings.Repeat("x", 1<<20) + `"}`)
			o := r.options("export OF=" + r.dir + "; " + c.command)
			o.TimeLimit = c.limit
			n, err := consumer.Run(t.Context(), r.box, o)
			require.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "\x1b")
			assert.Zero(t, n)
			f := r.state().Failing
			require.NotNil(t, f)
			assert.Contains(t, f.Error, c.says)
			assert.False(t, runs("1001"))
			n, err = consumer.Run(t.Context(), r.box, r.options(log))
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			assert.Nil(t, r.state().Failing)
		})
	}
}

// runs reports whether any process has been started with that argument.
func runs(arg string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(all, func(path string) bool {
		text, _ := os.ReadFile(path)
		return string(text) == "sleep\x00"+arg+"\x00"
	})
}

// With Follow it goes on with what comes, tries again what failed, and at the end hands over
// what is left.
func TestFollows(t *testing.T) {
	r := newRig(t)
	r.answer(`{"id":"a","prompt":"x"}`)
	end := make(chan struct{})
	o := r.options(`[ -e ok ] || { echo not yet; exit 1; }; ` + log)
	o.Follow, o.End = true, end
	done := make(chan error, 1)
	go func() {
		_, err := consumer.Run(context.Background(), r.box, o)
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(r.said(), "not yet") }, 5*time.Minute, 10*time.Millisecond)
	assert.True(t, r.state().Failing.Long(time.Now()))
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "ok"), nil, 0o600))
	require.Eventually(t, func() bool { all, _ := r.logged(); return len(all) == 1 }, 5*time.Minute, 10*time.Millisecond)
	r.answer(`{"id":"b","prompt":"x"}`)
	require.Eventually(t, func() bool { all, _ := r.logged(); return len(all) == 2 }, 5*time.Minute, 10*time.Millisecond)
	r.setAside(`{"id":"c","prompt":"x"}`)
	close(end)
	require.NoError(t, <-done)
	all, _ := r.logged()
	assert.Equal(t, []string{"result a", "result b", "dead_letter c"}, all)
}

// At the end what fails is tried once, and no more.
func TestEndsWhileItFails(t *testing.T) {
	r := newRig(t)
	r.answer(`{"id":"a","prompt":"x"}`)
	end := make(chan struct{})
	close(end)
	o := r.options("echo >>tries; exit 1")
	o.Follow, o.End = true, end
	_, err := consumer.Run(t.Context(), r.box, o)
	require.ErrorContains(t, err, "exit status 1")
	tries, err := os.ReadFile(filepath.Join(r.dir, "tries"))
	require.NoError(t, err)
	assert.Len(t, tries, 1)
}

// Whoever ends it ends the command, which says nothing of that.
func TestEndedWhileItRuns(t *testing.T) {
	r := newRig(t)
	r.answer(`{"id":"a","prompt":"x"}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	o := r.options("echo >>tries; exec sleep 1002")
	done := make(chan error, 1)
	go func() {
		_, err := consumer.Run(ctx, r.box, o)
		done <- err
	}()
	require.Eventually(t, func() bool { return runs("1002") }, 5*time.Minute, 10*time.Millisecond)
	_, err := consumer.Run(t.Context(), r.box, o)
	assert.ErrorIs(t, err, inbox.ErrLocked)
	cancel(fmt.Errorf("a signal"))
	require.EqualError(t, <-done, "a signal")
	assert.False(t, runs("1002"))
	assert.Nil(t, r.state().Failing)
}

// Killed at any moment, while results are rotated and trimmed, it loses nothing, changes no order
// and repeats at most the one in hand, with the same key.
func TestKilledAtAnyMoment(t *testing.T) {
	const entries = 200
	r := newRig(t)
	r.known("mail")
	var want []string
	for n := range entries {
		id := strconv.Itoa(n)
		if n%10 == 7 {
			r.setAside(`{"id":"` + id + `","prompt":"x"}`)
			want = append(want, "dead_letter "+id)
			continue
		}
		r.answer(`{"id":"` + id + `","prompt":"x"}`)
		want = append(want, "result "+id)
		if n%40 == 39 {
			path := r.box.ResultsPath()
			require.NoError(t, os.Rename(path, path+"."+id))
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	kills, rotations := 0, 0
	for over := false; !over; {
		c := exec.Command("consume", r.box.Path(), "mail", log)
		var said strings.Builder
		c.Stderr = &said
		require.NoError(t, c.Start())
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		before, _ := r.logged()
		after := len(before) + 1 + chance.IntN(12)
		more := time.Duration(chance.IntN(8000)) * time.Microsecond
		for killed := false; !killed && !over; {
			select {
			case err := <-ended:
				require.NoError(t, err, said.String())
				over = true
			case <-time.After(time.Millisecond):
				if now, _ := r.logged(); len(now) >= after {
					<-time.After(more) // at another moment of the one in hand
					require.NoError(t, c.Process.Kill())
					killed = true
					<-ended
					kills++
				}
			}
		}
		if kills%4 == 1 {
			_, err := outcomes.Trim(t.Context(), r.box, time.Now().Add(time.Hour))
			require.NoError(t, err)
		} else if _, err := os.Stat(r.box.ResultsPath()); kills%4 == 3 && err == nil {
			rotations++
			require.NoError(t, os.Rename(r.box.ResultsPath(), r.box.ResultsPath()+".r"+strconv.Itoa(rotations)))
		}
	}
	all, keys := r.logged()
	repeats := 0
	for i := len(all) - 1; i > 0; i-- {
		if all[i] == all[i-1] {
			assert.Equal(t, keys[i-1], keys[i])
			repeats++
			all, keys = slices.Delete(all, i, i+1), slices.Delete(keys, i, i+1)
		}
	}
	assert.Equal(t, want, all)
	slices.Sort(keys)
	assert.Len(t, slices.Compact(keys), entries)
	assert.LessOrEqual(t, repeats, kills)
	t.Logf("%d kills, %d repeats, %d rotations", kills, repeats, rotations)
}

// Two of different names, beside whoever answers, are each handed all of it.
func TestTwoBesideWhoAnswers(t *testing.T) {
	r := newRig(t)
	end := make(chan struct{})
	var work sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		o := r.options(`printf 'x %s\n' "$HEARTBEAT_ID" >>log.` + name)
		o.Name, o.Follow, o.End = name, true, end
		r.known(name)
		work.Go(func() {
			_, err := consumer.Run(t.Context(), r.box, o)
			assert.NoError(t, err)
		})
	}
	want := ""
	for n := range 40 {
		id := strconv.Itoa(n)
		if want += "x " + id + "\n"; n%5 == 4 {
			r.setAside(`{"id":"` + id + `","prompt":"x"}`)
		} else {
			r.answer(`{"id":"` + id + `","prompt":"x"}`)
		}
		if n%15 == 14 {
			require.NoError(t, os.Rename(r.box.ResultsPath(), r.box.ResultsPath()+"."+id))
		}
		if n%15 == 8 {
			_, err := outcomes.Trim(t.Context(), r.box, time.Now().Add(time.Hour))
			require.NoError(t, err)
		}
	}
	close(end)
	work.Wait()
	for _, name := range []string{"one", "two"} {
		text, err := os.ReadFile(filepath.Join(r.dir, "log."+name))
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	assert.Empty(t, r.said())
}
