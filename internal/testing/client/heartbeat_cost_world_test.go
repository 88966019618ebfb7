package client

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// world is what happens to thirty entries in three sessions.
type world struct {
	*spender
	ctx  context.Context
	term *Session
	n    int // entries so far
	said int // prompts so far
}

// some adds the next entries.
func (w *world) some(n int) (added []entry) {
	for range n {
		w.n++
		added = append(added, verbatim(w.n))
	}
	w.add(added...)
	return added
}

// begin starts a client at a terminal, or resumes a session, and says a prompt.
func (w *world) begin(resume string) {
	w.t.Helper()
	o := w.options()
	o.Resume = resume
	w.term = w.Interactive(o)
	require.NoError(w.t, w.term.WaitReady(w.ctx))
	w.speak()
}

// speak says a prompt, upon which the entries are worked through.
func (w *world) speak() {
	w.t.Helper()
	w.forgetSignal()
	w.said++
	require.NoError(w.t, w.term.Submit(w.ctx, prompt(w.said)))
}

// drained waits until the session has nothing to do and has written what it cost.
func (w *world) drained() {
	w.t.Helper()
	w.until(w.ctx, "the stop is approved", w.approved)
	w.untilWritten(w.ctx)
}

// slash types a command, and waits for the nth event that it causes.
func (w *world) slash(command, event string, nth int) {
	w.t.Helper()
	require.NoError(w.t, w.term.Submit(w.ctx, command))
	_, err := w.WaitEvent(w.ctx, event, nth)
	require.NoError(w.t, err)
}

// killed kills the client with SIGKILL while the model answers a tag.
func (w *world) killed(tag string) (session string) {
	w.t.Helper()
	w.asked(w.ctx, tag, 1)
	w.until(w.ctx, "the transcript has "+tag, func() bool { return w.transcribed(tag) })
	session = w.flying().SessionID
	w.term.Kill()
	return session
}

// Thirty entries in three sessions. Clients are killed, a hook as well, sessions
// are resumed, cleared and compacted, by hand and by the client. What the entries cost
// and what was spent outside of them is what the model billed, to the last digit.
func TestHeartbeatCostOfAWorld(t *testing.T) {
	ctx := minutes(t)
	w := &world{ctx: ctx}
	w.spender = newSpender(t, func(tag string, nth int) model.Reply {
		switch {
		case nth == 1 && (tag == "[e14]" || tag == "[e22]"):
			return model.Hang()
		case tag == "[e8]": // the context is full
			return own(tag, nth).Using(model.Usage{Input: 970_000, Output: 100})
		case tag == "":
			return theSummary
		case tag == "[e18]": // nobody sees the end of its turn, so that all lines count by their places
			w.until(ctx, "the transcript has it", func() bool { return w.transcribed(tag) })
		}
		return own(tag, nth)
	})
	w.install("--on-orphan", "retry", "--max-entries", "0")
	w.Record("SessionStart", "PreCompact")

	w.some(4)
	w.begin("")
	w.drained()

	w.slash("/compact", "SessionStart", 2)
	w.some(4)
	w.speak()
	w.drained()

	w.some(4) // compacted on its own before
	w.speak()
	w.drained()
	assert.Len(t, w.Events("PreCompact"), 2, "the client did not compact on its own")

	w.slash("/clear", "SessionStart", 4)
	w.some(4)
	w.speak()
	second := w.killed("[e14]")

	w.begin(second)
	w.drained()
	w.quit(ctx, w.term)

	w.some(4) // e17 to e20, of which one Stop is killed
	restore := w.wrapHook("[e18]")
	w.begin(second)
	w.until(ctx, "the hook was killed", func() bool { _, err := os.Stat(w.path("killed")); return err == nil })
	restore()
	w.speak()
	w.drained()
	w.quit(ctx, w.term)

	w.some(10)
	m := w.managing(ctx, "--on-orphan", "retry")
	w.asked(ctx, "[e22]", 1)
	require.NoError(t, m.cmd.Process.Kill())
	_ = m.cmd.Wait() // it was killed
	w.sessionsGone(ctx)
	w.managing(ctx, "--on-orphan", "retry").wait()
	w.sessionsGone(ctx)
	w.exact()
}

// wrapHook has the client run a script in the hook's place, which kills the hook at the
// end of the turn in which a tag was answered. It returns what undoes that.
func (w *world) wrapHook(tag string) (restore func()) {
	w.t.Helper()
	killed := quotedForShell(w.path("killed")) // once: the client may read its restored settings late
	return w.wrap(w.stop, fmt.Sprintf(`if [[ $said == *'"hook_event_name":"Stop"'* && $said == *%q* && ! -e %s ]]; then touch %s; kill -9 $$; fi`,
		tag, killed, killed))
}

// wrap has the client run a script before the hook's program. What that gets on stdin is $said.
// restore undoes that.
func (w *world) wrap(program, script string) (restore func()) {
	w.t.Helper()
	before, err := os.ReadFile(w.settings)
	require.NoError(w.t, err)
	path := filepath.Join(filepath.Dir(w.Home), filepath.Base(program)+".sh")
	text := fmt.Sprintf("#!/bin/bash\nsaid=$(cat)\n%s\nexec %s \"$@\" <<<\"$said\"\n", script, quotedForShell(program))
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o700))
	require.Contains(w.t, string(before), `"`+program+`"`)
	require.NoError(w.t, os.WriteFile(w.settings, []byte(strings.ReplaceAll(string(before), `"`+program+`"`, `"`+path+`"`)), 0o600))
	return func() { require.NoError(w.t, os.WriteFile(w.settings, before, 0o600)) }
}
