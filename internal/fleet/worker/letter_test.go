package worker_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

// A dead letter, and the message that its requeue sends, have each byte of the message and
// the headers that its sender chose.
func TestADeadLetterIsItsMessage(t *testing.T) {
	t.Parallel()
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
			given := nats.Header{message.HeaderMsgID: {id}, message.HeaderReply: {replyTo(id)}, "Team": {"x", "y: z"}, "Nats-Stream": {"OTHER"}, "raw": {"\xff"}}
			w.publish(payload, given)
			<-a.Done
			a = a.again(w, "--no-session")
			if id != "refused" {
				w.eventually("its entry is looked up", func() bool { return copyWith(w, "one") == 1 }, a)
				out, err := exec.Command("heartbeat", "cancel", "--inbox", a.inbox, id).CombinedOutput()
				require.NoError(t, err, string(out))
			}
			w.settled(a, id)
			w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
			m, err := w.l.Dead.GetLastMsgForSubject(fleet.Context(t), message.DeadSubject("WORK", id))
			require.NoError(t, err)
			assert.True(t, payload == string(m.Data), "%.100q", m.Data)
			assert.Equal(t, []string{"Team:x", "Team:y: z", "raw:\xff"}, m.Header.Values("Heartbeat-Header"))
			a.term()
			a.ended()

			out, err := exec.Command("heartbeat-nats", "dead", "requeue", "--server", w.server.URL(), id).CombinedOutput()
			require.NoError(t, err, string(out))
			again, err := w.l.Stream.GetLastMsgForSubject(fleet.Context(t), "work.a")
			require.NoError(t, err)
			assert.True(t, payload == string(again.Data), "%.100q", again.Data)
			assert.Equal(t, nats.Header{
				"Team": {"x", "y: z"}, "raw": {"\xff"}, message.HeaderReply: {replyTo(id)},
				message.HeaderID: {id}, message.HeaderAgain: {"1"}, message.HeaderMsgID: {message.Key(id) + "~1~1"}, "Nats-Expected-Stream": {"WORK"},
			}, again.Header)
		})
	}
}

// An entry that somebody cancels while the agent compares what it holds with its inbox is a
// dead letter, not a message to give back.
func TestCanceledWhileComparing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	a := w.start("one", []string{killVariable + "=appended"}, "--no-session")
	w.send("a")
	<-a.Done
	a = w.startAt(w.server.URL(), a.inbox, "one", []string{holdVariable + "=comparing"}, "--no-session")
	w.told("held", a)
	out, err := exec.Command("heartbeat", "cancel", "--inbox", a.inbox, "a").CombinedOutput()
	require.NoError(t, err, string(out))
	w.tell("go on")
	w.settled(a, "a")
	assert.Equal(t, "canceled", w.known("a").Reason)
}
