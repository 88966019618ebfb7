package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	fleetsetup "heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/see"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// crew is a stream, and agents with the real client that draw from it.
type crew struct {
	t      *testing.T
	server *fleet.Server
	js     jetstream.JetStream
	nc     *nats.Conn
	layout *fleetsetup.Layout
	script model.Script
	where  []string // the server, as flags
	agents []*member

	mu      sync.Mutex
	replies map[string][]string // by subject
}

// member is an agent: its inbox, its client, and the process that runs now.
type member struct {
	*rig
	crew  *crew
	name  string
	flags []string // of the agent
	now   *exec.Cmd
	done  chan struct{} // closed once that has ended
}

// newCrew has a server with what setup makes, and no agent. Its clients share one script.
func newCrew(t *testing.T, script model.Script, setup ...string) *crew {
	t.Helper()
	Find(t)
	c := &crew{t: t, server: fleet.Start(t), script: script, replies: map[string][]string{}}
	c.nc, c.js = c.server.Connect(t)
	c.where = []string{"--server", c.server.URL()}
	c.command(append([]string{"setup", "--subjects", "work.>", "--max-deliver", "100"}, setup...)...)
	ctx := fleet.Context(t)
	var err error
	c.layout, err = fleetsetup.Open(ctx, c.js, "WORK")
	require.NoError(t, err)
	_, err = c.nc.Subscribe(message.ReplySubject("WORK", "*"), func(m *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.replies[m.Subject] = append(c.replies[m.Subject], string(m.Data))
	})
	require.NoError(t, err)
	return c
}

// forLong is for tests in which clients start many times on a machine with other work.
func forLong(t *testing.T) context.Context { return ending(t, 3*patience) }

// natsCommand is heartbeat-nats, beside the hook.
func natsCommand(t *testing.T) string {
	t.Helper()
	stop, err := buildOnce()
	require.NoError(t, err)
	path := filepath.Join(filepath.Dir(stop), "heartbeat-nats")
	require.FileExists(t, path)
	return path
}

// command runs heartbeat-nats, and returns what it prints.
func (c *crew) command(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(natsCommand(c.t), append(args, c.where...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(c.t, err, "heartbeat-nats %q: %s", args, &errs)
	return string(out)
}

// join adds an agent that does not run yet.
func (c *crew) join(name string, flags ...string) *member {
	c.t.Helper()
	m := &member{rig: newRigWith(c.t, c.script), crew: c, name: name, flags: flags}
	c.agents = append(c.agents, m)
	c.t.Cleanup(func() {
		m.kill()
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", name, m.said())
		}
	})
	return m
}

func (m *member) log() string { return filepath.Join(filepath.Dir(m.Home), "agent.log") }

// said is what the agent and its launchers have said, in all their lives.
func (m *member) said() string {
	text, _ := os.ReadFile(m.log()) // nothing yet
	return string(text)
}

// starts starts the agent, whose sessions may use Bash.
func (m *member) starts() *member {
	m.t.Helper()
	return m.startsAs("--launch", "--cwd="+m.Project, "--launch", "--start-timeout=5m", "--launch", "--grace=1m", "--", m.binary, "--permission-mode=default", "--allowedTools=Bash", prompt(1))
}

// startsAs starts the agent with more arguments.
func (m *member) startsAs(args ...string) *member {
	m.t.Helper()
	// A file, since a launcher that outlives the agent goes on writing.
	log, err := os.OpenFile(m.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(m.t, err)
	defer log.Close()
	all := slices.Concat([]string{"agent", "--name", m.name, "--inbox", m.inbox}, m.crew.where, m.flags, args)
	cmd := exec.Command(natsCommand(m.t), all...)
	cmd.Env, cmd.Stdout, cmd.Stderr = m.environ([]string{NoRetries}), log, log
	require.NoError(m.t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the state says how it ended
	}()
	m.now, m.done = cmd, done
	return m
}

// kill kills the agent alone.
func (m *member) kill() {
	if m.now != nil {
		_ = m.now.Process.Kill() // it may have ended
		<-m.done
	}
}

// killMachine kills the agent and all that it started.
func (m *member) killMachine() {
	script.Sweep(m.t, "HOME="+m.Home)
	<-m.done
}

// killLauncher kills the launcher alone, if there is one.
func (m *member) killLauncher() {
	if l := see.LauncherOf(m.box()); l != nil {
		m.killOwn(l.PID)
	}
}

// killSessions kills the clients.
func (m *member) killSessions() {
	m.t.Helper()
	for _, pid := range m.clients() {
		m.killOwn(pid)
	}
}

// clients are the processes of the sessions that have not said that they end.
func (m *member) clients() (pids []int) {
	m.t.Helper()
	v, err := m.box().View()
	require.NoError(m.t, err)
	defer v.Close()
	sessions, err := v.Sessions()
	require.NoError(m.t, err)
	for _, s := range sessions {
		if s.EndedAt == nil && s.PID > 0 {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

func (m *member) killOwn(pid int) { script.KillMarked(pid, "HOME="+m.Home) }

func (m *member) box() *inbox.Inbox {
	m.t.Helper()
	box, err := inbox.Open(m.inbox, inbox.Options{})
	require.NoError(m.t, err)
	return box
}

// ended waits for the agent's end, and returns its status.
func (m *member) ended(ctx context.Context) int {
	m.t.Helper()
	select {
	case <-m.done:
		return m.now.ProcessState.ExitCode()
	case <-ctx.Done():
		require.FailNow(m.t, "the agent does not end", m.said())
		return -1
	}
}

// held are the messages that the agent holds, by its ledger.
func (m *member) held() []upstream.Claim {
	m.t.Helper()
	var state struct{ Claims []upstream.Claim }
	if raw, err := os.ReadFile(m.path(upstream.FileName)); err == nil {
		require.NoError(m.t, json.Unmarshal(raw, &state))
	}
	return state.Claims
}

// job is a message whose text ends in its tag.
type job struct{ id, tag string }

func jobs(n int) []job {
	all := make([]job, n)
	for i := range all {
		all[i] = job{fmt.Sprintf("job.%d", i+1), fmt.Sprintf("[m%d]", i+1)}
	}
	return all
}

func (n job) text() string { return "please look at " + n.tag }

func (n job) replyTo() string { return message.ReplySubject("WORK", message.Key(n.id)) }

// send sends messages as a program would that listens for the replies.
func (c *crew) send(all ...job) {
	c.t.Helper()
	for _, n := range all {
		m := nats.NewMsg("work.review")
		m.Data = []byte(n.text())
		m.Header.Set(message.HeaderMsgID, n.id)
		m.Header.Set(message.HeaderReply, n.replyTo())
		_, err := c.js.PublishMsg(fleet.Context(c.t), m)
		require.NoError(c.t, err)
	}
}

// until waits for something, and says what the agents said where it does not come.
func (c *crew) until(ctx context.Context, what string, so func() bool) {
	c.t.Helper()
	until(ctx, c.t, what, so, func() string { return c.command("status") })
}

// left is how many messages are on the stream.
func (c *crew) left() int {
	c.t.Helper()
	info, err := c.layout.Stream.Info(fleet.Context(c.t))
	require.NoError(c.t, err)
	return int(info.State.Msgs)
}

func (c *crew) known(n job) *upstream.Record {
	c.t.Helper()
	e, err := c.layout.Results.Get(fleet.Context(c.t), message.Key(n.id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	require.NoError(c.t, err)
	r, err := upstream.ParseRecord(e.Value())
	require.NoError(c.t, err)
	return r
}

// isEmpty waits until nothing is on the stream, and no agent holds anything.
func (c *crew) isEmpty(ctx context.Context) {
	c.t.Helper()
	c.until(ctx, "the stream is empty", func() bool { return c.left() == 0 })
	for _, m := range c.agents {
		c.until(ctx, m.name+" holds nothing", func() bool { return len(m.held()) == 0 })
	}
}

// consumer is what the server says of the consumer.
func (c *crew) consumer() *jetstream.ConsumerInfo {
	c.t.Helper()
	found, err := fleetsetup.Consumer(fleet.Context(c.t), c.js, "WORK", ">")
	require.NoError(c.t, err)
	return found.CachedInfo()
}

// replied are the replies to a message.
func (c *crew) replied(n job) []string {
	c.t.Helper()
	require.NoError(c.t, c.nc.Flush())
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replies[n.replyTo()]
}

// turns is how often a client gave a message to its model.
func (c *crew) turns(n job) (total int) {
	for _, m := range c.agents {
		total += m.arrivals(n.text())
	}
	return total
}

// kept is what was counted of messages that are all settled.
type kept struct {
	twice  int // turns that were not needed
	doubts int // replies of which nobody knows whether they went out
	second int // answers that were kept as superseded
	by     map[string]int
}

// keptOnce checks that each message has one answer, its own, and at most one reply.
func (c *crew) keptOnce(all ...job) kept {
	c.t.Helper()
	ctx := fleet.Context(c.t)
	results, err := c.js.KeyValue(ctx, message.Bucket("WORK"))
	require.NoError(c.t, err)
	k := kept{by: map[string]int{}}
	for _, n := range all {
		r := c.known(n)
		require.NotNil(c.t, r, "message %s is lost", n.id)
		assert.Equal(c.t, upstream.WasAnswered, r.Outcome, "%s: %s", n.id, r.Reason)
		value, err := results.Get(ctx, message.AnswerKey(n.id, r.Agent))
		require.NoError(c.t, err, n.id)
		answer, err := upstream.ParseAnswer(value.Value())
		require.NoError(c.t, err)
		assert.Equal(c.t, ownReply(n.tag), answer.Reply, "the answer to %s", n.id)
		switch replies := c.replied(n); {
		case r.ReplyState == upstream.Sent:
			assert.Equal(c.t, []string{ownReply(n.tag)}, replies, "replies to %s", n.id)
		default:
			assert.Equal(c.t, upstream.InDoubt, r.ReplyState)
			assert.LessOrEqual(c.t, len(replies), 1, "replies to %s", n.id)
			k.doubts++
		}
		turns := c.turns(n)
		assert.Positive(c.t, turns, n.id)
		k.twice += max(0, turns-1)
		k.by[r.Agent]++
	}
	keys, err := results.ListKeysFiltered(ctx, "superseded.>")
	require.NoError(c.t, err)
	for range keys.Keys() {
		k.second++
	}
	return k
}

// working answers each message with its own reply, after a while and with a tool in
// every third.
func working() model.Script {
	return func(r model.Request) model.Reply {
		if len(r.ToolResults) > 0 && lastTag(r) == "" {
			tag := tags.FindString(strings.Join(r.ToolResults, ""))
			return model.Text(ownReply(tag))
		}
		tag := lastTag(r)
		var n int
		if _, err := fmt.Sscanf(tag, "[m%d]", &n); err != nil {
			return own(tag, 1)
		}
		if n%3 == 0 {
			return model.Tool("Bash", map[string]any{"command": "sleep 1; echo '" + tag + "'", "description": "look"})
		}
		return own(tag, 1).After(time.Duration(n%4) * 500 * time.Millisecond)
	}
}
