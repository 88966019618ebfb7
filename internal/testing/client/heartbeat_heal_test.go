package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/model"
)

// happened are the events of one kind that the inbox's log has, in order.
func (r *rig) happened(kind string) (all []loggedEvent) {
	r.t.Helper()
	for l := range strings.Lines(r.run("", "log", "--json")) {
		var e loggedEvent
		require.NoError(r.t, json.Unmarshal([]byte(l), &e), l)
		if e.Event == kind {
			all = append(all, e)
		}
	}
	return all
}

type loggedEvent struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// until waits for the nth event of a kind.
func (r *rig) untilHappened(ctx context.Context, kind string, nth int) loggedEvent {
	r.t.Helper()
	var all []loggedEvent
	r.until(ctx, kind, func() bool {
		all = r.happened(kind)
		return len(all) >= nth
	})
	return all[nth-1]
}

// holdsOn has a back-off that is in force last for hours: what follows may be slow.
func (r *rig) holdsOn(ctx context.Context) {
	r.t.Helper()
	box, err := inbox.Open(r.inbox, inbox.Options{LockWait: patience})
	require.NoError(r.t, err)
	tx, err := box.Begin(ctx)
	require.NoError(r.t, err)
	defer tx.Close()
	b, err := tx.Holds().Backoff()
	require.NoError(r.t, err)
	if b != nil {
		_, err = tx.Holds().BackOff(3*time.Hour, b.Streak, b.Named, b.Failure)
		require.NoError(r.t, err)
		require.NoError(r.t, tx.Commit())
	}
}

// The API is overloaded for a while. The session recovers by itself, every entry is
// answered once, and no attempt is used up.
func TestHeartbeatHealsAfterAStorm(t *testing.T) {
	ctx := minutes(t)
	r, s := asleep(ctx, t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" && nth <= 2 {
			return model.Overloaded()
		}
		return own(tag, nth)
	}, "--max-attempts", "1")
	all := some(3)
	r.add(all...)
	var until []time.Time
	for nth := 1; nth <= 2; nth++ {
		e := r.untilHappened(ctx, "backing off", nth)
		assert.Contains(t, e.Reason, "529")
		until = append(until, e.Until)
	}
	r.answered(ctx, 3)
	assert.Greater(t, until[1].Sub(r.happened("backing off")[1].At), until[0].Sub(r.happened("backing off")[0].At), "each wait is longer")
	fates := answeredOnce(all...)
	fates[0].arrivals = 3
	r.settled(fates...)
	assert.Equal(t, 4+2, r.turns(), "nothing was asked while backing off")
	assert.NoFileExists(t, r.signal)
	r.quit(ctx, s)
}

// An error that may be the entry's own fault uses up its attempts. Then the next entry
// is delivered.
func TestHeartbeatHealsBehindAPoisonedEntry(t *testing.T) {
	ctx := minutes(t)
	r, s := asleep(ctx, t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" {
			return model.Error(500, "api_error", "Internal server error")
		}
		return own(tag, nth)
	}, "--max-attempts", "1")
	all := some(2)
	r.add(all...)
	r.answered(ctx, 1)
	r.settled(fate{entry: all[0], arrivals: 1, attempt: 1, reason: "attempts exhausted"}, answeredOnce(all[1])[0])
	r.quit(ctx, s)
}

// A rate limit that names its end is waited out until then, also by a session that
// was started meanwhile.
func TestHeartbeatHealsWhenTheLimitEnds(t *testing.T) {
	ctx := minutes(t)
	Find(t)
	ends := unhurried(t, 4*time.Second, clients) // behind the end of the session that met it
	limited := model.Error(429, "rate_limit_error", fmt.Sprintf("usage limit reached, try again in %.0f seconds", ends.Seconds()))
	r, s := asleep(ctx, t, first("[e1]", limited), "--max-attempts", "1")
	all := some(2)
	r.add(all...)
	held := r.untilHappened(ctx, "backing off", 1)
	assert.Greater(t, held.Until.Sub(held.At), ends)
	r.quit(ctx, s)
	r.hooksGone(ctx)
	next := r.attended(ctx, r.options())
	r.answered(ctx, 2)
	assert.False(t, r.results()[0].DeliveredAt.Before(held.Until.Truncate(time.Second)), "it was asked too soon")
	fates := answeredOnce(all...)
	fates[0].arrivals = 2
	r.settled(fates...)
	r.quit(ctx, next)
}

// If only a person can help, the model is not asked until one has.
func TestHeartbeatPausesWithoutALogin(t *testing.T) {
	for name, c := range map[string]struct {
		reply model.Reply
		error string
	}{
		"401": {model.Error(401, "authentication_error", "invalid x-api-key"), "authentication_failed"},
		"404": {model.Error(404, "not_found_error", "model: nonesuch"), "model_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			var mended atomic.Bool
			r, s := asleep(ctx, t, func(tag string, nth int) model.Reply {
				if tag == "[e1]" && !mended.Load() {
					return c.reply
				}
				return own(tag, nth)
			}, "--max-attempts", "1")
			all := some(2)
			r.add(all...)
			assert.Contains(t, r.untilHappened(ctx, "paused", 1).Reason, c.error)
			assert.Contains(t, r.says("paused", c.error).Why, "resume")
			r.until(ctx, "it is given back", r.atRest)
			r.waiting(ctx, 1)
			mended.Store(true)
			r.run("", "resume")
			r.answered(ctx, 2)
			fates := answeredOnce(all...)
			fates[0].arrivals = 2
			r.settled(fates...)
			r.quit(ctx, s)
		})
	}
}

// A tool needs a person's permission: the inbox knows that the session asks, and
// since when, until it goes on.
func TestHeartbeatAsksForAPerson(t *testing.T) {
	ctx := within(t)
	r := wakeable(t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" && nth == 1 {
			return model.Tool("Bash", map[string]any{"command": "rm -rf /nonesuch", "description": "remove"})
		}
		return own("[e1]", nth)
	})
	o := r.options()
	o.Args = []string{"--permission-mode", "default"}
	s := r.attended(ctx, o)
	r.fellAsleep(ctx, 1)
	all := some(1)
	r.add(all...)
	assert.Contains(t, r.untilHappened(ctx, "session asks", 1).Reason, "permission_prompt")
	r.says("waiting for a person", "permission_prompt")
	require.NoError(t, s.Enter()) // the first choice is to allow it once
	r.answered(ctx, 1)
	r.says("empty", "")
	r.quit(ctx, s)
}

// A settings file with both wirings delivers each entry once.
func TestHeartbeatBothWirings(t *testing.T) {
	ctx := within(t)
	all := some(6)
	r := wakeable(t, own)
	r.edit(func(settings map[string]any) {
		hooks := settings["hooks"].(map[string]any)
		for _, event := range []string{"Stop", "StopFailure"} {
			entry := map[string]any{"type": "command", "command": r.stop, "args": []any{"--inbox", r.inbox}}
			hooks[event] = append(hooks[event].([]any), map[string]any{"hooks": []any{entry}})
		}
	})
	r.add(all[:4]...)
	s := r.attended(ctx, r.options())
	r.answered(ctx, 4)
	r.add(all[4:]...)
	r.answered(ctx, 6)
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, 7, r.turns())
	r.quit(ctx, s)
	r.hooksGone(ctx)
}
