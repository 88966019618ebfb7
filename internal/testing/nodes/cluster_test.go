package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	standin "heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
	"heartbeat/internal/words"
)

// turnsVariable names the file to which the sessions' clients add a line for each turn.
const turnsVariable = "HEARTBEAT_TEST_TURNS"

func TestMain(m *testing.M) {
	script.Main(fleet.Commands{M: m}, map[string]func(){"claude": client})
}

func client() {
	os.Exit(standin.InTerminal(os.Args[1:], func(text string) string {
		if text == "begin" { // the session's own prompt, and no message
			return "ready"
		}
		f, err := os.OpenFile(os.Getenv(turnsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return err.Error() // which is no answer
		}
		time.Sleep(500 * time.Millisecond) // the work
		return "did " + text
	}))
}

// cluster is three nodes, the agents that work for them, and a requester.
type cluster struct {
	t       *testing.T
	random  *rand.Rand
	nodes   []*node
	workers []*worker
	js      jetstream.JetStream
	turns   string

	mu      sync.Mutex
	replies map[string]int // by subject

	kills, cuts, downs, updates int
	sessions                    int // that a kill ended, each perhaps in its turn
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// TestNodesAndAgentsThatFail has agents work through a stream of messages, of many keys, while nodes and agents are
// killed, cut off and updated, two of the agents with clocks that are two hours wrong. Each message is answered once
// and replied to at most once, those of a key in their order, and no agent ends by itself.
func TestNodesAndAgentsThatFail(t *testing.T) {
	long.Only(t, "servers and their agents want a machine of their own")
	wrong := wrongClocks(t)
	for _, size := range []int{3, 1} {
		t.Run(words.Count(size, "node", "nodes"), func(t *testing.T) { agentsThatFail(t, size, wrong) })
	}
}

func agentsThatFail(t *testing.T, size int, wrong string) {
	messages, keys := number("NODES_MESSAGES", long.Messages(0, 200, 1000)), number("NODES_KEYS", 50)
	seed := number("NODES_SEED", int(time.Now().UnixNano()))
	t.Logf("NODES_SEED=%d", seed)
	c := &cluster{t: t, random: rand.New(rand.NewPCG(uint64(seed), 0)), nodes: startNodes(t, size), replies: map[string]int{}}
	c.turns = filepath.Join(t.TempDir(), "turns")
	t.Setenv(turnsVariable, c.turns)
	c.setUp()
	t.Cleanup(c.explain)
	program, err := exec.LookPath("heartbeat-nats")
	require.NoError(t, err)
	builds := []string{filepath.Dir(program)}
	if other := os.Getenv(otherVariable); other != "" {
		builds = append(builds, other)
	}
	for i := range number("NODES_AGENTS", long.Messages(0, 6, 20)) {
		name := fmt.Sprint("agent", i)
		if clocks := []string{"2h", "-2h"}; i < len(clocks) {
			c.workers = append(c.workers, newWorker(t, name, c.nodes, clocks[i], wrong))
		} else {
			c.workers = append(c.workers, newWorker(t, name, c.nodes, "", builds...))
		}
	}
	ids := c.publish(messages, keys)
	for faults := number("NODES_FAULTS", messages*3/10); c.waiting() > 0 && faults > 0; faults-- {
		c.allRun()
		time.Sleep(time.Duration(200+c.random.IntN(600)) * time.Millisecond) // the work goes on between two faults
		c.fault()
	}
	for left := c.waiting(); left > 0; left = c.waiting() {
		c.eventually("fewer messages on the stream", func() bool { return c.waiting() < left })
	}
	c.eventually("that each message is settled", func() bool { return c.settled() == messages })
	c.allRun()
	c.judge(ids, keys)
}

func (c *cluster) allRun() {
	for _, a := range c.workers {
		require.False(c.t, a.endedByItself(), "%s ended: %s", a.name, a.agent.Said())
	}
}

// setUp makes the stream, and a copy of the results that forgets nothing. It may miss some: servers that are killed
// copy late, and a result is kept for two AckWaits. While a cluster elects a leader no agent is heard, so that an
// AckWait that is shorter than that has turns made twice.
func (c *cluster) setUp() {
	ackWait := 5 * time.Second
	if len(c.nodes) > 1 {
		ackWait = 15 * time.Second
	}
	nc, js := fleet.Connect(c.t, addresses(c.nodes))
	c.js = js
	c.eventually("a cluster with a leader", func() bool {
		out, err := exec.Command("heartbeat-nats", "setup", "--server", addresses(c.nodes), "--subjects", "work.>", "--replicas", strconv.Itoa(len(c.nodes)),
			"--ack-wait", ackWait.String(), "--keep-results", (2 * ackWait).String(), "--duplicates", "2s", "--max-deliver", "100").CombinedOutput()
		if err != nil {
			c.t.Logf("setup: %s", out)
		}
		return err == nil
	})
	c.eventually("the copy", func() bool {
		_, err := js.CreateOrUpdateStream(soon(c.t), jetstream.StreamConfig{
			Name: "COPY", Mirror: &jetstream.StreamSource{Name: "KV_" + message.Bucket("WORK")}, Replicas: len(c.nodes),
		})
		return err == nil
	})
	_, err := nc.Subscribe(message.ReplySubject("WORK", "*"), func(m *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.replies[m.Subject]++
	})
	require.NoError(c.t, err)
}

// explain says how servers and agents stand, if the test failed.
func (c *cluster) explain() {
	if !c.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stream, err := c.js.Stream(ctx, "WORK")
	c.t.Logf("the stream: %+v %v", stream, err)
	if err == nil {
		for info := range stream.ListConsumers(ctx).Info() {
			c.t.Logf("consumer %s: delivered %+v, acknowledged %+v, %d pending, %d waiting, %+v", info.Name, info.Delivered, info.AckFloor, info.NumAckPending, info.NumWaiting, info.Cluster)
		}
		for seq := stream.CachedInfo().State.FirstSeq; seq <= stream.CachedInfo().State.LastSeq && ctx.Err() == nil; seq++ {
			if m, err := stream.GetMsg(ctx, seq); err == nil {
				c.t.Logf("on the stream: %d %s %s", seq, m.Subject, m.Data)
			}
		}
	}
	c.t.Logf("%d messages are settled", c.settled())
	for _, a := range c.workers {
		ledger, _ := os.ReadFile(filepath.Join(filepath.Dir(a.inbox), ".nats-agent.json")) // empty if it is not there
		said := strings.Split(a.agent.Said(), "\n")
		c.t.Logf("agent %s holds %s and said\n%s", a.name, ledger, strings.Join(said[max(0, len(said)-40):], "\n"))
	}
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (c *cluster) eventually(what string, done func() bool) {
	c.t.Helper()
	require.Eventually(c.t, done, time.Duration(number("NODES_WAIT", 10))*time.Minute, 100*time.Millisecond, what)
}

// publish sends messages whose text is their id, those of a key one behind the other. By a clock that is two hours ahead
// a third of them would be over, and by one that is as far behind another third not yet due.
func (c *cluster) publish(messages, keys int) (ids []string) {
	last := make([]uint64, keys)
	for i := range messages {
		id, key := fmt.Sprint("m", i), i%keys
		text := []string{
			id,
			fmt.Sprintf(`{"prompt":%q,"expires_at":%q}`, id, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)),
			fmt.Sprintf(`{"prompt":%q,"not_before":%q}`, id, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)),
		}[i%3]
		ack, err := c.js.PublishMsg(fleet.Context(c.t), &nats.Msg{Subject: fmt.Sprint("work.a.", key), Data: []byte(text), Header: nats.Header{
			message.HeaderID: {id}, message.HeaderReply: {message.ReplySubject("WORK", message.Key(id))},
			message.HeaderAfter: {strconv.FormatUint(last[key], 10)},
		}}, jetstream.WithRetryAttempts(100)) // while nobody leads the stream
		require.NoError(c.t, err)
		ids, last[key] = append(ids, id), ack.Sequence
	}
	return ids
}

// waiting is how many messages are on the stream; while nobody says, not none.
func (c *cluster) waiting() int {
	stream, err := c.js.Stream(soon(c.t), "WORK")
	if err != nil {
		return 1
	}
	return int(stream.CachedInfo().State.Msgs)
}

func (c *cluster) fault() {
	a := c.workers[c.random.IntN(len(c.workers))]
	lasts := time.Duration(c.random.IntN(1500)) * time.Millisecond
	switch c.random.IntN(10) {
	case 0, 1:
		c.kills++
		if a.kill(c.random.IntN(2) == 0) {
			c.sessions++
		}
		a.start()
	case 2:
		c.cut(a, (*fleet.Proxy).Cut, lasts)
	case 3:
		c.cut(a, (*fleet.Proxy).HalfOpen, lasts)
	case 4:
		c.cut(a, func(p *fleet.Proxy) { p.Delay(100 * time.Millisecond) }, lasts)
	case 5:
		c.down(c.nodes[c.random.IntN(len(c.nodes))], (*node).kill, lasts)
	case 6:
		if leader := c.leader(); leader != nil {
			c.down(leader, (*node).kill, lasts)
		}
	case 7:
		c.updates++
		if c.random.IntN(3) > 0 {
			a.update()
			return
		}
		c.down(c.nodes[c.random.IntN(len(c.nodes))], (*node).update, lasts)
	case 8:
		c.cut(a, (*fleet.Proxy).Drop, 0)
	case 9:
		c.cut(a, (*fleet.Proxy).Pause, lasts)
	}
}

func (c *cluster) cut(a *worker, how func(*fleet.Proxy), lasts time.Duration) {
	c.cuts++
	a.each(how)
	time.Sleep(lasts)
	a.each((*fleet.Proxy).Heal)
}

func (c *cluster) down(n *node, how func(*node), lasts time.Duration) {
	c.downs++
	how(n)
	time.Sleep(lasts)
	n.start()
}

// leader is the node that leads the stream, nil if nobody does.
func (c *cluster) leader() *node {
	stream, err := c.js.Stream(soon(c.t), "WORK")
	if err != nil {
		return nil
	}
	if stream.CachedInfo().Cluster == nil {
		return c.nodes[0]
	}
	for _, n := range c.nodes {
		if n.name == stream.CachedInfo().Cluster.Leader {
			return n
		}
	}
	return nil
}

// decision is what the results said of a message.
type decision struct {
	upstream.Record
	at uint64 // its place among all decisions
}

// settled is how many messages have a lease that says so, which is kept for a day.
func (c *cluster) settled() (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	results, err := c.js.KeyValue(ctx, message.Bucket("WORK"))
	if err != nil {
		return 0
	}
	leases, err := results.Watch(ctx, "lease.*")
	if err != nil {
		return 0
	}
	defer func() { _ = leases.Stop() }() // only read
	for {
		select {
		case e := <-leases.Updates():
			var l upstream.Lease
			if e == nil {
				return n
			}
			if json.Unmarshal(e.Value(), &l) == nil && l.Settled {
				n++
			} else if c.t.Failed() {
				c.t.Logf("not settled: %s", e.Value())
			}
		case <-ctx.Done():
			return 0
		}
	}
}

// decided are the decisions in the copy, by message, in the order of the results.
func (c *cluster) decided() map[string][]decision {
	all := map[string][]decision{}
	stream, err := c.js.Stream(soon(c.t), "COPY")
	if err != nil {
		return nil
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(soon(c.t), seq)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound): // a batch that was refused has taken a number
		case err != nil:
			seq-- // a node that has just started may not answer
		case strings.Count(m.Subject, ".") == 2: // $KV.BUCKET.KEY, and no lease or answer
			if r, err := upstream.ParseRecord(m.Data); err == nil {
				all[r.ID] = append(all[r.ID], decision{*r, seq})
			}
		}
	}
	return all
}

// judge looks at all that is kept. A message that is settled without a dead letter was answered.
func (c *cluster) judge(ids []string, keys int) {
	letters, err := c.js.Stream(fleet.Context(c.t), message.Dead("WORK"))
	require.NoError(c.t, err)
	assert.Zero(c.t, letters.CachedInfo().State.Msgs, "dead letters")
	decided := c.decided()
	by := make([]uint64, keys) // the place of the last decision of each key
	for i, id := range ids {
		its := decided[id]
		agents := map[string]bool{}
		for _, d := range its {
			agents[d.Agent] = true
			assert.Equal(c.t, upstream.WasAnswered, d.Outcome, "%s: %s", id, d.Reason)
		}
		assert.LessOrEqual(c.t, len(agents), 1, "who decided about %s: %v", id, agents)
		assert.LessOrEqual(c.t, c.replies[message.ReplySubject("WORK", message.Key(id))], 1, "replies to %s", id)
		if len(its) > 0 {
			assert.Less(c.t, by[i%keys], its[0].at, "%s came before one of its key that was sent before", id)
			by[i%keys] = its[0].at
		}
	}
	raw, err := os.ReadFile(c.turns)
	require.NoError(c.t, err)
	twice := len(strings.Fields(string(raw))) - len(ids)
	c.t.Logf("%d messages of %d keys, %d agents: %d kills of agents, %d of them with their session, %d partitions, %d nodes down, %d updates: %d turns twice; %d decisions seen",
		len(ids), keys, len(c.workers), c.kills, c.sessions, c.cuts, c.downs, c.updates, twice, len(decided))
	assert.LessOrEqual(c.t, twice, c.sessions+len(ids)/100)
}
