package upstream

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
)

func TestParseAck(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"$JS.ACK.WORK.hb_work.2.7.9.1700000000000000001.3",
		"$JS.ACK._.ACC.WORK.hb_work.2.7.9.1700000000000000001.3",
		"$JS.ACK.hub.ACC.WORK.hb_work.2.7.9.1700000000000000001.3.random",
	} {
		got, err := parseAck(subject)
		require.NoError(t, err, subject)
		assert.Equal(t, "WORK hb_work 7", fmt.Sprint(got.Stream, " ", got.Consumer, " ", got.Sequence.Stream), subject)
		assert.True(t, time.Unix(0, 1700000000000000001).Equal(got.Timestamp), subject)
	}
	for _, subject := range []string{
		"", "$JS.ACK", "work.review", "$JS.ACK.WORK.hb_work.2.7.9.3", "$JS.ACK.WORK.hb_work.2.x.9.1.3",
		"$JS.ACK.WORK.hb_work.2.7.9.x.3", "$JS.ACK.WORK.*.2.7.9.1.3", "$JS.API.STREAM.DELETE.WORK.7.9.1.3",
	} {
		_, err := parseAck(subject)
		assert.ErrorContains(t, err, "its claim has", subject)
	}
}

func TestMayReply(t *testing.T) {
	t.Parallel()
	u := &Upstream{stream: "WORK"}
	for subject, want := range map[string]bool{
		"_hb.WORK.reply.x": true, "_INBOX.a.b": true, "answers.mine": true,
		"_hb.OTHER.reply.x": false, "_hb.WORK.dead.x": false, "$JS.API.STREAM.DELETE.WORK": false,
		"$KV.WORK-results.job": false, "a.*": false, "a.>": false, "a b": false, "a\r\nPUB x": false,
		".a": false, "a.": false, "a..b": false,
	} {
		assert.Equal(t, want, u.mayReply(subject), "%q", subject)
	}
}

func TestAnAcknowledgementOfAnotherMessage(t *testing.T) {
	t.Parallel()
	u := &Upstream{stream: "WORK"}
	_, err := u.acknowledge(t.Context(), Claim{Message: message.Message{Stream: "WORK", Seq: 8, Ack: "$JS.ACK.WORK.c.2.7.9.1.3"}}, ackAnswered)
	assert.EqualError(t, err, "its claim says WORK:8, and its acknowledgement goes to WORK:7")
}
