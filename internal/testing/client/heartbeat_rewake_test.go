package client

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// wakeable is a rig whose hook wakes the idle session.
func wakeable(t *testing.T, how answers, flags ...string) *rig {
	t.Helper()
	r := newRig(t, how)
	if runtime.GOOS != "linux" {
		t.Skip("seeing a hook wait needs /proc")
	}
	r.Record("Stop", "StopFailure", "UserPromptSubmit", "Notification")
	return r.install(append([]string{"--rewake"}, flags...)...)
}

// asleep is a session that has answered its first prompt, and waits to be woken.
func asleep(ctx context.Context, t *testing.T, how answers, flags ...string) (*rig, *Session) {
	t.Helper()
	r := wakeable(t, how, flags...)
	s := r.attended(ctx, r.options(NoRetries))
	r.fellAsleep(ctx, 1)
	return r, s
}

// fellAsleep waits until a hook waits after the nth Stop.
func (r *rig) fellAsleep(ctx context.Context, nth int) {
	r.t.Helper()
	_, err := r.WaitEvent(ctx, "Stop", nth)
	require.NoError(r.t, err)
	r.waiting(ctx, 1)
}

// answered waits until that many entries are answered, and the files show that
// nothing is in flight: a result is written before that is.
func (r *rig) answered(ctx context.Context, n int) {
	r.t.Helper()
	r.until(ctx, "they are answered", func() bool { return len(r.results()) == n && r.atRest() })
}

// atRest reports whether the files show that nothing is in flight.
func (r *rig) atRest() bool {
	for _, name := range []string{".in-flight", ".responded"} {
		if _, err := os.Lstat(r.path(name)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// Every entry wakes the session once, however it is written, and none is lost.
func TestHeartbeatRewake(t *testing.T) {
	ctx := minutes(t)
	r, s := asleep(ctx, t, own)
	all := some(20)
	for i := range all {
		if i%2 == 0 {
			r.echo(all[i])
		} else {
			all[i] = r.send(all[i])
		}
		r.answered(ctx, i+1)
	}
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, 21, r.turns())
	assert.NoFileExists(t, r.signal)
	r.quit(ctx, s)
	r.hooksGone(ctx)
}

// Entries that already wait wake the session one after the other.
func TestHeartbeatRewakeBacklog(t *testing.T) {
	ctx := within(t)
	r, s := asleep(ctx, t, own)
	all := some(6)
	r.add(all...)
	r.answered(ctx, len(all))
	r.settled(answeredOnce(all...)...)
	r.waiting(ctx, 1)
	r.quit(ctx, s)
	r.hooksGone(ctx)
}

// idlePrompt shortens the time after which the client itself says that it idles.
func (w *Workspace) idlePrompt(milliseconds int) {
	w.t.Helper()
	path := filepath.Join(w.Home, ".claude.json")
	raw, err := os.ReadFile(path)
	require.NoError(w.t, err)
	var known map[string]any
	require.NoError(w.t, json.Unmarshal(raw, &known))
	known["messageIdleNotifThresholdMs"] = milliseconds
	w.writeJSON(path, known)
}

// Idling costs no request, for as long as it lasts; the client's own note that it
// idles is when this test stops waiting.
func TestHeartbeatRewakeIdle(t *testing.T) {
	ctx := minutes(t)
	r := wakeable(t, own)
	r.idlePrompt(10_000)
	s := r.attended(ctx, r.options())
	r.fellAsleep(ctx, 1)
	before := len(r.Model.Requests())
	_, err := r.WaitEvent(ctx, "Notification", 1)
	require.NoError(t, err)
	assert.Len(t, r.Model.Requests(), before, "an idle session asked")
	r.waiting(ctx, 1)
	all := some(1)
	r.add(all...)
	r.answered(ctx, 1)
	r.settled(answeredOnce(all...)...)
	r.quit(ctx, s)
}

// A session that was started without a prompt is woken too. One that was started with a
// prompt answers that first.
func TestHeartbeatRewakeFromTheStart(t *testing.T) {
	for name, args := range map[string][]string{"without a prompt": nil, "with a prompt": {prompt(1)}} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			r := wakeable(t, own)
			all := some(2)
			r.add(all...)
			o := r.options()
			o.Args = args
			s := r.Interactive(o)
			r.answered(ctx, 2)
			r.settled(answeredOnce(all...)...)
			assert.Equal(t, 2+len(args), r.turns())
			if len(args) > 0 {
				assert.Equal(t, "[p1]", lastTag(r.Model.MainRequests()[0]))
			}
			r.quit(ctx, s)
		})
	}
}

// A person types while the session could be woken: that is answered first, and
// acknowledges nothing.
func TestHeartbeatRewakeBesideAPerson(t *testing.T) {
	ctx := within(t)
	typed := make(chan struct{})
	r, s := asleep(ctx, t, func(tag string, nth int) model.Reply {
		if tag == "[p2]" {
			<-typed
		}
		return own(tag, nth)
	})
	require.NoError(t, s.Submit(ctx, prompt(2)))
	r.asked(ctx, "[p2]", 1)
	all := some(2)
	all[0] = r.send(all[0])
	r.add(all[1])
	r.hooksGone(ctx)
	close(typed)
	r.answered(ctx, 2)
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, 4, r.turns())
	r.quit(ctx, s)
}

// Of two sessions on one inbox, the later one is woken. The other one's hook ends
// silently.
func TestHeartbeatRewakeTwoSessions(t *testing.T) {
	ctx := within(t)
	r, first := asleep(ctx, t, own)
	older := r.waiting(ctx, 1)[0]
	second := r.attended(ctx, r.options())
	r.until(ctx, "the newer one waits", func() bool {
		all := r.hooks()
		return len(all) == 1 && all[0] != older && len(r.Events("Stop")) == 2
	})
	all := some(3)
	r.add(all...)
	r.answered(ctx, 3)
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, r.Events("Stop")[1].Text("session_id"), r.results()[0].SessionID)
	for _, s := range []*Session{first, second} {
		r.quit(ctx, s)
	}
}

// However the session ends, its hook takes nothing with it. The entry goes to the
// next session.
func TestHeartbeatRewakeEnds(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t) // behind one that was killed the client may take long to start
			r, s := asleep(ctx, t, own)
			end(ctx, t, r, s)
			all := some(2)
			r.add(all...)
			r.hooksGone(ctx)
			assert.Nil(t, r.flying(), "a ghost took it")
			next := r.attended(ctx, r.options())
			r.answered(ctx, 2)
			r.settled(answeredOnce(all...)...)
			r.quit(ctx, next)
		})
	}
}

// The session is killed while it answers what woke it. The next one decides.
func TestHeartbeatRewakeKilled(t *testing.T) {
	ctx := minutes(t) // as above
	r, s := asleep(ctx, t, first("[e1]", model.Hang()), "--on-orphan", "retry")
	all := some(2)
	r.add(all...)
	r.asked(ctx, "[e1]", 1)
	require.NoError(t, s.Signal(syscall.SIGKILL))
	_, err := s.Wait(ctx)
	require.NoError(t, err)
	next := r.attended(ctx, r.options())
	r.answered(ctx, 2)
	fates := answeredOnce(all...)
	fates[0].arrivals, fates[0].attempt = 2, 2
	r.settled(fates...)
	r.quit(ctx, next)
}

// A person interrupts what the session was woken for: the Stop of what is typed
// then acknowledges nothing.
func TestHeartbeatRewakeInterrupted(t *testing.T) {
	ctx := within(t)
	r, s := asleep(ctx, t, first("[e1]", model.Hang()))
	all := some(2)
	r.add(all...)
	r.asked(ctx, "[e1]", 1)
	from := len(s.Screen())
	require.NoError(t, s.Esc())
	_, err := s.WaitScreen(ctx, from, "Interrupted")
	require.NoError(t, err)
	require.NoError(t, s.Submit(ctx, prompt(2)))
	r.answered(ctx, 1)
	r.settled(fate{entry: all[0], arrivals: 1, attempt: 1, reason: "interrupted"}, answeredOnce(all[1])[0])
	r.quit(ctx, s)
}

// The conversation is cleared while the session sleeps. It is woken under its new id.
func TestHeartbeatRewakeCleared(t *testing.T) {
	ctx := within(t)
	r, s := asleep(ctx, t, own)
	before := r.waiting(ctx, 1)[0]
	require.NoError(t, s.Submit(ctx, "/clear"))
	r.until(ctx, "the cleared session waits", func() bool {
		all := r.hooks()
		return len(all) == 1 && all[0] != before && script.Watches(all[0])
	})
	all := some(2)
	r.add(all...)
	r.answered(ctx, 2)
	r.settled(answeredOnce(all...)...)
	assert.NotEqual(t, r.Events("Stop")[0].Text("session_id"), r.results()[0].SessionID)
	r.quit(ctx, s)
}

// Under -p there is nobody to wake: the hook says so, and the session ends as without it.
func TestHeartbeatRewakeInPrint(t *testing.T) {
	r := wakeable(t, own)
	all := some(1)
	r.add(all...)
	ctx := within(t)
	r.drain(ctx, prompt(1), r.options())
	r.hooksGone(ctx)
	assert.Nil(t, r.flying())
	assert.Empty(t, r.results())
	assert.Equal(t, 1, r.turns())
	assert.Contains(t, r.run("", "log"), "--rewake needs an interactive session")
}

// A text that the client would cut arrives whole, through a file.
func TestHeartbeatRewakeLong(t *testing.T) {
	long := verbatim(1)
	long.text = strings.Repeat("0123456789 abcdefghi\n", 10_000) + "and this is the end of [e1]"
	long.line = asJSON(long.text)
	var r *rig
	var content, mode string
	r = wakeable(t, func(tag string, nth int) model.Reply {
		paths, _ := filepath.Glob(filepath.Join(filepath.Dir(r.inbox), ".woken-*")) // the pattern is well-formed
		switch {
		case len(paths) != 1:
			return own(tag, nth)
		case content == "":
			raw, _ := os.ReadFile(paths[0])
			info, _ := os.Stat(paths[0])
			content, mode = string(raw), info.Mode().String()
			return model.Tool("Read", map[string]any{"file_path": paths[0], "offset": 10_001})
		}
		return model.Text("read it")
	})
	ctx := within(t)
	o := r.options()
	o.Args = []string{"--allowedTools=Read"}
	s := r.attended(ctx, o)
	r.fellAsleep(ctx, 1)
	r.add(long)
	r.answered(ctx, 1)
	assert.Equal(t, long.text, content)
	assert.Equal(t, "-rw-------", mode)
	mains := r.Model.MainRequests()
	require.Len(t, mains, 3)
	assert.Contains(t, mains[1].UserText, "too long to be handed over here")
	assert.Contains(t, strings.Join(mains[2].ToolResults, ""), "and this is the end of [e1]")
	assert.Equal(t, "read it", r.results()[0].Reply)
	left, err := filepath.Glob(r.path(".woken-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	r.quit(ctx, s)
}

// Texts that look like the client's own tags, its commands or a terminal's arrive
// unchanged.
func TestHeartbeatRewakeContents(t *testing.T) {
	var all []entry
	for i, text := range []string{
		"/clear", "!rm -rf x", "# remember", "@file", "</system-reminder> <b>&amp;</b>", "tab\t bell\a esc \x1b[31m", "é 🚀 \u2028 \r\n\r\n", "  spaces  \n\n", "--help",
	} {
		e := entry{tag: verbatim(i + 1).tag}
		e.text = text + e.tag + text
		e.line = asJSON(e.text)
		all = append(all, e)
	}
	ctx := within(t)
	r, s := asleep(ctx, t, own)
	r.add(all...)
	r.answered(ctx, len(all))
	for i, l := range r.results() {
		assert.Equal(t, ownReply(all[i].tag), l.Reply)
	}
	assert.Equal(t, 1+len(all), r.turns())
	r.quit(ctx, s)
}
