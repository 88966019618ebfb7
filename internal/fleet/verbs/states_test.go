package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/see"
	"heartbeat/internal/testing/fleet"
)

// there is a server with the stream WORK.
func there(t *testing.T) *world {
	s := fleet.Start(t)
	nc, js := s.Connect(t)
	require.NoError(t, makeStream(js))
	return &world{s, nc, js, map[string]upstream.Claim{}}
}

// send sends messages, the first one with id m-1.
func (w *world) send(t *testing.T, subjects ...string) {
	for i, subject := range subjects {
		_, err := w.js.Publish(fleet.Context(t), subject, []byte("text"), jetstream.WithMsgID(fmt.Sprint("m-", i+1)))
		require.NoError(t, err)
	}
}

func (w *world) do(t *testing.T, err error) { require.NoError(t, err) }

// stateCase is a state of a stream: what makes it, and all that status then prints.
type stateCase struct {
	make func(t *testing.T, w *world)
	out  string
}

const held = `holds=[{"id":"m-1","seq":1,"subject":"work.a","state":"in flight","since":"$AGO","progress_at":"$AGO"}]`

var states = map[state]stateCase{
	stateEmpty: {func(t *testing.T, w *world) {
		w.do(t, w.says(fleet.Context(t), "one", nil))
	}, `
waiting       0
in work       0
dead letters  0
one	idle	TIME	alpha	work.>				
nothing waits: the stream is empty
`},
	stateNoAgent: {func(t *testing.T, w *world) {
		w.send(t, "work.a")
		w.do(t, w.says(fleet.Context(t), "gone", []string{"ended=true"}))
	}, `
waiting       1
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
gone	ended	TIME	alpha	work.>				
1 message waits: no agent is there, which heartbeat-nats agent starts
`},
	stateAway: {func(t *testing.T, w *world) {
		w.send(t, "work.a")
		w.do(t, w.says(fleet.Context(t), "one", []string{"every_seconds=0.001"}))
	}, `
waiting       1
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
one	away	TIME	alpha	work.>				
1 message waits: no agent is there; one on alpha was seen last, just now
`},
	statePaused: {func(t *testing.T, w *world) {
		w.send(t, "work.a")
		w.do(t, w.says(fleet.Context(t), "one", nil))
		status, _, said := run(t, "pause", "--server", w.server.URL())
		require.Zero(t, status, said)
	}, `
waiting       1
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
one	idle	TIME	alpha	work.>				
1 message waits: the stream is paused: heartbeat-nats resume --stream WORK ends that
`},
	stateWaiting: {func(t *testing.T, w *world) {
		w.send(t, "work.a", "work.b")
		w.do(t, w.says(fleet.Context(t), "one", nil))
		w.do(t, w.says(fleet.Context(t), "two", []string{`host="beta"`}))
	}, `
waiting       2
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
one	idle	TIME	alpha	work.>				
two	idle	TIME	beta	work.>				
2 messages wait for an agent to pull: 2 agents are there
`},
	stateWorking: {func(t *testing.T, w *world) {
		w.send(t, "work.a", "work.b")
		w.do(t, w.take(fleet.Context(t), "one", "m-1"))
		w.do(t, w.says(fleet.Context(t), "one", []string{held}))
	}, `
waiting       1
in work       1
oldest        DURATION old, SIZE in all
dead letters  0
one	working	TIME	alpha	work.>	m-1	TIME	TIME	in flight
1 message is worked on, and 1 message waits until the agent has room
`},
	stateHeldUp: {func(t *testing.T, w *world) {
		w.send(t, "work.a")
		w.do(t, w.says(fleet.Context(t), "one", []string{`held_up="the rate limit ends at 12:00."`}))
		w.do(t, w.says(fleet.Context(t), "two", []string{"drain=true"}))
	}, `
waiting       1
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
one	held up	TIME	alpha	work.>				the rate limit ends at 12:00.
two	draining	TIME	alpha	work.>				
1 message waits: no agent takes any: one: the rate limit ends at 12:00
`},
	stateDraining: {func(t *testing.T, w *world) {
		w.send(t, "work.a")
		w.do(t, w.says(fleet.Context(t), "one", nil))
		status, _, said := run(t, "drain", "--server", w.server.URL(), "one")
		require.Zero(t, status, said)
	}, `
waiting       1
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
one	draining	TIME	alpha	work.>				
1 message waits: every agent drains and takes no more
`},
	stateStalled: {func(t *testing.T, w *world) {
		w.send(t, "work.a")
		w.do(t, w.take(fleet.Context(t), "one", "m-1"))
		w.do(t, w.says(fleet.Context(t), "one", []string{strings.Replace(held, "in flight", "stalled", 1)}))
	}, `
waiting       0
in work       1
oldest        DURATION old, SIZE in all
dead letters  0
one	working	TIME	alpha	work.>	m-1	TIME	TIME	stalled
nothing moves on m-1: its session made no progress, so others may get it
`},
	stateUnclaimed: {func(t *testing.T, w *world) {
		status, _, said := run(t, "setup", "--server", w.server.URL(), "--for", "work.a")
		require.Zero(t, status, said)
		w.send(t, "work.a", "work.new", "work.b")
	}, `
waiting       3
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
no consumer takes messages of work.b, work.new: heartbeat-nats setup --stream WORK --for work.b makes one
`},
	stateNoConsumer: {func(t *testing.T, w *world) {
		w.do(t, w.js.DeleteConsumer(fleet.Context(t), "WORK", message.Consumer("work.>")))
		w.send(t, "work.a", "work.b")
	}, `
waiting       2
in work       0
oldest        DURATION old, SIZE in all
dead letters  0
2 messages wait: the stream has no consumer, which heartbeat-nats setup --stream WORK makes
`},
}

// varies is what differs from run to run.
var varies = []struct{ pattern, name string }{
	{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "TIME"},
	{`(oldest +)\S+ old, \S+ \S+ in`, "${1}DURATION old, SIZE in"},
	{`(?m)^stream .*\n`, ""},
	{`(was seen last), \d+s ago`, "$1, just now"}, // on a machine with other work
}

// All that status prints, for each reason why nothing moves.
func TestWhyNothingMoves(t *testing.T) {
	for is, c := range states {
		t.Run(string(is), func(t *testing.T) {
			t.Parallel()
			w := there(t)
			c.make(t, w)
			require.Eventually(t, func() bool {
				_, out, _ := run(t, "status", "--server", w.server.URL(), "--json")
				var s seen
				return json.Unmarshal([]byte(out), &s) == nil && s.State == is
			}, 5*time.Minute, time.Millisecond)
			status, out, said := run(t, "status", "--server", w.server.URL())
			assert.Zero(t, status)
			assert.Empty(t, said)
			assert.Contains(t, out, "WORK on "+w.server.URL())
			for _, v := range varies {
				out = regexp.MustCompile(v.pattern).ReplaceAllString(out, v.name)
			}
			assert.Equal(t, strings.TrimPrefix(c.out, "\n"), out)
		})
	}
}

// What keeps the messages of one consumer waiting is said, whatever becomes of those of another.
func TestWhyTheMessagesOfOneConsumerWait(t *testing.T) {
	w := there(t)
	status, _, said := run(t, "setup", "--server", w.server.URL(), "--for", "work.a", "--for", "work.b")
	require.Zero(t, status, said)
	w.do(t, w.says(fleet.Context(t), "one", []string{`subject="work.a"`, fmt.Sprintf("consumer=%q", message.Consumer("work.a"))}))
	why := func(want state, sentence string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, out, _ := run(t, "status", "--server", w.server.URL(), "--json")
			var s seen
			require.NoError(c, json.Unmarshal([]byte(out), &s))
			assert.Equal(c, want, s.State)
			assert.Equal(c, sentence, s.Why)
		}, 5*time.Minute, time.Millisecond)
	}
	w.send(t, "work.a", "work.a", "work.b")
	why(stateNoAgent, "1 message of work.b waits: no agent is there, which heartbeat-nats agent starts")
	w.do(t, w.says(fleet.Context(t), "two", []string{"every_seconds=0.001", fmt.Sprintf("consumer=%q", message.Consumer("work.b"))}))
	why(stateAway, "1 message of work.b waits: no agent is there; two on alpha was seen last, just now")
	w.do(t, w.says(fleet.Context(t), "old", []string{`subject="work.b"`})) // an earlier release names no consumer
	why(stateWaiting, "3 messages wait for an agent to pull: 2 agents are there")
	a, err := w.js.Consumer(fleet.Context(t), "WORK", message.Consumer("work.a"))
	require.NoError(t, err)
	_, err = a.Next(jetstream.FetchMaxWait(time.Minute))
	require.NoError(t, err)
	config := a.CachedInfo().Config
	config.MaxAckPending = 1
	_, err = w.js.UpdateConsumer(fleet.Context(t), "WORK", config)
	require.NoError(t, err)
	why(stateWaiting, "1 message of work.a waits: the consumer "+message.Consumer("work.a")+" has no more than 1 out at a time, also of those that come again later: heartbeat-nats setup --stream WORK ends that")
	_, err = w.js.PauseConsumer(fleet.Context(t), "WORK", message.Consumer("work.b"), time.Now().Add(time.Hour))
	require.NoError(t, err)
	status, _, said = run(t, "setup", "--server", w.server.URL())
	require.Zero(t, status, said)
	why(statePaused, "1 message of work.b waits: the consumer "+message.Consumer("work.b")+" is paused: heartbeat-nats resume --stream WORK ends that")
	require.NoError(t, w.js.DeleteConsumer(fleet.Context(t), "WORK", message.Consumer("work.b")))
	config = jetstream.ConsumerConfig{Durable: "mine", FilterSubject: "work.b", AckPolicy: jetstream.AckExplicitPolicy}
	_, err = w.js.CreateConsumer(fleet.Context(t), "WORK", config)
	require.NoError(t, err)
	why(stateUnclaimed, "1 message of work.b waits for the consumer mine, which is not for agents: remove that one, and heartbeat-nats setup --stream WORK makes one")
	l, err := setup.Open(fleet.Context(t), w.js, "WORK")
	require.NoError(t, err)
	for _, agent := range []string{"old", "two"} { // without an agent for work.b the stream is shared on purpose
		require.NoError(t, l.Agents.Delete(fleet.Context(t), message.AgentKey(agent)))
	}
	why(stateWaiting, "3 messages wait for an agent to pull: 1 agent is there")
}

// paused makes an inbox in which delivery is paused, and returns what is wrong with it.
func paused(t *testing.T, path string) see.Trouble {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Holds().Pause("the bill\x1b[31m", nil)
	require.NoError(t, err)
	require.NoError(t, errors.Join(tx.Commit(), tx.Close()))
	all := see.TroublesAt(path)[0]
	require.Len(t, all, 1)
	return all[0]
}

// What is wrong with an inbox on this machine is said in the words of heartbeat status. An agent
// that names another machine, or an inbox whose lock is not its own, is not believed.
func TestTroublesOfInboxesHere(t *testing.T) {
	w := there(t)
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	trouble := paused(t, path)
	ledger, err := upstream.OpenLedger(path, upstream.Binding{Agent: "here", Stream: "WORK", Subject: "work.>"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ledger.Close()) })
	host, err := os.Hostname()
	require.NoError(t, err)
	odd := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(odd, upstream.LockName), 0o600))
	for name, says := range map[string][]string{
		"here":      {host, path, ledger.Identity()},
		"elsewhere": {"alpha", path, ledger.Identity()},
		"liar":      {host, path, "1-2"},
		"nameless":  {host, path, ""},
		"fifo":      {host, filepath.Join(odd, "inbox.jsonl"), "1-2"},
		"relative":  {host, "inbox.jsonl", ledger.Identity()},
	} {
		var members []string
		for i, member := range []string{"host", "path", "ledger"} {
			members = append(members, fmt.Sprintf("%s=%q", member, says[i]))
		}
		w.do(t, w.says(fleet.Context(t), name, members))
	}
	_, out, said := run(t, "status", "--server", w.server.URL())
	assert.Empty(t, said)
	assert.Contains(t, out, "\ntrouble  here  "+trouble.Text+"\nnothing waits")
	assert.Equal(t, 1, strings.Count(out, "trouble"), out)
	assert.NotContains(t, out, "\x1b")
	_, out, _ = run(t, "status", "--server", w.server.URL(), "--json")
	assert.Equal(t, 1, strings.Count(out, `"troubles":[{"kind":"paused",`))
}

// The document's list has the same states.
func TestTheListOfStates(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/fleet.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(raw), "## Nothing moves\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	var listed []state
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`: ").FindAllStringSubmatch(text, -1) {
		listed = append(listed, state(m[1]))
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(states)), listed)
}

// say puts any value where an agent would say something.
func (w *world) say(t *testing.T, key string, value []byte) {
	kv, err := w.js.KeyValue(fleet.Context(t), message.Agents("WORK"))
	require.NoError(t, err)
	_, err = kv.Put(context.Background(), key, value)
	require.NoError(t, err)
}

// Whoever has an agent's role can say anything of itself.
func TestWhatHostileAgentsSay(t *testing.T) {
	w := there(t)
	w.send(t, "work.a")
	evil := "e\x1b[2J\x1b]0;title\x07\nvil\u202e"
	name, err := json.Marshal(evil)
	require.NoError(t, err)
	large := strings.Repeat("x", 900<<10)
	w.say(t, message.AgentKey(evil), fmt.Appendf(nil,
		`{"agent":%s,"host":%[1]s,"subject":%[1]s,"inbox":%[1]s,"held_up":%[1]s,"every_seconds":1e300,"at":"9999-12-31T23:59:59Z"}`, name))
	w.say(t, message.AgentKey("large"), fmt.Appendf(nil, `{"agent":"large","host":"%s","held_up":"\u001b%[1]s","every_seconds":60}`, large[:400<<10]))
	w.say(t, message.AgentKey("many"), fmt.Appendf(nil, `{"agent":"many","every_seconds":-1,"holds":[%s{"id":"last","since":"0001-01-01T00:00:00Z"}]}`,
		strings.Repeat(`{"id":"\u001b[31mx","state":"\u001b"},`, 20_000)))
	w.say(t, "agent.junk", []byte(large))
	w.say(t, "agent.other", []byte(`{"agent":"one"}`))
	for i := range 20 {
		w.say(t, fmt.Sprint("agent.no-", i), []byte("[]"))
	}

	status, out, said := run(t, "status", "--server", w.server.URL())
	assert.Zero(t, status)
	assert.Less(t, len(out), 64<<10)
	assert.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u202e]", out)
	assert.Equal(t, mostWarnings, strings.Count(said, "\n"), said)
	assert.Contains(t, said, "the key agent.junk of the bucket WORK-agents is not what its agent would say")
	assert.Contains(t, said, "more keys of the bucket WORK-agents are not what their agents would say")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "\t") {
			assert.Equal(t, 8, strings.Count(line, "\t"), line)
		}
	}

	status, out, _ = run(t, "status", "--server", w.server.URL(), "--json")
	assert.Zero(t, status)
	var s seen
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Len(t, s.Agents, 3)
	assert.Equal(t, evil, s.Agents[0].Agent)
	assert.Len(t, s.Agents[2].Holds, mostHolds)

	status, out, _ = run(t, "metrics", "--server", w.server.URL())
	assert.Zero(t, status)
	assertExposition(t, out)
	assert.Contains(t, out, `agent="e`+"\x1b[2J\x1b]0;title\x07"+`\nvil`+"\u202e"+`"`)
}

var (
	comments = regexp.MustCompile(`^# (HELP [a-z_]+ .*|TYPE [a-z_]+ (gauge|counter))$`)
	series   = regexp.MustCompile(`^([a-z_]+)\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)+\} -?[0-9.]+$`)
)

// assertExposition holds figures against the text format, version 0.0.4: each series below
// the type of its figure, and none twice.
func assertExposition(t *testing.T, text string) {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "\n"))
	now, known := "", map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			require.Regexp(t, comments, line)
			now = strings.Fields(line)[2]
			continue
		}
		m := series.FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		assert.Equal(t, now, m[1])
		id := line[:strings.LastIndexByte(line, ' ')]
		assert.False(t, known[id], line)
		known[id] = true
	}
}

// A person sees the agents that matter, however many there are; a program sees all.
func TestThousandsOfAgents(t *testing.T) {
	s := seen{Stream: "WORK", Server: "nats://x", State: stateWaiting, Why: "because"}
	for i := range 3000 {
		a := agentSeen{Agent: fmt.Sprintf("agent-%04d", i), State: idle, Holds: []holding{}}
		if i == 2999 {
			a.State = working
			for j := range 30 {
				a.Holds = append(a.Holds, holding{Hold: message.Hold{ID: fmt.Sprint("m-", j)}})
			}
		}
		s.Agents = append(s.Agents, a)
	}
	var b bytes.Buffer
	d := layout.For(&b, "never")
	require.NoError(t, s.print(d))
	assert.Equal(t, 3000+29+5, strings.Count(b.String(), "\n"))
	b.Reset()
	d.Width = 120
	require.NoError(t, s.print(d))
	assert.Less(t, strings.Count(b.String(), "\n"), 100)
	assert.Contains(t, b.String(), "agent-2999")
	assert.Contains(t, b.String(), "not shown: 2950 more agents, and 20 more messages of these; --json has all")

	f := figures{seen: &s}
	text := string(f.text())
	assertExposition(t, text)
	assert.Equal(t, mostSeries, strings.Count(text, "heartbeat_nats_agent_holds{"))
	assert.Contains(t, text, `heartbeat_nats_agents{stream="WORK",state="idle"} 2999`)
}

// What the document says of --json is what there is.
func TestMembersOfStatus(t *testing.T) {
	w := there(t)
	w.send(t, "work.a")
	raw, err := os.ReadFile("../../../docs/json.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(raw), "\n### `heartbeat-nats`\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n### ")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		documented[m[1]] = true
	}
	w.do(t, w.says(fleet.Context(t), "one", []string{held, `held_up="x"`}))
	_, out, _ := run(t, "metrics", "--server", w.server.URL(), "--json")
	var v any
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	each := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				assert.True(t, documented[name], "docs/json.md lacks %s", name)
				each++
				walk(member)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(v)
	assert.Greater(t, each, 35)
}

// A request outlives all else in its bucket; one of an earlier release forgets it until setup has changed that.
func TestADrainRequestStays(t *testing.T) {
	t.Parallel()
	w := there(t)
	ctx := fleet.Context(t)
	s, err := w.js.Stream(ctx, "KV_WORK-agents")
	require.NoError(t, err)
	config := s.CachedInfo().Config
	require.NoError(t, w.js.DeleteStream(ctx, config.Name))
	config.AllowMsgTTL, config.MaxAge, config.Duplicates = false, time.Hour, time.Second
	_, err = w.js.CreateStream(ctx, config)
	require.NoError(t, err)
	w.do(t, w.says(ctx, "one", nil))
	drain := func() string {
		status, _, said := run(t, "drain", "--server", w.server.URL(), "one")
		require.Zero(t, status, said)
		return said
	}
	assert.Contains(t, drain(), "this request is forgotten after 30 days: heartbeat-nats setup --stream WORK changes that, before the next")
	status, out, said := run(t, "setup", "--server", w.server.URL())
	require.Zero(t, status, said)
	assert.Contains(t, out, "it forgets which agents are to drain, and no longer will")
	assert.NotContains(t, drain(), "forgotten")
	kv, err := w.js.KeyValue(ctx, "WORK-agents")
	require.NoError(t, err)
	w.say(t, "agent.later", []byte("{}"))
	config.AllowMsgTTL, config.MaxAge = true, time.Second
	_, err = w.js.UpdateStream(ctx, config)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := kv.Get(ctx, "agent.later")
		return errors.Is(err, jetstream.ErrKeyNotFound)
	}, 5*time.Minute, 50*time.Millisecond)
	_, err = kv.Get(ctx, "drain.one")
	require.NoError(t, err)
}
