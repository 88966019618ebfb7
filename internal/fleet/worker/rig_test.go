package worker_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/fleet/upstream"
	standin "heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/script"
)

// gateVariable names the folder by which a test tells its programs to wait.
const gateVariable = "HEARTBEAT_TEST_GATE"

func TestMain(m *testing.M) {
	script.Main(fleet.Commands{M: m, Change: func(dir string) error {
		// The test binary takes the place of the command, so that it can be killed at a step.
		err := os.Remove(filepath.Join(dir, "heartbeat-nats"))
		return errors.Join(err, os.Setenv("TMPDIR", dir)) // a launcher that is killed leaves its settings there
	}}, map[string]func(){"heartbeat-nats": program, "claude": client})
}

// client answers each text, and waits before that as long as the folder, or its own, has a
// file "hold".
// A text that begins with "hang" waits for ever.
func client() {
	dir := os.Getenv(gateVariable)
	os.Exit(standin.InTerminal(os.Args[1:], func(text string) string {
		if text == "begin" {
			return "ready"
		}
		if strings.HasPrefix(text, "<") { // a hook woke it, and says the text last
			words := strings.Fields(strings.TrimSuffix(text, "</system-reminder>"))
			text = words[len(words)-1]
		}
		if name, is := strings.CutPrefix(text, "env "); is {
			return name + "=" + os.Getenv(name)
		}
		note(filepath.Join(dir, "turns"), text)
		for {
			if !is(dir, "hold") && !is(".", "hold") && !strings.HasPrefix(text, "hang") {
				return "did " + text
			}
			time.Sleep(5 * time.Millisecond) // the test opens the gate
		}
	}))
}

func note(file, line string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	_, _ = f.WriteString(line + "\n")
}

// world is a server with what setup makes, and a requester.
type world struct {
	t      *testing.T
	server *fleet.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	up     *upstream.Upstream
	l      *setup.Layout
	gate   string

	mu      sync.Mutex
	replies map[string]int // by text
}

func newWorld(t *testing.T, ackWait time.Duration) *world {
	return newWorldAt(t, t.TempDir(), ackWait)
}

// newWorldAt is [newWorld] with the server's files in dir.
func newWorldAt(t *testing.T, dir string, ackWait time.Duration) *world {
	server, err := fleet.Run(dir)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	w := &world{t: t, server: server, gate: t.TempDir(), replies: map[string]int{}}
	w.nc, w.js = w.server.Connect(t)
	w.setUp(ackWait)
	w.up, err = upstream.Open(fleet.Context(w.t), w.js, "WORK")
	require.NoError(t, err)
	_, err = w.nc.Subscribe(message.ReplySubject("WORK", "*"), func(m *nats.Msg) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.replies[m.Subject]++
	})
	require.NoError(t, err)
	return w
}

func (w *world) setUp(ackWait time.Duration) { w.setUpWith(ackWait, 5) }

func (w *world) setUpWith(ackWait time.Duration, maxDeliver int) {
	ctx := fleet.Context(w.t)
	plan, err := setup.Make(ctx, w.js, &setup.Wanted{
		Stream: "WORK", Subjects: []string{"work.>"}, MaxDeliver: maxDeliver, AckWait: ackWait,
		Duplicates: 2 * time.Minute, Replicas: 1, Given: map[string]bool{"max-deliver": true, "ack-wait": true},
	})
	require.NoError(w.t, err)
	require.NoError(w.t, plan.Apply(ctx))
	w.l, err = setup.Open(ctx, w.js, "WORK")
	require.NoError(w.t, err)
}

func (w *world) hold() { require.NoError(w.t, os.WriteFile(filepath.Join(w.gate, "hold"), nil, 0o600)) }
func (w *world) open() { require.NoError(w.t, os.Remove(filepath.Join(w.gate, "hold"))) }

// turns are the texts that sessions were given.
func (w *world) turns() []string {
	raw, _ := os.ReadFile(filepath.Join(w.gate, "turns"))
	return strings.Fields(string(raw))
}

func replyTo(id string) string { return message.ReplySubject("WORK", message.Key(id)) }

// send sends a message whose text is its id.
func (w *world) send(ids ...string) {
	for _, id := range ids {
		w.sendText(id, id)
	}
}

func (w *world) sendText(id, text string) {
	w.publish(text, nats.Header{message.HeaderMsgID: {id}, message.HeaderReply: {replyTo(id)}})
}

// publish sends a message as any program does.
func (w *world) publish(text string, h nats.Header) {
	m := &nats.Msg{Subject: "work.a", Data: []byte(text), Header: h}
	_, err := w.js.PublishMsg(fleet.Context(w.t), m)
	require.NoError(w.t, err)
}

// replied is how often the answer to a message came.
func (w *world) replied(id string) int {
	require.NoError(w.t, w.nc.Flush())
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replies[replyTo(id)]
}

func (w *world) known(id string) *upstream.Record {
	e, err := w.l.Results.Get(fleet.Context(w.t), message.Key(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	require.NoError(w.t, err)
	r, err := upstream.ParseRecord(e.Value())
	require.NoError(w.t, err)
	return r
}

func (w *world) waiting() uint64 {
	info, err := w.l.Stream.Info(fleet.Context(w.t))
	require.NoError(w.t, err)
	return info.State.Msgs
}

// eventually waits for something that is to come.
func (w *world) eventually(what string, done func() bool, running ...*running) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			said := ""
			for _, r := range running {
				said += r.name + ":\n" + r.said() + "\n"
			}
			require.Fail(w.t, "it does not come: "+what, said)
		}
	}
}

// worksOn waits until there is one message less on the stream for every two faults, but for the first ten: a
// machine that takes longer to start an agent than passes between two faults would never be done.
func (w *world) worksOn(messages, faults int, running ...*running) {
	w.t.Helper()
	w.eventually("that the work goes on between faults", func() bool { return messages-int(w.waiting()) >= (faults-10)/2 }, running...)
}

// settled waits until messages are answered and off the stream.
func (w *world) settled(running *running, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		w.eventually("the answer of "+id, func() bool { return w.known(id) != nil }, running)
	}
	w.eventually("an empty stream", func() bool { return w.waiting() == 0 }, running)
}

// running is an agent.
type running struct {
	*fleet.Agent
	t     *testing.T
	name  string
	inbox string
}

func (r *running) said() string { return r.Said() }

// start starts an agent on an inbox of its name. args are flags, and a command behind --
// or --no-session.
func (w *world) start(name string, env []string, args ...string) *running {
	return w.startAt(w.server.URL(), filepath.Join(w.t.TempDir(), name, "inbox.jsonl"), name, env, args...)
}

func (r *running) again(w *world, args ...string) *running {
	return w.startAt(w.server.URL(), r.inbox, r.name, nil, args...)
}

func (w *world) startAt(url, path, name string, env []string, args ...string) *running {
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	if len(args) == 0 || args[len(args)-1] != "--no-session" {
		args = append(args, fleet.Session...)
	}
	r := &running{fleet.StartAgent(w.t, url, name, path, append(env, gateVariable+"="+w.gate), args...), w.t, name, path}
	w.t.Cleanup(func() {
		r.kill()
		r.killLauncher()
		if w.t.Failed() {
			w.t.Logf("%s said:\n%s", name, r.said())
		}
		assert.Eventually(w.t, func() bool { return cleared(filepath.Dir(path)) }, 5*time.Minute, 20*time.Millisecond,
			"a session that the launcher left writes on, until its guardian ends it")
	})
	return r
}

// cleared removes what is in a folder, which may be where a file system is mounted.
func cleared(dir string) bool {
	all, err := os.ReadDir(dir)
	for _, one := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, one.Name())))
	}
	return err == nil || errors.Is(err, os.ErrNotExist)
}

func (r *running) kill() {
	_ = r.Process.Kill() // it may have ended
	<-r.Done
}

// killLauncher kills what an agent that was killed has left.
func (r *running) killLauncher() {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(r.inbox), ".launch-lock"))
	if err != nil {
		return
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	box, err := inbox.Open(r.inbox, inbox.Options{})
	if pid, notOne := strconv.Atoi(first); err == nil && notOne == nil && launches(box, pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (r *running) ended() int { r.t.Helper(); return r.Ended() }

func (r *running) term() { require.NoError(r.t, r.Process.Signal(syscall.SIGTERM)) }

// results counts the answers in the inbox by id.
func (r *running) results() map[string]int {
	n := map[string]int{}
	raw, _ := os.ReadFile(filepath.Join(filepath.Dir(r.inbox), ".results.jsonl"))
	for _, line := range strings.Split(string(raw), "\n") {
		var result inbox.Result
		if json.Unmarshal([]byte(line), &result) == nil {
			n[result.ID]++
		}
	}
	return n
}

// held is what the agent's ledger has.
func (r *running) held() []upstream.Claim {
	var state struct{ Claims []upstream.Claim }
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(r.inbox), upstream.FileName))
	if err == nil {
		require.NoError(r.t, json.Unmarshal(raw, &state))
	}
	return state.Claims
}

func (w *world) consumer() *jetstream.ConsumerInfo {
	c, err := setup.Consumer(fleet.Context(w.t), w.js, "WORK", ">")
	require.NoError(w.t, err)
	return c.CachedInfo()
}

// takes has another agent take a message that came to it.
func (w *world) takes(agent string, m jetstream.Msg) upstream.Claim {
	is, err := message.Parse(m)
	require.NoError(w.t, err)
	is.Reply = ""
	c := upstream.Claim{Message: is, Agent: agent}
	s, err := w.up.Take(fleet.Context(w.t), c)
	require.NoError(w.t, err)
	require.NotZero(w.t, s.Lease)
	c.Lease, c.Attempt = s.Lease, s.Attempt
	return c
}
