package supervise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/testing/long"
	recovery "heartbeat/recover"
)

// night is what a launcher that stays up lives through, by a simulated clock.
type night struct {
	t        *testing.T
	r        *run
	program  string // of the client
	random   *rand.Rand
	full     atomic.Bool   // the inbox's disk
	crashes  atomic.Bool   // the client does, at its start
	refuses  atomic.Bool   // the API does, the next turn
	up       atomic.Bool   // a session runs
	kill     chan struct{} // the session that runs
	sessions int
	sent     int64
	limits   int // of the API that were met
}

// TestNights has a launcher persist through updates of the client, crashes at its start, full
// disks and limits of the API: it never gives up, a session runs soon after each is over, and
// every entry is answered.
func TestNights(t *testing.T) {
	if testing.Short() {
		t.Skip("it changes the boot while a session is watched, which only a test does: the race detector would say so")
	}
	taken := signals.Catch()
	defer taken.Stop()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		defer func() { disk.TestOnlyObserver, machine.TestOnlyBootID = nil, "" }()
		n := newNight(t, taken)
		ctx, stop := context.WithCancel(t.Context())
		n.r.stop.asked, n.r.stop.over = ctx, ctx
		ended := make(chan *ending)
		go func() { ended <- n.r.loop() }()
		passes := []func(){n.update, n.crash, n.update, n.limit, n.update, n.fill}
		for i, last := 0, time.Duration(long.Rounds(10, 7*24))*time.Hour; time.Since(began) < last; i++ {
			n.awaitUp()
			n.send()
			time.Sleep(10 * time.Minute)
			n.send()
			for !InFlight(n.r.box.Dir()) {
				time.Sleep(time.Second)
			}
			passes[i%len(passes)]()
			n.send()
		}
		n.awaitUp()
		time.Sleep(2 * time.Hour) // beyond the last limit
		n.r.stop.why.Store(&ending{reason: Stopped})
		stop()
		assert.Equal(t, Stopped, (<-ended).reason)
		totals, err := readTotals(n.r.box)
		require.NoError(t, err)
		assert.Equal(t, n.sent, totals.Answered)
		assert.Empty(t, totals.DeadLetters)
		assert.Positive(t, n.limits)
		t.Logf("%v: %d sessions, %d entries, %d limits", time.Since(began).Round(time.Minute), n.sessions, n.sent, n.limits)
	})
}

// What runs beside a session has ended once the session counts as ended: here it holds delivery
// back as soon as the inbox is free, which nobody would take back any more.
func TestNothingOutlivesTheSessionThatItRanBeside(t *testing.T) {
	taken := signals.Catch()
	defer taken.Stop()
	synctest.Test(t, func(t *testing.T) {
		defer func() { disk.TestOnlyObserver = nil }()
		n := newNight(t, taken)
		asked, stop := context.WithCancel(t.Context())
		n.r.stop.asked, n.r.stop.over = asked, t.Context()
		n.r.stop.why.Store(&ending{reason: Stopped})
		other, err := n.r.box.Begin(t.Context())
		require.NoError(t, err)
		n.r.inTerminal = func(terminal.Options) (terminal.Outcome, error) {
			stop()
			synctest.Wait() // until the inbox is waited for
			time.AfterFunc(time.Second, func() { assert.NoError(t, other.Close()) })
			return terminal.Outcome{}, nil
		}
		require.Equal(t, Stopped, n.r.runSession().reason)
		v, err := n.r.box.View()
		require.NoError(t, err)
		defer func() { assert.NoError(t, v.Close()) }()
		told, err := v.Told()
		require.NoError(t, err)
		assert.EqualValues(t, 1, told.Seq, "the commit came before")
	})
}

func newNight(t *testing.T, taken *signals.Caught) *night {
	n := &night{t: t, program: filepath.Join(t.TempDir(), "claude"), random: rand.New(rand.NewPCG(28, 6)), kill: make(chan struct{})}
	require.NoError(t, os.WriteFile(n.program, []byte("#!/bin/sh\n"), 0o700))
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	box, err := inbox.Open(path, inbox.Options{LockWait: lockWait})
	require.NoError(t, err)
	c := *client.Of("", []string{"claude"})
	c.Command = func(context.Context, client.Session) ([]string, error) { return []string{n.program}, nil }
	n.r = &run{
		box:        box,
		inTerminal: n.session,
		Options: Options{
			Mode:         Persist,
			Settings:     recovery.Settings{Chosen: true, Policy: recovery.Retry, MaxAttempts: 1000},
			StartTimeout: time.Minute,
			Line:         func(time.Time, string) {},
			Terminal:     terminal.Options{Command: []string{n.program}, Dir: filepath.Dir(path), Signals: taken, Size: terminal.DefaultSize, Watchers: terminal.Watchers{Note: func(string, ...any) {}}},
			Endurance:    Endurance{MaxRestarts: 5},
			Wiring:       Wiring{Client: &c},
		},
		helpers: helpers{private: &private{t.TempDir()}},
	}
	n.r.SettingsDir = n.r.private.dir
	n.r.follow, err = follow(box, n.r.Line)
	require.NoError(t, err)
	t.Cleanup(n.r.follow.close)
	n.r.service = newService(n.r.status, n.r.isProgressing)
	disk.TestOnlyObserver = func(op disk.Op) error {
		if n.full.Load() && (op.Kind == disk.OpWrite || op.Kind == disk.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	}
	return n
}

// awaitUp waits until a session runs: the longest rest is over by then.
func (n *night) awaitUp() {
	n.t.Helper()
	for last := time.Now().Add(mostRest*6/5 + time.Minute); !n.up.Load(); time.Sleep(time.Second) {
		if time.Now().After(last) { // otherwise the cause is the loop's alone
			require.Fail(n.t, "no session runs: "+n.r.trouble.cause)
		}
	}
}

func (n *night) send() {
	n.sent++
	_, err := n.r.box.Append(n.t.Context(), inbox.Message{ID: fmt.Sprint("entry-", n.sent), Text: "work"}, lockWait)
	require.NoError(n.t, err)
}

// killClient kills the session that runs, if one does.
func (n *night) killClient() {
	if n.up.Load() {
		n.kill <- struct{}{}
	}
}

// update has the client be missing for 0.1 s to a minute.
func (n *night) update() {
	require.NoError(n.t, os.Rename(n.program, n.program+".old"))
	n.killClient()
	time.Sleep(100*time.Millisecond + time.Duration(n.random.Int64N(int64(time.Minute))))
	require.NoError(n.t, os.Rename(n.program+".old", n.program))
}

func (n *night) crash() {
	n.crashes.Store(true)
	n.killClient()
	time.Sleep(2 * time.Minute)
	n.crashes.Store(false)
}

func (n *night) fill() {
	n.full.Store(true)
	n.killClient()
	time.Sleep(time.Hour)
	n.full.Store(false)
}

func (n *night) limit() {
	n.refuses.Store(true)
	time.Sleep(70 * time.Minute)
}

// session is one of the client's, with its hook.
func (n *night) session(o terminal.Options) (terminal.Outcome, error) {
	n.sessions++
	if n.crashes.Load() {
		return terminal.Outcome{Status: 1 << 8}, nil
	}
	n.r.current.Load().id.Store(fmt.Sprint("session-", n.sessions))
	n.up.Store(true)
	defer n.up.Store(false)
	for {
		n.work(n.deliver)
		select {
		case <-o.Quit:
			return terminal.Outcome{Cause: terminal.Quit}, nil
		case <-n.kill:
			return terminal.Outcome{Status: syscall.WaitStatus(syscall.SIGKILL)}, nil
		case <-time.After(30 * time.Second):
		}
		n.work(n.answer)
	}
}

// work is what a hook does in one commit, if there is room for that.
func (n *night) work(do func(*inbox.Tx) error) {
	tx, err := n.r.box.Begin(n.t.Context())
	if err == nil {
		if err = do(tx); err == nil {
			err = tx.Commit()
		}
		err = errors.Join(err, tx.Close())
	}
	if !n.full.Load() {
		assert.NoError(n.t, err)
	}
}

func (n *night) deliver(tx *inbox.Tx) error {
	hold, waits, err := recovery.Waiting(tx, n.r.asker())
	if err != nil || !waits || hold.Any() || tx.InFlight() != nil {
		return err
	}
	e, err := tx.Next(inbox.Mark{})
	if err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: n.r.current.Load().name()})
	}
	return err
}

// answer ends a turn.
func (n *night) answer(tx *inbox.Tx) error {
	switch {
	case tx.InFlight() == nil:
		return nil
	case !n.refuses.Load():
		return tx.Acknowledge("done")
	}
	if err := tx.In(n.r.current.Load().name()).Fail("rate_limit", "try again in 1 hour"); err != nil {
		return err
	}
	n.limits++
	n.refuses.Store(false)
	machine.TestOnlyBootID = fmt.Sprint("boot-", n.limits) // of another boot, a back-off ends by the clock that is simulated
	_, err := recovery.Settle(tx, n.r.asker(), recovery.Sight{Charged: true})
	return err
}
