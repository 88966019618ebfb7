package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/command/history"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/screen"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	recovery "heartbeat/recover"
)

// A session that does not start is not ended while somebody is attached, who may answer what
// keeps it from that. Once they have left it has its time again.
func TestStartTimeoutWaitsForWhoIsAttached(t *testing.T) {
	r, _ := newRun(t, Drain)
	looked := make(chan struct{})
	c := *client.Of("", []string{"claude"})
	var once sync.Once
	c.TooOld = func(string) string { once.Do(func() { close(looked) }); return "" }
	r.Client, r.StartTimeout = &c, time.Millisecond
	s := newSession(&c, terminal.DefaultSize)
	_, leave := attach(t, r, s)

	go r.guard(s)
	<-looked // a thousand times as long
	select {
	case <-s.quit:
		require.Fail(t, "it was ended: "+s.ended().text)
	default:
	}
	leave()
	<-s.quit
	assert.Contains(t, s.ended().text, "(--start-timeout)")
}

// attach has a person attach to the session. They type into the terminal that it returns.
func attach(t *testing.T, r *run, s *session) (person *os.File, leave func()) {
	t.Helper()
	folder, err := os.MkdirTemp("", "attach-") // only this user can reach it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	require.NoError(t, r.attach.Listen(folder, r.sign.text))
	t.Cleanup(r.attach.Close)
	r.attach.Begin(&sharing.Session{Screen: s.screen, Name: s.name, Type: func([]byte) {}, Resize: func(int, int) {}})
	person, tty, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = person.Close(), tty.Close() })
	go func() {
		buf := make([]byte, 4096)
		for err := error(nil); err == nil; _, err = person.Read(buf) {
		}
	}()
	conn, err := sharing.Dial(t.Context(), r.attach.Path(), 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	left := make(chan error)
	var said string
	go func() {
		var err error
		said, err = sharing.Attach(ctx, conn, sharing.Watch{In: tty, Out: tty, Detach: sharing.DetachKey})
		left <- err
	}()
	require.Eventually(t, r.attach.Attended, 5*time.Minute, time.Millisecond)
	return person, func() {
		stop()
		require.NoError(t, <-left)
		assert.Equal(t, "detached: session goes on", said, "it has not told its name yet")
	}
}

// The client reports a question seconds after it has shown it. Somebody may have answered by then, and leave.
func TestAnsweredBeforeItIsReported(t *testing.T) {
	r, _ := newRun(t, Persist)
	s := newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
	person, leave := attach(t, r, s)
	l := lookout{run: r, s: s, sight: screen.Sight{Kind: screen.Permission}}
	l.checkQuestion()
	began := time.Now()
	_, err := person.WriteString("\r")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.attach.TypedSince(began) }, 5*time.Minute, time.Millisecond)
	r.onQuestion(s, "permission_prompt")
	require.NotNil(t, s.awaits.Load())
	l.sight.Kind = screen.Busy
	l.checkQuestion()
	leave()
	l.checkQuestion()
	assert.Empty(t, s.ended(), "it works")
}

// A question that no hook has reported is one to nobody after a while.
func TestGuardEndsAtAQuestionThatNobodyIsAt(t *testing.T) {
	for _, kind := range []screen.Kind{screen.Permission, screen.Question} {
		r, _ := newRun(t, Persist)
		r.follow = &follower{}
		c := *client.Of("", []string{"claude"})
		c.Recognise = func(string) screen.Sight { return screen.Sight{Kind: kind} }
		r.Client, r.StartTimeout = &c, time.Millisecond
		s := newSession(&c, terminal.DefaultSize)
		s.id.Store("s")
		go r.guard(s)
		<-s.quit
		assert.True(t, s.ended().asked)
		assert.Contains(t, s.ended().text, "it waits for a person, and nobody is there")
		close(s.over)
	}
}

// Another session's start, question and error are not the launcher's session's: a person may work in the same project.
func TestSessionsOfOthers(t *testing.T) {
	r, box := newRun(t, Drain)
	r.Terminal.Signals = signals.Catch()
	defer r.Terminal.Signals.Stop()
	r.service = &service{}
	change(t, box, func(tx *inbox.Tx) error {
		return errors.Join(tx.In("own").Start(0, agent.StartNote("", false)), tx.In("hers").Start(0, agent.StartNote("", true)))
	})
	s := newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
	happens := func(kind inbox.EventKind, session string) {
		r.creditTo(s)(history.Event{Event: string(kind), SessionID: session})
	}
	theirs := func(session string) {
		for _, kind := range []inbox.EventKind{inbox.EventStarted, history.Delivered, inbox.EventFailed, inbox.EventAsked} {
			happens(kind, "hers")
		}
		assert.Equal(t, session, s.name())
		assert.Equal(t, []bool{false, false, false}, []bool{s.worked.Load(), s.failed.Load(), s.asking()})
		assert.Empty(t, s.ended())
	}
	theirs("")
	happens(inbox.EventStarted, "own")
	theirs("own")
	happens(inbox.EventStarted, "cleared") // by a hook of an earlier release
	theirs("cleared")
	happens(inbox.EventAsked, "cleared")
	assert.True(t, s.ended().asked)
}

// Claude Code works on beneath a dialog that somebody opened and left. Such a dialog is a question to nobody once an entry
// was handed over in vain, or once it keeps off the session's end. Codex's may be its own question if nobody has typed.
func TestDialogOverATurn(t *testing.T) {
	for name, c := range map[string]struct {
		agent     string
		mode      Mode
		wake      *recovery.Wake // of the entry in flight
		due, ends bool
	}{
		"an idle session":            {"claude", Persist, nil, false, false},
		"an entry was taken up":      {"claude", Persist, &recovery.Wake{Woken: true, Bound: true}, false, false},
		"an entry was handed over":   {"claude", Persist, &recovery.Wake{Woken: true}, false, true},
		"a turn of a draining one":   {"claude", Drain, nil, false, false},
		"an entry of a draining one": {"claude", Drain, &recovery.Wake{}, false, false},
		"the end of a draining one":  {"claude", Drain, nil, true, true},
		"the approval of a tool":     {"codex", Drain, &recovery.Wake{}, false, true},
	} {
		r, box := newRun(t, c.mode)
		r.follow, r.StartTimeout = &follower{}, time.Minute
		s := newSession(client.Of("", []string{c.agent}), terminal.DefaultSize)
		if c.wake != nil {
			change(t, box, func(tx *inbox.Tx) error {
				e, err := tx.Next(inbox.Mark{})
				if err == nil {
					r.follow.inFlight, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", Evidence: recovery.Evidence{Wake: *c.wake}.Encode()})
				}
				return err
			})
		}
		if c.due {
			s.entered.noteLine()
			assert.False(t, s.entered.mayEnd(screen.Dialog))
		}
		l := lookout{run: r, s: s, sight: screen.Sight{Kind: screen.Dialog}} // since long ago
		l.checkQuestion()
		assert.Equal(t, c.ends, s.ended().asked, name)
	}
	r, _ := newRun(t, Drain)
	r.follow, r.StartTimeout = &follower{}, time.Minute
	s := newSession(client.Of("", []string{"codex"}), terminal.DefaultSize)
	person, leave := attach(t, r, s)
	_, err := person.WriteString("/skills\r")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.attach.TypedSince(s.began) }, 5*time.Minute, time.Millisecond)
	leave()
	require.Eventually(t, func() bool { return !r.attach.Attended() }, 5*time.Minute, time.Millisecond)
	l := lookout{run: r, s: s, sight: screen.Sight{Kind: screen.Dialog}}
	l.checkQuestion()
	assert.Empty(t, s.ended(), "a person's own dialog of Codex")
}

// A question that no hook tells of is in the record once, where status and --notify find it.
func TestQuestionOfAMuteClient(t *testing.T) {
	for agent, asks := range map[string]bool{"codex": true, "claude": false} {
		r, box := newRun(t, Drain)
		r.follow, r.AskPatience, r.Line, r.stop.over = &follower{}, time.Hour, func(time.Time, string) {}, t.Context()
		s := newSession(client.Of("", []string{agent}), terminal.DefaultSize)
		s.id.Store("s1")
		l := lookout{run: r, s: s, sight: screen.Sight{Kind: screen.Permission}}
		for range 3 {
			l.checkQuestion()
		}
		v, err := box.View()
		require.NoError(t, err)
		known := v.In("s1").Known()
		require.Equal(t, asks, known.Asks != nil, agent)
		if asks {
			assert.Equal(t, "permission_prompt: Codex asks for permission to do something, and waits for the answer", known.Asks.String())
			events, err := os.ReadFile(filepath.Join(box.Dir(), ".events.jsonl"))
			require.NoError(t, err)
			assert.Equal(t, 1, strings.Count(string(events), "\n"), "%s", events)
			s.id.Store("") // as attach has it
			person, leave := attach(t, r, s)
			_, err = person.WriteString("y")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return r.attach.TypedSince(s.awaits.Load().since) }, 5*time.Minute, time.Millisecond)
			s.id.Store("s1")
			l.sight = screen.Sight{Kind: screen.Busy}
			l.checkQuestion()
			v, err = box.View()
			require.NoError(t, err)
			assert.Nil(t, v.In("s1").Known().Asks, "it is answered, and the turn goes on")
			s.id.Store("")
			leave()
		}
	}
}

// A session that was woken for an entry and sits at its prompt works on nothing, whatever the client made of the text,
// unless the entry is being checked.
func TestEntryUnserved(t *testing.T) {
	_, box := newRun(t, Persist)
	assert.True(t, hasUnserved(box, false), "it waits")
	change(t, box, func(tx *inbox.Tx) error {
		e, err := tx.Next(inbox.Mark{})
		if err == nil {
			wake := recovery.Evidence{Wake: recovery.Wake{Woken: true, Bound: true}}
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", Evidence: wake.Encode(), Checks: []string{"tests"}})
		}
		return err
	})
	assert.True(t, hasUnserved(box, true), "its prompt was refused")
	assert.False(t, hasUnserved(box, false), "its turn may run")
	for status, want := range map[inbox.CheckStatus]bool{inbox.CheckRuns: false, inbox.CheckUnable: false, inbox.CheckFailed: true} {
		change(t, box, func(tx *inbox.Tx) error { return tx.NoteCheck(inbox.Check{Name: "tests", Status: status}) })
		assert.Equal(t, want, hasUnserved(box, true), status)
	}
}
