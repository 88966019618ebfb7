package nats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
)

// attacked is a server with a message that agent one has answered, one that it holds, and
// one that waits. two is who attacks.
type attacked struct {
	t                       *testing.T
	operator, producer, two *role
	one                     *role
	held                    upstream.Claim
	replies                 *nats.Subscription // all, as a producer hears them
	account                 string             // of two
}

// onEach does an attack on both ways to keep agents to their role: an account for each, and
// permissions of their users in one account of an operator.
func onEach(t *testing.T, attack func(t *testing.T, a *attacked)) {
	t.Run("accounts", func(t *testing.T) { attack(t, underAttack(t)) })
	t.Run("operator", func(t *testing.T) { attack(t, newOperated(t).underAttack()) })
}

func underAttack(t *testing.T) *attacked {
	all := natsRoles(t)
	a := &attacked{t: t, operator: all["operator"], producer: all["producer"], one: all["one"], two: all["two"], account: "TWO"}
	a.operator.setUp()
	return a.begin()
}

func (a *attacked) begin() *attacked {
	t := a.t
	a.producer.send("a")
	a.one.answer(a.one.pull("one"), "a secret")
	a.producer.send("long")
	a.one.answer(a.one.pull("one"), strings.Repeat("a secret ", 1<<17))
	a.producer.send("held")
	a.held = a.one.pull("one")
	a.producer.send("waits")
	var err error
	a.replies, err = a.producer.nc.SubscribeSync(message.ReplySubject("WORK", "*"))
	require.NoError(t, err)
	require.NoError(t, a.producer.nc.FlushTimeout(time.Minute))
	return a
}

// state is all that the account WORK keeps, without times of the last request.
func (a *attacked) state() string {
	var all []any
	ctx := fleet.Context(a.t)
	list := a.operator.js.ListStreams(ctx)
	for s := range list.Info() {
		s.TimeStamp = time.Time{}
		all = append(all, s)
		stream, err := a.operator.js.Stream(ctx, s.Config.Name)
		require.NoError(a.t, err)
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			c.TimeStamp, c.NumWaiting, c.NumPending = time.Time{}, 0, 0 // the last follows the stream, a moment later
			c.Delivered.Last, c.AckFloor.Last = nil, nil
			all = append(all, c)
		}
		require.NoError(a.t, consumers.Err())
	}
	require.NoError(a.t, list.Err())
	text, err := json.MarshalIndent(all, "", " ")
	require.NoError(a.t, err)
	return string(text)
}

// settled waits until the server has done what two asked it before: what others ask now
// comes last, and they are answered. Two itself may have harmed its own account.
func (a *attacked) settled() {
	require.NoError(a.t, a.two.nc.FlushTimeout(time.Minute))
	for _, r := range []*role{a.one, a.operator} {
		for range 3 {
			_, err := r.js.Stream(fleet.Context(a.t), "WORK")
			require.NoError(a.t, err)
		}
		require.NoError(a.t, r.nc.FlushTimeout(time.Minute))
	}
}

// unanswered asks for something that no account but WORK could answer.
func (a *attacked) unanswered(what, subject, body string) {
	a.t.Helper()
	if a.account == "TWO" {
		_, err := a.two.nc.RequestWithContext(fleet.Context(a.t), subject, []byte(body))
		assert.ErrorIs(a.t, err, nats.ErrNoResponders, what)
		return
	}
	a.two.mayNot(what, func(ctx context.Context) error {
		_, err := a.two.nc.RequestWithContext(ctx, subject, []byte(body))
		return err
	})
}

// imports are the subjects that agent two may publish to, as the configuration has them,
// with names in the place of wildcards.
func imports(t *testing.T, account string) (all []string) {
	raw, err := os.ReadFile("nats-server.conf")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(raw), "\n  "+account+" {\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "\n  }\n")
	for _, m := range regexp.MustCompile(`account: WORK, subject: "(.*)"`).FindAllStringSubmatch(block, -1) {
		all = append(all, m[1])
	}
	require.Greater(t, len(all), 20)
	return all
}

// literal is a subject of those that a wildcard stands for.
func (a *attacked) literal(subject string) string {
	consumer := message.Consumer("work.>")
	for _, r := range [][2]string{
		{"CONSUMER.INFO.WORK.*", "CONSUMER.INFO.WORK." + consumer},
		{"MSG.NEXT.WORK.*", "MSG.NEXT.WORK." + consumer},
		{"$JS.ACK.WORK.>", "$JS.ACK.WORK." + consumer + ".1.999.999.1.0"},
		{"$JS.ACK.*.*.WORK.>", "$JS.ACK._.x.WORK." + consumer + ".1.999.999.1.0"},
		{"answer.*.", "answer.b."}, {"superseded.*.", "superseded.b."}, {"agent.*", "agent.one"}, {"WORK-results.*", "WORK-results.a"},
		{"*", "x"},
	} {
		subject = strings.Replace(subject, r[0], r[1], 1)
	}
	require.NotContains(a.t, subject, "*")
	require.NotContains(a.t, subject, ">")
	return subject
}

// An agent has the server answer to a subject of its choice. The server checks only what is
// asked. A subject that the agent may publish to by itself is no gain, and not among these.
func TestAnswersDoNotGoWhereAnAgentMayNot(t *testing.T) { onEach(t, answersDoNotGoWhereAnAgentMayNot) }

func answersDoNotGoWhereAnAgentMayNot(t *testing.T, a *attacked) {
	targets := []string{
		"work.review", "$KV.WORK-results." + message.AnswerKey("a", "one"), "$KV.WORK-results." + message.AnswerKey("z", "one"),
		"$KV.WORK-results." + message.SupersededKey("a", "one"), "$KV.WORK-agents." + message.DrainKey("one"), "$KV.WORK-agents." + message.AgentKey("one"),
		"$JS.API.STREAM.PURGE.WORK", "$JS.API.STREAM.DELETE.WORK", "$JS.API.CONSUMER.DELETE.WORK." + message.Consumer("work.>"),
		"_INBOX.>", "_INBOX.x", a.held.Ack,
	}
	before := a.state()
	for _, subject := range setup.Rights("WORK", "two") {
		if strings.HasPrefix(subject, "$KV.") || strings.HasPrefix(subject, "$O.") || strings.HasPrefix(subject, "_hb.") {
			continue // these write: below
		}
		for _, to := range targets {
			for _, traced := range []bool{false, true} {
				m := nats.NewMsg(a.literal(subject))
				m.Reply = to
				if strings.Contains(subject, "MSG.NEXT") {
					// It gets no message, but what the server says of that.
					m.Data = []byte(`{"batch":1,"no_wait":true,"max_bytes":1}`)
				}
				if traced {
					m.Header.Set("Nats-Trace-Dest", to)
				}
				require.NoError(t, a.two.nc.PublishMsg(m))
			}
		}
	}
	a.settled()
	assert.Equal(t, before, a.state())

	// What it may write is acknowledged to a subject of its choice, too.
	for _, subject := range []string{"$KV.WORK-results.answer.b.two", "$KV.WORK-agents.agent.two", "_hb.WORK.dead.b", "$O.WORK-replies.C.b"} {
		for _, to := range targets {
			m := nats.NewMsg(subject)
			m.Reply, m.Data = to, []byte("{}")
			m.Header.Set("Nats-Trace-Dest", to)
			require.NoError(t, a.two.nc.PublishMsg(m))
		}
	}
	a.settled()
	work, err := a.operator.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, 4, work.CachedInfo().State.LastSeq)
	kv, err := a.operator.js.KeyValue(fleet.Context(t), message.Bucket("WORK"))
	require.NoError(t, err)
	_, err = kv.Get(fleet.Context(t), message.AnswerKey("z", "one"))
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
	e, err := kv.Get(fleet.Context(t), message.AnswerKey("a", "one"))
	require.NoError(t, err)
	assert.Contains(t, string(e.Value()), "a secret")
	pending, _, err := a.replies.Pending()
	require.NoError(t, err)
	assert.Zero(t, pending)

	// The same from a user of the account WORK does land there.
	require.NoError(t, a.operator.nc.PublishRequest("$JS.API.STREAM.INFO.WORK", "work.review", nil))
	require.Eventually(t, func() bool {
		info, err := work.Info(fleet.Context(t))
		require.NoError(t, err)
		return info.State.LastSeq == 5
	}, 5*time.Minute, time.Millisecond)
}

func TestWhatAnAgentMayNotPublish(t *testing.T) { onEach(t, whatAnAgentMayNotPublish) }

func whatAnAgentMayNotPublish(t *testing.T, a *attacked) {
	before := a.state()
	for what, subject := range map[string]string{
		"work":                               "work.review",
		"an answer of another agent":         "$KV.WORK-results." + message.AnswerKey("a", "one"),
		"a superseded one of another agent":  "$KV.WORK-results." + message.SupersededKey("a", "one"),
		"what another agent says of itself":  "$KV.WORK-agents." + message.AgentKey("one"),
		"a request to another agent":         "$KV.WORK-agents." + message.DrainKey("one"),
		"that it is not to drain":            "$KV.WORK-agents." + message.DrainKey("two"),
		"to an inbox":                        "_INBOX.x",
		"a reply elsewhere":                  "reply.x",
		"a reply below one":                  message.ReplySubject("WORK", "x") + ".y",
		"a reply of another stream":          message.ReplySubject("OTHER", "x"),
		"an acknowledgement of another one":  "$JS.ACK.WORK-dead.x.1.1.1.1.0",
		"an acknowledgement of a bucket":     "$JS.ACK.KV_WORK-results.x.1.1.1.1.0",
		"to the stream's purge":              "$JS.API.STREAM.PURGE.WORK",
		"to what a server answers with":      "_R_.x",
		"an answer through the stream's API": "$JS.API.$KV.WORK-results." + message.AnswerKey("a", "one"),
	} {
		require.NoError(t, a.two.nc.Publish(subject, []byte("{}")), what)
	}
	a.settled()
	assert.Equal(t, before, a.state())
	pending, _, err := a.replies.Pending()
	require.NoError(t, err)
	assert.Zero(t, pending)

	to := message.ReplySubject("WORK", "given")
	require.NoError(t, a.two.nc.Publish(to, []byte("mine")))
	m, err := a.replies.NextMsgWithContext(fleet.Context(t))
	require.NoError(t, err)
	assert.Equal(t, to, m.Subject)
	assert.Contains(t, m.Header.Get("Nats-Request-Info"), `"`+a.account+`"`)
}

func TestWhatAnAgentMayNotAsk(t *testing.T) { onEach(t, whatAnAgentMayNotAsk) }

func whatAnAgentMayNotAsk(t *testing.T, a *attacked) {
	before := a.state()
	answer := "$KV.WORK-results." + message.AnswerKey("a", "one")
	consumer := message.Consumer("work.>")
	for _, ask := range []struct{ what, subject, body string }{
		{"an answer", "DIRECT.GET.KV_WORK-results." + answer, ""},
		{"an answer by its subject", "STREAM.MSG.GET.KV_WORK-results", `{"last_by_subj":"` + answer + `"}`},
		{"an answer by its number", "STREAM.MSG.GET.KV_WORK-results", `{"seq":1}`},
		{"an answer directly", "DIRECT.GET.KV_WORK-results", `{"seq":1}`},
		{"all answers directly", "DIRECT.GET.KV_WORK-results", `{"multi_last":["$KV.WORK-results.>"]}`},
		{"a consumer of results", "CONSUMER.CREATE.KV_WORK-results", `{"stream_name":"KV_WORK-results","config":{"deliver_subject":"x"}}`},
		{"a named consumer of results", "CONSUMER.CREATE.KV_WORK-results.x", `{"stream_name":"KV_WORK-results","config":{"name":"x"}}`},
		{"a filtered consumer of results", "CONSUMER.CREATE.KV_WORK-results.x." + answer, `{"stream_name":"KV_WORK-results","config":{"name":"x"}}`},
		{"a durable consumer of results", "CONSUMER.DURABLE.CREATE.KV_WORK-results.x", `{"stream_name":"KV_WORK-results","config":{"durable_name":"x"}}`},
		{"a copy of results", "STREAM.CREATE.MINE", `{"name":"MINE","sources":[{"name":"KV_WORK-results"}]}`},
		{"a snapshot of results", "STREAM.SNAPSHOT.KV_WORK-results", `{"deliver_subject":"x"}`},
		{"a long answer", "DIRECT.GET.OBJ_WORK-replies", `{"seq":1}`},
		{"a long answer by its number", "STREAM.MSG.GET.OBJ_WORK-replies", `{"seq":1}`},
		{"a consumer of long answers", "CONSUMER.CREATE.OBJ_WORK-replies.x.$O.WORK-replies.>", `{"stream_name":"OBJ_WORK-replies","config":{}}`},
		{"dead letters", "STREAM.MSG.GET.WORK-dead", `{"seq":1}`},
		{"dead letters directly", "DIRECT.GET.WORK-dead._hb.WORK.dead.a", ""},
		{"a message of the stream", "STREAM.MSG.GET.WORK", `{"seq":3}`},
		{"a message of the stream directly", "DIRECT.GET.WORK", `{"seq":3}`},
		{"a message by its subject", "DIRECT.GET.WORK.work.review", ""},
		{"to purge the stream", "STREAM.PURGE.WORK", ""},
		{"to purge results", "STREAM.PURGE.KV_WORK-results", ""},
		{"to delete the stream", "STREAM.DELETE.WORK", ""},
		{"to delete results", "STREAM.DELETE.KV_WORK-results", ""},
		{"to delete a message", "STREAM.MSG.DELETE.WORK", `{"seq":3}`},
		{"to change the stream", "STREAM.UPDATE.WORK", `{"name":"WORK","subjects":["other.>"]}`},
		{"to restore a stream", "STREAM.RESTORE.MINE", "{}"},
		{"to make a consumer", "CONSUMER.CREATE.WORK.x", `{"stream_name":"WORK","config":{"name":"x","ack_policy":"explicit"}}`},
		{"to delete the consumer", "CONSUMER.DELETE.WORK." + consumer, ""},
		{"to pause the consumer", "CONSUMER.PAUSE.WORK." + consumer, `{"pause_until":"2100-01-01T00:00:00Z"}`},
		{"to reset the consumer", "CONSUMER.RESET.WORK." + consumer, "{}"},
		{"to unpin the consumer", "CONSUMER.UNPIN.WORK." + consumer, "{}"},
		{"all streams", "STREAM.LIST", ""},
		{"consumers of results", "CONSUMER.LIST.KV_WORK-results", ""},
		{"to make a server leave", "SERVER.REMOVE", "{}"},
		{"to purge an account", "ACCOUNT.PURGE.WORK", ""},
	} {
		a.unanswered(ask.what, "$JS.API."+ask.subject, ask.body)
	}
	a.settled()
	assert.Equal(t, before, a.state())

	// What a rollup would take from all.
	for _, subject := range []string{"$KV.WORK-results." + message.AnswerKey("b", "two"), "$KV.WORK-agents." + message.AgentKey("two"), "_hb.WORK.dead.b"} {
		m := nats.NewMsg(subject)
		m.Header.Set("Nats-Rollup", "all")
		_, err := a.two.js.PublishMsg(fleet.Context(t), m)
		var refused *jetstream.APIError
		require.ErrorAs(t, err, &refused, subject)
		assert.Contains(t, refused.Description, "rollup", subject)
	}
	assert.Equal(t, before, a.state())
}

// Who listens in an account of its own hears what it says itself at most.
func TestAnAgentHearsNothingOfOthers(t *testing.T) { onEach(t, anAgentHearsNothingOfOthers) }

func anAgentHearsNothingOfOthers(t *testing.T, a *attacked) {
	var mu sync.Mutex
	var heard []string
	for _, subject := range []string{">", "work.>", message.ReplySubject("WORK", "*"), "_INBOX.>", "_INBOX_producer.>", "_R_.>", "$KV.>", "$JS.>", "_hb.>"} {
		_, err := a.two.nc.Subscribe(subject, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprintf("%s on %s: %.80s", m.Subject, subject, m.Data))
		})
		require.NoError(t, err)
	}
	require.NoError(t, a.two.nc.FlushTimeout(time.Minute))
	a.one.answer(a.held, "for nobody else")
	m, err := a.replies.NextMsgWithContext(fleet.Context(t))
	require.NoError(t, err)
	assert.Equal(t, "for nobody else", string(m.Data))
	a.producer.send("next")
	a.one.may("look", func(ctx context.Context) error { _, err := a.one.js.Stream(ctx, "WORK"); return err })
	require.NoError(t, a.two.nc.FlushTimeout(time.Minute))
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, heard)
}

// What subjects do not tell apart stands at the head of the configuration: if one of these
// is no longer possible, it is to be said there.
func TestWhatIsNotToldApart(t *testing.T) { onEach(t, whatIsNotToldApart) }

func whatIsNotToldApart(t *testing.T, a *attacked) {
	_, err := a.two.nc.RequestWithContext(fleet.Context(t), a.held.Ack, []byte("+ACK"))
	require.NoError(t, err, "settle what another agent holds")
	_, err = a.two.js.Publish(fleet.Context(t), "$KV.WORK-results."+message.Key("a"), []byte("{}"))
	require.NoError(t, err, "write over a decision")
	m := nats.NewMsg("$O.WORK-replies.M.x")
	m.Header.Set("Nats-Rollup", "all")
	_, err = a.two.js.PublishMsg(fleet.Context(t), m)
	require.NoError(t, err, "write over long replies")
}
