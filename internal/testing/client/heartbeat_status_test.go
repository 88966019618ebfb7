package client

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/words"
)

// seen is what these tests read of `status --json`.
type seen struct {
	State     string `json:"state"`
	Why       string `json:"why"`
	Queued    int    `json:"queued"`
	Scheduled int    `json:"scheduled"`
	InFlight  *struct {
		EntryID   string `json:"entry_id"`
		Attempt   int    `json:"attempt"`
		SessionID string `json:"session_id"`
	} `json:"in_flight"`
	Session *struct {
		ID   string `json:"id"`
		PID  int    `json:"pid"`
		Life string `json:"life"`
	} `json:"session"`
}

func (r *rig) status() (s seen) {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.run("", "status", "--json")), &s))
	return s
}

// says checks how status explains the situation, and returns the rest of its output.
func (r *rig) says(state, words string) seen {
	r.t.Helper()
	s := r.status()
	assert.Equal(r.t, state, s.State, s.Why)
	assert.Contains(r.t, s.Why, words)
	return s
}

// short is how status names a session.
func short(id string) string { return words.Short(id) }

// A session at work, its death, and the next one's second attempt.
func TestHeartbeatStatusOfTheKilled(t *testing.T) {
	hang := func(tag string, nth int) model.Reply {
		if tag == "[e2]" {
			return model.Hang()
		}
		return own(tag, nth)
	}
	ctx := within(t)
	all := some(3)
	r := newRig(t, hang).install("--on-orphan", "retry").add(all...)
	for attempt := 1; attempt <= 2; attempt++ {
		run := r.Print(prompt(attempt), r.options())
		r.asked(ctx, "[e2]", attempt)
		s := r.says("answering", "waiting for an answer to")
		require.NotNil(t, s.InFlight)
		require.NotNil(t, s.Session)
		assert.Equal(t, attempt, s.InFlight.Attempt)
		assert.Equal(t, "[e2]", r.tagOf(s.InFlight.EntryID))
		assert.Equal(t, 1, s.Queued)
		assert.Equal(t, s.Session.ID, s.InFlight.SessionID)
		assert.Equal(t, run.Pid(), s.Session.PID)
		assert.Equal(t, "running", s.Session.Life)

		run.Kill()
		s = r.says("orphaned", "session "+short(s.Session.ID)+" died")
		assert.Equal(t, "gone", s.Session.Life)
	}
	r.run("", "recover", "--on-orphan", "retry")
	r.says("no session", "waits to be delivered again (attempt 3")
}

// A killed session that is resumed is the same one in another process, and what
// it had in flight is an orphan all the same.
func TestHeartbeatStatusOfTheResumed(t *testing.T) {
	ctx := within(t)
	how, letGo := held(ctx, "[p2]")
	all := some(2)
	r := newRig(t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" && nth == 1 {
			return model.Hang()
		}
		return how(tag, nth)
	}).install("--on-orphan", "retry").add(all...)
	run := r.Print(prompt(1), r.options())
	r.asked(ctx, "[e1]", 1)
	r.until(ctx, "the transcript has the entry", func() bool { return r.transcribed("[e1]") })
	run.Kill()
	o := r.options()
	o.Resume = r.flying().SessionID
	again := r.Print(prompt(2), o)
	r.asked(ctx, "[p2]", 1)
	s := r.says("orphaned", "it was resumed at")
	require.NotNil(t, s.Session)
	assert.Equal(t, o.Resume, s.Session.ID)
	assert.Equal(t, again.Pid(), s.Session.PID)
	assert.Equal(t, "running", s.Session.Life)
	letGo()
	_, err := again.Wait(ctx)
	require.NoError(t, err)
	s = r.says("empty", "nothing is queued")
	assert.Equal(t, "ended", s.Session.Life)
	r.settled(fatesAmid(all, 1, "retry", "")...)
}

// Entries that come when the session has ended, or sits at its prompt.
func TestHeartbeatStatusOfTheIdle(t *testing.T) {
	ctx := within(t)
	all := some(3)
	r := newRig(t, own).install().add(all[0])
	r.drain(ctx, prompt(1), r.options())
	r.add(all[1])
	s := r.says("no session", "1 entry waits, and no session runs: start one; the last one, ")
	assert.Equal(t, "ended", s.Session.Life)

	r.forgetSignal()
	session := r.attended(ctx, r.options())
	r.until(ctx, "the stop is approved", r.approved)
	r.add(all[2])
	s = r.says("session busy", "waits at its prompt")
	assert.Equal(t, session.Pid(), s.Session.PID)
	r.quit(ctx, session)
	r.says("no session", "ended at")
}

// An API error in the turn of an entry, while the session sits at its prompt and
// after that has ended.
func TestHeartbeatStatusOfTheFailed(t *testing.T) {
	for name, reply := range map[string]model.Reply{
		"529": model.Overloaded(),
		"500": model.Error(500, "api_error", "Internal server error"),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			r, s, _ := failedAmid(ctx, t, reply)
			seen := r.says("failed", "its turn ended in an error at")
			assert.Contains(t, seen.Why, "server_error")
			assert.Equal(t, "running", seen.Session.Life)
			r.quit(ctx, s)
			r.says("orphaned", "was in flight when session "+short(seen.Session.ID)+" ended at")
			r.run("", "recover")
			r.holdsOn(ctx)
			r.says("backing off", "then the entry ")
			r.run("", "resume") // in place of waiting for its end
			r.says("no session", "wait")
		})
	}
}

// doctor runs in the client's environment, and fails: its words and its status.
func (r *rig) doctor(ctx context.Context, args ...string) (stdout string, status int) {
	r.t.Helper()
	d := r.start(ctx, []string{r.onPath()}, "", r.heartbeat(), append([]string{"doctor", "--inbox", r.inbox, "--project", r.Project}, args...)...)
	stdout, _, status = d.wait()
	return stdout, status
}

// distrust makes the project a folder that nobody has answered for.
func (r *rig) distrust() {
	r.t.Helper()
	account := r.firstRun()
	account["projects"] = map[string]any{}
	r.writeJSON(filepath.Join(r.Home, ".claude.json"), account)
}

// If hooks do not run, status knows no session, and doctor says why.
func TestHeartbeatStatusWithoutHooks(t *testing.T) {
	t.Run("not trusted", func(t *testing.T) {
		ctx := within(t)
		r := newRig(t, own).add(some(1)...)
		r.installIn(r.projectSettings())
		r.distrust()
		s := r.Interactive(Options{})
		_, err := s.WaitScreen(ctx, 0, "trust this folder")
		require.NoError(t, err)
		r.says("no session", "no session has ever asked")
		stdout, status := r.doctor(ctx)
		assert.Equal(t, 1, status)
		assert.Regexp(t, `(?m)^fail +trust `, stdout)
		assert.Zero(t, r.turns())
	})
	t.Run("disabled", func(t *testing.T) {
		ctx := within(t)
		r := newRig(t, own).install().add(some(1)...)
		r.writeJSON(r.projectSettings(), map[string]any{"disableAllHooks": true})
		r.drain(ctx, prompt(1), r.options())
		r.says("no session", "no session has ever asked")
		stdout, status := r.doctor(ctx, "--settings", r.settings)
		assert.Equal(t, 1, status)
		assert.Regexp(t, `(?m)^fail +hooks-on `, stdout)
		assert.Nil(t, r.flying())

		require.NoError(t, os.Remove(r.projectSettings()))
		stdout, status = r.doctor(ctx, "--settings", r.settings)
		assert.Zero(t, status, stdout)
	})
}
