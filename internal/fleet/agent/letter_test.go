package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/testing/fleet"
)

// A dead letter, and the message that its requeue sends, have each byte of the message and
// the headers that its sender chose.
func TestADeadLetterIsItsMessage(t *testing.T) {
	long := strings.Repeat("x ", 5000)
	for id, payload := range map[string]string{
		"text":        "  two\r\n\tlines \x00 é\u2028 ",
		"long text":   strings.Repeat("\x01 ", 200_000),
		"object":      "{ \"b\": 1.50, \"prompt\" :\t\"x\\u00e9\", \"a\":{\"z\":1,\"a\":[ ]}, \"id\":\"mine\" }\n",
		"long object": "{\"prompt\": \"" + long + "\", \"z\":null }",
		"refused":     "a\xff\x00",
	} {
		t.Run(id, func(t *testing.T) {
			w := newWorld(t, time.Minute)
			a := w.start("one", []string{killVariable + "=appended"}, "--no-session")
			if id == "refused" {
				a.kill()
			}
			given := nats.Header{names.HeaderMsgID: {id}, names.HeaderReply: {replyTo(id)}, "Team": {"x", "y: z"}, "Nats-Stream": {"OTHER"}, "raw": {"\xff"}}
			w.publish(payload, given)
			<-a.done
			a = a.again(w, "--no-session")
			if id != "refused" {
				w.eventually("its entry is looked up", func() bool { return copyWith(w, "one") == 1 }, a)
				out, err := exec.Command("heartbeat", "cancel", "--inbox", a.inbox, id).CombinedOutput()
				require.NoError(t, err, string(out))
			}
			w.settled(a, id)
			w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
			m, err := w.l.Dead.GetLastMsgForSubject(fleet.Context(t), names.DeadSubject("WORK", id))
			require.NoError(t, err)
			assert.True(t, payload == string(m.Data), "%.100q", m.Data)
			assert.Equal(t, []string{"Team:x", "Team:y: z", "raw:\xff"}, m.Header.Values("Heartbeat-Header"))
			w.eventually("no payload left", func() bool {
				left, err := filepath.Glob(filepath.Join(filepath.Dir(a.inbox), ".nats-payload-*"))
				require.NoError(t, err)
				return len(left) == 0 // it goes behind the claim
			}, a)
			a.term()
			a.ended()

			out, err := exec.Command("heartbeat-nats", "dead", "requeue", "--server", w.server.URL(), id).CombinedOutput()
			require.NoError(t, err, string(out))
			again, err := w.l.Stream.GetLastMsgForSubject(fleet.Context(t), "work.a")
			require.NoError(t, err)
			assert.True(t, payload == string(again.Data), "%.100q", again.Data)
			assert.Equal(t, nats.Header{
				"Team": {"x", "y: z"}, "raw": {"\xff"}, names.HeaderReply: {replyTo(id)},
				names.HeaderID: {id}, names.HeaderAgain: {"1"}, names.HeaderMsgID: {names.Key(id) + "~1"}, "Nats-Expected-Stream": {"WORK"},
			}, again.Header)
		})
	}
}

// An entry that somebody cancels while the agent compares what it holds with its inbox is a
// dead letter, not a message to give back.
func TestCanceledWhileComparing(t *testing.T) {
	w := newWorld(t, time.Minute)
	a := w.start("one", []string{killVariable + "=appended"}, "--no-session")
	w.send("a")
	<-a.done
	a = w.startAt(w.server.URL(), a.inbox, "one", []string{holdVariable + "=comparing"}, "--no-session")
	w.told("held", a)
	out, err := exec.Command("heartbeat", "cancel", "--inbox", a.inbox, "a").CombinedOutput()
	require.NoError(t, err, string(out))
	w.tell("go on")
	w.settled(a, "a")
	assert.Equal(t, "canceled", w.known("a").Reason)
}

// A payload that somebody took away is made good from the entry, which has the text.
func TestADeadLetterWithoutItsPayload(t *testing.T) {
	w := newWorld(t, time.Minute)
	a := w.start("one", nil, "--no-session")
	text := strings.Repeat("x ", 5000)
	w.sendText("a", `{"prompt":"`+text+`","team":"y"}`)
	w.eventually("its entry", func() bool { return copyWith(w, "one") == 1 }, a)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(a.inbox), ".nats-payload-*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Remove(files[0]))
	out, err := exec.Command("heartbeat", "cancel", "--inbox", a.inbox, "a").CombinedOutput()
	require.NoError(t, err, string(out))
	w.settled(a, "a")
	m, err := w.l.Dead.GetLastMsgForSubject(fleet.Context(t), names.DeadSubject("WORK", "a"))
	require.NoError(t, err)
	assert.Equal(t, text, string(m.Data))
	assert.Contains(t, a.said(), "has no more than the text of its entry")
}
