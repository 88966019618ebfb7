package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

func TestASessionDoesNotGetThePassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"nats://one:secret@127.0.0.1:1": "", "a,token@b": "", "nats://127.0.0.1:1": "nats://127.0.0.1:1",
	} {
		w := newWorld(t, 30*time.Second)
		a := w.start("one", []string{"NATS_URL=" + url})
		w.sendText("a", "env NATS_URL")
		w.settled(a, "a")
		e, err := w.l.Results.Get(fleet.Context(t), message.AnswerKey("a", "one"))
		if assert.NoError(t, err) {
			answer, err := upstream.ParseAnswer(e.Value())
			assert.NoError(t, err)
			assert.Equal(t, "NATS_URL="+want, answer.Reply)
		}
	}
}
