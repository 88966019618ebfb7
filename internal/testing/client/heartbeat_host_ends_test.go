package client

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
)

// ended hosts a session of one prompt until its end.
func ended(t *testing.T, script string, reply model.Reply, flags ...string) (*house, guild.Session) {
	t.Helper()
	h := newHouse(t, func(model.Request) model.Reply { return reply })
	if script != "" {
		h.shell(script)
	}
	h.flags = flags
	h.start(h.seed("ses-end", "go [e1]", guildOf...))
	s := h.await(minutes(t), "ses-end")
	assert.Equal(t, guild.Count{Applied: 1}, s.Record)
	h.agrees(s)
	assert.Empty(t, h.letters())
	h.isClean("ses-end")
	return h, s
}

// killedAfterItsAnswer is a client that ends with status 0 once it has printed its answer.
// The answer has no end, so that however late the reader is, no hook was run.
const killedAfterItsAnswer = `(echo $BASHPID >pid; exec "$CLAUDE" "$@") | while IFS= read -r line; do
	printf '%s\n' "$line"
	case $line in '{"type":"assistant"'*) kill -9 $(cat pid); exit 0;; esac
done`

// An exit status of 0 says nothing of a prompt: its hook does, or else the result line.
func TestHostedEnds(t *testing.T) {
	t.Run("0 without an answer", func(t *testing.T) {
		t.Parallel()
		h, s := ended(t, killedAfterItsAnswer, model.Text("done").Unended())
		assert.Equal(t, "failed", s.Status)
		assert.Equal(t, 0.0, reported(s, "exitCode"))
		assert.Zero(t, h.state(s.ID).Entries.Answered)
	})
	t.Run("0 without a word", func(t *testing.T) {
		t.Parallel()
		_, s := ended(t, `cat >/dev/null`, model.Text("done"))
		assert.Equal(t, "failed", s.Status)
		assert.Equal(t, 0.0, reported(s, "exitCode"))
	})
	t.Run("a result and no end", func(t *testing.T) {
		t.Parallel()
		h, s := ended(t, `"$CLAUDE" "$@"; trap "" TERM; while :; do sleep 1; done`, model.Text("done"), "--grace", "1s")
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, "exit-deadline", reported(s, "ended"))
		assert.True(t, h.state(s.ID).Exit.Forced)
	})
	t.Run("rate limit", func(t *testing.T) {
		t.Parallel()
		at := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Hour)
		_, s := ended(t, "", model.Error(429, "rate_limit_error", "You've hit your session limit · resets "+at.Format("3pm")+" (UTC)"))
		assert.Equal(t, "rate-limited", s.Status)
		assert.Equal(t, at.Format(time.RFC3339), reported(s, "resetsAt"))
		tag, _ := reported(s, "terminationTag").(map[string]any)
		assert.Equal(t, "rate-limit", tag["kind"])
	})
	t.Run("stderr and a child that stays", func(t *testing.T) {
		t.Parallel()
		_, s := ended(t, `setsid sleep 1000 & "$CLAUDE" "$@"; echo "it broke" >&2; exit 3`, model.Text("done"))
		assert.Equal(t, "completed", s.Status, "the prompt was answered")
		assert.Equal(t, 3.0, reported(s, "exitCode"))
	})
}

// A message of 50 MB, in the stream and as the result of a tool, and 1,000 messages.
func TestHostedSizes(t *testing.T) {
	t.Run("line of 50 MB", func(t *testing.T) {
		t.Parallel()
		_, s := ended(t, `printf '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"'
head -c 52428800 /dev/zero | tr '\0' x
printf '"}]}}\n'
exec "$CLAUDE" "$@"`, model.Text("done"))
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, 2, s.Messages)
	})
	t.Run("1,000 messages", func(t *testing.T) {
		t.Parallel()
		h, s := ended(t, `for i in $(seq 1000); do echo '{"type":"assistant","message":{"id":"m'$i'","content":[{"type":"text","text":"line '$i'"}]}}'; done
exec "$CLAUDE" "$@"`, model.Text("done"))
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, 1001, s.Messages)
		texts, _ := h.agrees(s)
		assert.Equal(t, "line 1000", texts[999])
	})
	t.Run("tool result of 50 MB", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, func(r model.Request) model.Reply {
			if len(r.ToolResults) > 0 {
				return model.Text("done")
			}
			return model.Tool(guildTools+"signal", map[string]any{})
		})
		h.start(h.seed("ses-end", "go [e1]", guild.Tool{Name: "signal", Method: "POST", Size: 50 << 20}))
		s := h.await(minutes(t), "ses-end")
		assert.Equal(t, "completed", s.Status)
		_, results := h.agrees(s)
		require.Len(t, results, 1)
		// The client keeps the result in a file of its own.
		assert.Equal(t, h.modelGot(), results)
		t.Log(strings.ToValidUTF8(results[0][:min(200, len(results[0]))], "?"))
		h.isClean("ses-end")
	})
}

// However a session is cancelled, it ends as cancelled and is reported once.
func TestHostedCancel(t *testing.T) {
	for name, cancel := range map[string]func(h *house, u up){
		"SIGTERM": func(h *house, u up) { assert.NoError(t, syscall.Kill(-u.PGID, syscall.SIGTERM)) },
		"SIGINT":  func(h *house, u up) { assert.NoError(t, syscall.Kill(u.PID, syscall.SIGINT)) },
		"SIGHUP":  func(h *house, u up) { assert.NoError(t, syscall.Kill(u.PID, syscall.SIGHUP)) },
		"verb":    func(h *house, u up) { h.verb("cancel", u.SessionID) },
		"twice": func(h *house, u up) {
			h.verb("cancel", u.SessionID, "--grace", "30s")
			h.verb("cancel", u.SessionID, "--grace", "0s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, func(model.Request) model.Reply { return model.Hang() })
			u := h.start(h.seed("ses-cancel", "go [e1]", guildOf...))
			h.send(u.SessionID, "more [e2]")
			ctx := minutes(t)
			_, err := h.Model.WaitRequests(ctx, 1)
			require.NoError(t, err)
			cancel(h, u)
			s := h.await(ctx, u.SessionID)
			assert.Equal(t, "cancelled", s.Status)
			assert.Equal(t, guild.Count{Applied: 1}, s.Record)
			assert.Equal(t, "cancel", reported(s, "ended"))
			e := h.state(u.SessionID).Entries
			assert.Equal(t, 2, e.Queued+e.DeadLettered, "%+v", e)
			h.verb("cancel", u.SessionID) // that it has ended already is no failure
			h.agrees(s)
			assert.Empty(t, h.letters())
			h.isClean(u.SessionID)
		})
	}
}

// A client whose user has turned hooks off answers all the same, and says so itself.
func TestHostedWithoutHooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(model.Request) model.Reply { return model.Text("done") })
	h.writeJSON(filepath.Join(h.Home, ".claude", "settings.json"), map[string]any{"disableAllHooks": true})
	h.start(h.seed("ses-end", "go [e1]", guildOf...))
	s := h.await(minutes(t), "ses-end")
	assert.Equal(t, "completed", s.Status, reported(s, "error"))
	assert.Equal(t, 1, h.state(s.ID).Entries.Answered)
	assert.Contains(t, fmt.Sprint(reported(s, "warnings")), "settings.json has disableAllHooks, so that no hook of the client ran: that 1 prompt was answered is known from its own result line alone")
	h.agrees(s)
	h.isClean("ses-end")
}
