package nats_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/fleet/verbs"
	"heartbeat/internal/testing/fleet"
)

// role is a user of the server's configuration.
type role struct {
	t    *testing.T
	nc   *nats.Conn
	js   jetstream.JetStream
	user string
	url  string // with the password
	// flags are what else the commands of this user need.
	flags []string

	mu      sync.Mutex
	refused []string
	end     context.CancelFunc // of the attempt that is being refused
}

// natsRoles are the users of a server with the configuration that is shipped.
func natsRoles(t *testing.T, change ...func(*server.Options)) map[string]*role {
	return rolesOf(t, "nats-server.conf", change...)
}

func rolesOf(t *testing.T, file string, change ...func(*server.Options)) map[string]*role {
	s, err := fleet.RunFile(file, t.TempDir(), change...)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	all := map[string]*role{}
	for user, password := range map[string]string{"operator": "OPERATOR", "producer": "PRODUCER", "one": "AGENT_ONE", "two": "AGENT_TWO"} {
		r := &role{t: t, user: user, url: strings.Replace(s.URL(), "://", "://"+user+":pw-"+password+"@", 1)}
		options := []nats.Option{
			nats.UserInfo(user, "pw-"+password),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.note(err) }),
		}
		if user == "producer" {
			r.flags = []string{"--context", "producer"}
			options = append(options, nats.CustomInboxPrefix("_INBOX_producer"))
		}
		r.nc, r.js = s.Connect(t, options...)
		all[user] = r
	}
	_, err = nats.Connect(s.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	return all
}

func (r *role) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, err.Error())
	if r.end != nil {
		r.end()
	}
}

// may runs what the role has to be able to do.
func (r *role) may(what string, do func(context.Context) error) {
	r.t.Helper()
	require.NoError(r.t, do(fleet.Context(r.t)), what)
	require.NoError(r.t, r.nc.FlushTimeout(time.Minute), what)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(r.t, r.refused, what)
}

// mayNot runs what the server has to refuse.
func (r *role) mayNot(what string, do func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(fleet.Context(r.t))
	defer cancel()
	r.mu.Lock()
	r.refused, r.end = nil, cancel
	r.mu.Unlock()
	_ = do(ctx) // the server says its refusal beside the request
	require.NoError(r.t, r.nc.FlushTimeout(time.Minute), what)
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.refused) > 0
	}, 5*time.Minute, time.Millisecond, what)
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Contains(r.t, strings.ToLower(r.refused[0]), "permissions violation", what)
	r.refused, r.end = nil, nil
}

// publish is an attempt to publish.
func (r *role) publish(subject string) func(context.Context) error {
	return func(context.Context) error { return r.nc.Publish(subject, []byte("x")) }
}

// listen is an attempt to subscribe.
func (r *role) listen(subject string) func(context.Context) error {
	return func(context.Context) error {
		s, err := r.nc.SubscribeSync(subject)
		if err == nil {
			_ = r.nc.FlushTimeout(time.Minute)
			err = s.Unsubscribe()
		}
		return err
	}
}

// request is an attempt to ask JetStream.
func (r *role) request(subject, body string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.nc.RequestWithContext(ctx, "$JS.API."+subject, []byte(body))
		return err
	}
}

// setUp has the operator make all, with the defaults of setup.
func (r *role) setUp() {
	r.may("set up", func(ctx context.Context) error {
		p, err := setup.Make(ctx, r.js, &setup.Wanted{
			Stream: "WORK", MaxDeliver: 5, AckWait: time.Minute, Duplicates: 2 * time.Minute, KeepResults: time.Hour, Replicas: 1,
		})
		if err != nil {
			return err
		}
		return p.Apply(ctx)
	})
}

// send sends a message, and returns where its answer goes.
func (r *role) send(id string) string {
	m := nats.NewMsg("work.review")
	m.Data = []byte(id)
	m.Header.Set(message.HeaderID, id)
	m.Header.Set(message.HeaderReply, message.ReplySubject("WORK", nats.NewInbox()[len("_INBOX."):]))
	r.may("send", func(ctx context.Context) error { _, err := r.js.PublishMsg(ctx, m); return err })
	return m.Header.Get(message.HeaderReply)
}

// pull takes a message as an agent does.
func (r *role) pull(agent string) upstream.Claim {
	var m jetstream.Msg
	r.may("pull", func(ctx context.Context) error {
		if _, err := setup.Open(ctx, r.js, "WORK"); err != nil {
			return err
		}
		c, err := setup.Consumer(ctx, r.js, "WORK", "work.>")
		if err == nil {
			m, err = c.Next()
		}
		return err
	})
	return claimOf(r.t, m, agent)
}

func claimOf(t *testing.T, m jetstream.Msg, agent string) upstream.Claim {
	w, err := message.Parse(m)
	require.NoError(t, err)
	return upstream.Claim{Message: w, Agent: agent}
}

// answer settles a message.
func (r *role) answer(c upstream.Claim, text string) (f upstream.Fate) {
	r.may("answer", func(ctx context.Context) (err error) {
		u, err := upstream.Open(fleet.Context(r.t), r.js, "WORK")
		if err == nil {
			f, err = u.Answer(ctx, c, upstream.Answer{Reply: text, Settled: upstream.Settled{Attempts: 1}})
		}
		return err
	})
	return f
}

// command runs heartbeat-nats as this user.
func (r *role) command(args ...string) (out, said string, status int) {
	var stdout, stderr bytes.Buffer
	args = append(append(args, "--server", r.url), r.flags...)
	status = verbs.Run(args, cli.Streams{Command: "heartbeat-nats", Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), status
}

// What a producer and an operator type needs no more than their roles have.
func TestTheVerbsOfARole(t *testing.T) {
	all := natsRoles(t)
	operator, producer, one := all["operator"], all["producer"], all["one"]
	_, said, status := operator.command("setup")
	require.Zero(t, status, said)

	answered := make(chan upstream.Fate)
	go func() {
		c, err := setup.Consumer(fleet.Context(t), one.js, "WORK", "work.>")
		if !assert.NoError(t, err) {
			return
		}
		m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
		if !assert.NoError(t, err) {
			return
		}
		u, err := upstream.Open(fleet.Context(t), one.js, "WORK")
		if !assert.NoError(t, err) {
			return
		}
		f, err := u.Answer(fleet.Context(t), claimOf(t, m, "one"), upstream.Answer{Reply: "all is well", Settled: upstream.Settled{Attempts: 1}})
		assert.NoError(t, err)
		answered <- f
	}()
	out, said, status := producer.command("send", "--subject", "work.review", "--id", "a", "--wait", "--timeout", "5m", "look at it")
	require.Zero(t, status, said)
	assert.Contains(t, out, "all is well")
	assert.NotContains(t, said, "rights")
	f := <-answered
	assert.Equal(t, upstream.WasAnswered, f.Outcome)

	for _, args := range [][]string{{"results"}, {"results", "--json"}} {
		out, said, status := producer.command(args...)
		require.Zero(t, status, said)
		assert.Contains(t, out, "all is well", "%q", args)
		assert.NotContains(t, said, "rights")
	}
	for _, args := range [][]string{{"status"}, {"metrics"}, {"dead", "list"}, {"results"}} {
		_, said, status := operator.command(args...)
		assert.Zero(t, status, "%q: %s", args, said)
	}
	for _, args := range [][]string{{"status"}, {"pause"}, {"dead", "list"}, {"drain", "one"}, {"send", "--subject", "work.review", "x"}} {
		_, said, status := one.command(args...)
		assert.Equal(t, cli.ExitError, status, "%q", args)
		assert.Regexp(t, "the role of this user does not allow it|this user may not send to it", said, "%q", args)
	}
}

func TestWhatAProducerMayNot(t *testing.T) {
	all := natsRoles(t)
	operator, producer := all["operator"], all["producer"]
	operator.setUp()
	to := producer.send("a")
	producer.mayNot("take work", producer.request("CONSUMER.MSG.NEXT.WORK."+message.Consumer("work.>"), ""))
	producer.mayNot("settle work", producer.publish("$JS.ACK.WORK.x.1.1.1.1.0"))
	producer.mayNot("decide", producer.publish("$KV.WORK-results."+message.Key("a")))
	producer.mayNot("write an answer", producer.publish("$KV.WORK-results."+message.AnswerKey("a", "one")))
	producer.mayNot("reply", producer.publish(to))
	producer.mayNot("set up", producer.request("STREAM.CREATE.MORE", "{}"))
	producer.mayNot("empty the stream", producer.request("STREAM.PURGE.WORK", ""))
	producer.mayNot("hear what others are told", producer.listen("_INBOX.>"))
	producer.mayNot("hear the bucket", producer.listen("$KV.WORK-results.>"))
	producer.mayNot("hear everything", producer.listen(">"))
}

// An agent that holds a message of a stream that is deleted and made anew can tell what came of it.
func TestTheStreamOfAnAgentIsMadeAnew(t *testing.T) {
	all := natsRoles(t)
	operator, one := all["operator"], all["one"]
	operator.setUp()
	operator.send("a")
	c := one.pull("one")
	require.NoError(t, operator.js.DeleteStream(fleet.Context(t), "WORK"))
	operator.setUp()
	operator.send("b")
	assert.Contains(t, one.answer(c, "done").Left, "the stream WORK was deleted and made anew")
	assert.Equal(t, "b", one.pull("one").ID, "the message that has its sequence now stays")
}
