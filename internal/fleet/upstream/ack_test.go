package upstream

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
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

// Behind a message that stays, a server has a hole for each one that was settled, and names them all or none.
func TestWhatStandsBehindOneThatStays(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	questions, err := w.nc.SubscribeSync("$JS.API.STREAM.INFO." + stream)
	require.NoError(t, err)
	w.flush()
	asked := func() (n int) { // for all holes
		w.flush() // the client has all questions by then
		for pending, _, _ := questions.Pending(); pending > 0; pending-- {
			m, err := questions.NextMsg(time.Minute)
			require.NoError(t, err)
			if strings.Contains(string(m.Data), `"deleted_details":true`) {
				n++
			}
		}
		return n
	}
	publish := func(subject string, after uint64) uint64 {
		ack, err := w.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: nats.Header{message.HeaderAfter: {strconv.FormatUint(after, 10)}}})
		require.NoError(t, err)
		return ack.Sequence
	}
	take := func() Claim {
		con, err := w.js.Consumer(ctx, stream, message.Consumer(subject))
		require.NoError(t, err)
		m, err := con.Next(jetstream.FetchMaxWait(time.Minute))
		require.NoError(t, err)
		c, err := message.Parse(m)
		require.NoError(t, err)
		return Claim{Message: c, Agent: "one"}
	}
	publish("work.stays", 0)
	first := publish("work.key", 0)
	second := publish("work.key", first)
	u := w.agent()
	gone := func(c Claim, seq uint64) bool {
		is, err := u.Gone(ctx, c, seq)
		require.NoError(t, err)
		return is
	}
	take()
	one, two := take(), take()
	require.Equal(t, []uint64{first, second, first}, []uint64{one.Seq, two.Seq, two.After})
	assert.False(t, gone(two, two.After))
	assert.Zero(t, asked(), "nothing has left")
	_, err = u.Drop(ctx, one)
	require.NoError(t, err)
	assert.True(t, gone(two, two.After))
	assert.Zero(t, asked(), "its key has no other")
	publish("work.key", second)
	assert.True(t, gone(two, two.After))
	assert.False(t, gone(take(), second))
	assert.Equal(t, 2, asked())
}
