package nats_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	standin "heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/script"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"OPERATOR", "PRODUCER", "AGENT_ONE", "AGENT_TWO"} { // for the configuration
		_ = os.Setenv("NATS_"+name, "pw-"+name) // without it the server does not start
	}
	script.Main(fleet.Commands{M: m, Change: func(dir string) error { // and the producer's context
		contexts := filepath.Join(dir, "nats", "context")
		return errors.Join(os.MkdirAll(contexts, 0o700), os.Setenv("XDG_CONFIG_HOME", dir),
			os.WriteFile(filepath.Join(contexts, "producer.json"), []byte(`{"inbox_prefix":"_INBOX_producer"}`), 0o600))
	}}, map[string]func(){"claude": client})
}

const longAnswer = 600 << 10 // more than half of what the server takes as a message

// client answers each text.
func client() {
	os.Exit(standin.InTerminal(os.Args[1:], func(text string) string {
		switch {
		case text == "begin":
			return "ready"
		case strings.HasPrefix(text, "long"):
			return strings.Repeat("x", longAnswer)
		}
		return "did " + text
	}))
}

// working is an agent that runs: the command itself.
type working struct {
	*fleet.Agent
	t *testing.T
}

// work starts an agent. It works in dir.
func (r *role) work(dir string, args ...string) *working {
	w := &working{fleet.StartAgent(r.t, r.url, r.user, filepath.Join(dir, "inbox.jsonl"), nil, args...), r.t}
	r.t.Cleanup(func() {
		_ = w.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-w.Done:
		case <-time.After(5 * time.Minute):
			_ = w.Process.Kill()
			<-w.Done
		}
		if r.t.Failed() {
			r.t.Logf("%s said:\n%s", r.user, w.Said())
		}
	})
	return w
}

func (w *working) says(what string, n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return strings.Count(w.Said(), what) >= n }, 5*time.Minute, 5*time.Millisecond, what)
}

// asked are the subjects that an account has used in the account of the stream.
type asked struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // by account
}

func (a *asked) add(m *nats.Msg) {
	_, account, found := strings.Cut(m.Header.Get("Nats-Request-Info"), `"acc":"`)
	if !found {
		return
	}
	account, _, _ = strings.Cut(account, `"`)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[account] == nil {
		a.seen[account] = map[string]bool{}
	}
	a.seen[account][m.Subject] = true
}

// unused are subjects that an account may use and has not.
func (a *asked) unused(may []string, accounts ...string) (none []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, subject := range may {
		used := false
		for _, account := range accounts {
			own := subject
			if name := strings.ToLower(accounts[0]); strings.HasSuffix(subject, "."+name) {
				own = strings.TrimSuffix(subject, name) + strings.ToLower(account)
			}
			for s := range a.seen[account] {
				used = used || server.SubjectMatchesFilter(s, own)
			}
		}
		if !used {
			none = append(none, subject)
		}
	}
	return none
}

// shadow is imported and never asked.
const shadow = "$JS.API.INFO"

// Without it an account is told by the server itself that it has no streams.
func TestAnAccountIsNotToldThatItHasNoStreams(t *testing.T) {
	raw, err := os.ReadFile("nats-server.conf")
	require.NoError(t, err)
	line := `      { service: { account: WORK, subject: "` + shadow + `" } }` + "\n"
	require.Equal(t, 2, strings.Count(string(raw), line))
	path := filepath.Join(t.TempDir(), "nats-server.conf")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), line, "")), 0o600))
	all := rolesOf(t, path)
	all["operator"].setUp()
	_, err = all["one"].js.Stream(fleet.Context(t), "WORK")
	require.ErrorIs(t, err, jetstream.ErrJetStreamNotEnabledForAccount)
}

// Two agents do all that agents do, with the rights of the configuration. Each of these is
// used.
func TestAgentsWorkWithTheirRoles(t *testing.T) {
	t.Parallel()
	t.Run("acknowledgements as they are", func(t *testing.T) {
		t.Parallel()
		used := agentsWork(t, func(*server.Options) {})
		assert.Equal(t, []string{shadow, "$JS.ACK.*.*.WORK.>"}, used.unused(imports(t, "ONE"), "ONE", "TWO"))
		assert.Equal(t, []string{shadow, "$JS.ACK.*.*.WORK.>"}, used.unused(imports(t, "TWO"), "TWO", "ONE"))
	})
	t.Run("acknowledgements as they will be", func(t *testing.T) {
		t.Parallel()
		used := agentsWork(t, func(o *server.Options) { o.FeatureFlags = map[string]bool{server.FeatureFlagJsAckFormatV2: true} })
		assert.Equal(t, []string{shadow}, used.unused(imports(t, "ONE"), "ONE", "TWO"))
	})
}

func agentsWork(t *testing.T, change func(*server.Options)) *asked {
	all := natsRoles(t, change)
	operator, producer, one, two := all["operator"], all["producer"], all["one"], all["two"]
	used := &asked{seen: map[string]map[string]bool{}}
	_, err := operator.nc.Subscribe(">", used.add)
	require.NoError(t, err)
	_, said, status := operator.command("setup", "--stream", "WORK", "--subjects", "work.>")
	require.Zero(t, status, said)
	send := func(id string) (string, int) {
		out, said, status := producer.command("send", "--subject", "work.review", "--id", id, "--wait", "--timeout", "5m", id)
		assert.NotContains(t, said, "rights")
		return out, status
	}

	// A session's answers, one of them long, and a dead letter.
	dir := t.TempDir()
	w := one.work(dir, append([]string{"--subject", "work.>"}, fleet.Session...)...)
	out, status := send("a")
	assert.Equal(t, "did a\n", out, w.Said())
	assert.Zero(t, status)
	out, status = send("long")
	assert.Len(t, strings.TrimSpace(out), longAnswer)
	assert.Zero(t, status)
	replies, err := producer.nc.SubscribeSync(message.ReplySubject("WORK", "*"))
	require.NoError(t, err)
	to := producer.send("asks")
	m, err := replies.NextMsgWithContext(fleet.Context(t))
	require.NoError(t, err, w.Said())
	assert.Equal(t, to, m.Subject)
	assert.Equal(t, "did asks", string(m.Data))
	_, err = producer.js.Publish(fleet.Context(t), "work.review", []byte(" "), jetstream.WithMsgID("empty"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		out, _, _ := operator.command("dead", "list")
		return strings.Contains(out, "empty")
	}, 5*time.Minute, 50*time.Millisecond, w.Said())

	// The operator has it drain.
	_, said, status = operator.command("drain", "--wait", "--timeout", "5m", "one")
	require.Zero(t, status, said)
	assert.Zero(t, w.Ended(), w.Said())
	_, said, status = operator.command("drain", "--undo", "one")
	require.Zero(t, status, said)

	// Back-off of one gives back what waits, and two, which lives, goes on with it.
	w = one.work(dir, "--stream", "WORK", "--no-session")
	_, _, status = producer.command("send", "--subject", "work.review", "--id", "b", "b")
	require.Zero(t, status)
	w.says("message b came", 1)
	other := two.work(t.TempDir(), "--stream", "WORK", "--no-session")
	require.Eventually(t, func() bool {
		out, _, _ := operator.command("status", "--json")
		return strings.Count(out, `"agent":`) == 2
	}, 5*time.Minute, 50*time.Millisecond, other.Said())
	box, err := inbox.Open(w.Inbox, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(fleet.Context(t))
	require.NoError(t, err)
	_, err = tx.Holds().BackOff(time.Hour, 1, true, &inbox.Failure{Error: "rate_limit", At: time.Now()})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	w.says("message b is given back", 1)
	other.says("message b came", 1)
	require.NoError(t, other.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 128+int(syscall.SIGTERM), other.Ended(), other.Said())
	again := two.work(filepath.Dir(other.Inbox), append([]string{"--stream", "WORK"}, fleet.Session...)...)
	out, status = send("b")
	assert.Equal(t, "did b\n", out, again.Said())
	assert.Zero(t, status)

	// What comes second.
	for _, late := range []struct {
		r  *role
		id string
	}{{two, "a"}, {one, "b"}} {
		up, err := upstream.Open(fleet.Context(t), late.r.js, "WORK")
		require.NoError(t, err)
		e, err := up.Results.Get(fleet.Context(t), message.Key(late.id))
		require.NoError(t, err)
		known, err := upstream.ParseRecord(e.Value())
		require.NoError(t, err)
		f, err := up.Answer(fleet.Context(t), upstream.Claim{Agent: late.r.user, Message: message.Message{
			Stream: "WORK", Seq: known.Seq, Subject: known.Subject, ID: late.id, Entry: "late", Copy: 1,
			Ack: fmt.Sprintf("$JS.ACK.WORK.%s.1.%d.1.%d.0", message.Consumer("work.>"), known.Seq, time.Now().UnixNano()),
		}}, upstream.Answer{Reply: "late", Settled: upstream.Settled{Attempts: 1}})
		require.NoError(t, err)
		assert.Equal(t, upstream.Superseded, f.Outcome)
	}
	for _, agent := range []*working{w, other, again} {
		for _, complaint := range []string{"rights", "no responders", "no response", "deadline"} {
			assert.NotContains(t, agent.Said(), complaint)
		}
	}
	require.NoError(t, operator.nc.FlushTimeout(time.Minute))
	return used
}

// An agent makes no consumer: it says who has to, and waits for that. What waits stays.
func TestAnAgentDoesNotReplaceTheConsumer(t *testing.T) {
	t.Parallel()
	all := natsRoles(t)
	operator, producer, one := all["operator"], all["producer"], all["one"]
	operator.setUp()
	producer.send("a")
	w := one.work(t.TempDir(), "--stream", "WORK", "--subject", "work.review", "--no-session")
	const command = "heartbeat-nats setup --stream WORK --for work.review"
	w.says(command, 1)

	info, err := operator.js.Consumer(fleet.Context(t), "WORK", message.Consumer("work.>"))
	require.NoError(t, err, "the consumer is still there")
	assert.EqualValues(t, 1, info.CachedInfo().NumPending)

	_, said, status := operator.command(strings.Fields(command)[1:]...)
	require.Zero(t, status, said)
	w.says("message a came", 1)
	var filters []string
	stream, err := operator.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	for c := range stream.ListConsumers(fleet.Context(t)).Info() {
		filters = append(filters, c.Config.FilterSubject)
	}
	assert.Equal(t, []string{"work.review"}, slices.Compact(filters))
}

// The name of an agent is that of its account.
func TestAnAgentHasTheNameOfItsAccount(t *testing.T) {
	t.Parallel()
	all := natsRoles(t)
	operator, producer, one := all["operator"], all["producer"], all["one"]
	operator.setUp()
	producer.send("a")
	one.user = "two"
	w := one.work(t.TempDir(), "--stream", "WORK", "--no-session")
	w.says("say that agent two is here", 1)
	w.says("give --name as the server's configuration or the credentials have it", 1)
	stream, err := operator.js.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, 1, stream.CachedInfo().State.Msgs)
}
