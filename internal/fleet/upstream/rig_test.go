package upstream

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

const (
	stream  = "WORK"
	subject = "work.review"
)

// world is a server with what setup makes, and somebody who listens for replies.
type world struct {
	t      testing.TB
	server *fleet.Server
	nc     *nats.Conn
	js     jetstream.JetStream

	said    chan *nats.Msg // what a flush has waited for is in it
	replies []*nats.Msg
}

func newWorld(t testing.TB, s *fleet.Server) *world {
	w := &world{t: t, server: s}
	w.nc, w.js = s.Connect(t)
	ctx := fleet.Context(t)
	w.makeStream()
	for _, name := range []string{message.Bucket(stream), message.Agents(stream)} {
		w.makeBucket(name)
	}
	_, err := w.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: message.Replies(stream)})
	require.NoError(t, err)
	_, err = w.js.CreateStream(ctx, jetstream.StreamConfig{Name: message.Dead(stream), Subjects: []string{message.DeadSubjects(stream)}})
	require.NoError(t, err)
	w.said = make(chan *nats.Msg, 1<<10)
	_, err = w.nc.ChanSubscribe(message.ReplySubject(stream, "*"), w.said)
	require.NoError(t, err)
	w.flush()
	return w
}

func (w *world) makeBucket(name string) {
	kv, err := w.js.CreateKeyValue(fleet.Context(w.t), jetstream.KeyValueConfig{Bucket: name})
	require.NoError(w.t, err)
	status, err := kv.Status(fleet.Context(w.t))
	require.NoError(w.t, err)
	config := status.(*jetstream.KeyValueBucketStatus).StreamInfo().Config
	config.AllowAtomicPublish, config.AllowMsgTTL = true, true
	_, err = w.js.UpdateStream(fleet.Context(w.t), config)
	require.NoError(w.t, err)
}

func (w *world) makeStream() {
	fleet.WorkQueue(w.t, w.js, stream, "work.>")
	_, err := w.js.CreateConsumer(fleet.Context(w.t), stream, jetstream.ConsumerConfig{
		Durable: message.Consumer(subject), AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Second,
	})
	require.NoError(w.t, err)
}

// flush waits until the server has passed on what it had, and until that was noted.
func (w *world) flush() { require.NoError(w.t, w.nc.FlushTimeout(time.Minute)) }

// message sends one and returns it as the agent claims it.
func (w *world) message(id, agent string) Claim { return w.taken(w.pull(w.sent(id), agent)) }

func (w *world) sent(id string) string {
	m := nats.NewMsg(subject)
	m.Header.Set(message.HeaderID, id)
	m.Data = []byte("please do " + id)
	_, err := w.js.PublishMsg(fleet.Context(w.t), m)
	require.NoError(w.t, err)
	return id
}

// taken is the claim with its lease.
func (w *world) taken(c Claim) Claim {
	c.Taken = time.Now()
	s, err := w.agent().Take(fleet.Context(w.t), c)
	require.NoError(w.t, err)
	require.NotZero(w.t, s.Lease, "%+v", s)
	c.Lease, c.Attempt = s.Lease, s.Attempt
	return c
}

// by is the claim of another agent that was handed out a newer copy.
func (w *world) by(agent string, c Claim) Claim {
	c.Agent, c.Copy = agent, c.Copy+1
	return w.taken(c)
}

func (w *world) pull(id, agent string) Claim {
	con, err := w.js.Consumer(fleet.Context(w.t), stream, message.Consumer(subject))
	require.NoError(w.t, err)
	m, err := con.Next(jetstream.FetchMaxWait(time.Minute))
	require.NoError(w.t, err)
	c := Claim{Agent: agent}
	c.Message, err = message.Parse(m)
	require.NoError(w.t, err)
	c.ID, c.Entry, c.Data, c.Headers = id, message.EntryID(id, 0), nil, nil
	c.Reply = message.ReplySubject(stream, "r"+strconv.FormatUint(c.Seq, 10))
	return c
}

// agent is a life of an agent; the next one is another.
func (w *world) agent() *Upstream { return w.agentOn(w.js) }

func (w *world) agentOn(js jetstream.JetStream) *Upstream {
	u, err := Open(fleet.Context(w.t), js, stream)
	require.NoError(w.t, err)
	return u
}

func (w *world) left() uint64 {
	s, err := w.js.Stream(fleet.Context(w.t), stream)
	require.NoError(w.t, err)
	return s.CachedInfo().State.Msgs
}

func (w *world) replied() []*nats.Msg {
	w.flush()
	for {
		select {
		case m := <-w.said:
			w.replies = append(w.replies, m)
		default:
			return slices.Clone(w.replies)
		}
	}
}

// results are the keys of the bucket of results, without leases.
func (w *world) results() []string {
	return slices.DeleteFunc(w.keys(message.Bucket(stream)), func(key string) bool { return strings.HasPrefix(key, "lease.") })
}

func (w *world) keys(bucket string) []string {
	kv, err := w.js.KeyValue(fleet.Context(w.t), bucket)
	require.NoError(w.t, err)
	all, err := kv.Keys(fleet.Context(w.t))
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil
	}
	require.NoError(w.t, err)
	slices.Sort(all)
	return all
}

func (w *world) answer(key string) Answer {
	kv, err := w.js.KeyValue(fleet.Context(w.t), message.Bucket(stream))
	require.NoError(w.t, err)
	e, err := kv.Get(fleet.Context(w.t), key)
	require.NoError(w.t, err)
	a, err := ParseAnswer(e.Value())
	require.NoError(w.t, err)
	return a
}

// known returns the decision that counts for a message that was requeued again times, or nil.
func known(u *Upstream, id string, again int) (*Record, error) {
	r, _, err := u.decision(context.Background(), id)
	if r == nil || !r.holds(again) {
		return nil, err
	}
	return r, err
}

func (w *world) decision(id string) Record {
	r, err := known(w.agent(), id, 0)
	require.NoError(w.t, err)
	require.NotNil(w.t, r)
	return *r
}

func (w *world) letters() []*jetstream.RawStreamMsg {
	s, err := w.js.Stream(fleet.Context(w.t), message.Dead(stream))
	require.NoError(w.t, err)
	var all []*jetstream.RawStreamMsg
	for seq := max(1, s.CachedInfo().State.FirstSeq); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(fleet.Context(w.t), seq)
		require.NoError(w.t, err)
		all = append(all, m)
	}
	return all
}

// recorded notes the steps of a call.
func recorded(u *Upstream) *[]string {
	var all []string
	u.reached = func(s string) { all = append(all, s) }
	return &all
}
