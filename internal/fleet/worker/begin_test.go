package worker_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/long"
)

// Whatever is wrong on the server when an agent starts has a sentence of its own, and is waited for.
func TestWhatIsWrongAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil, mend func(t *testing.T, w *world)
		says        string
		args        []string
	}{
		"no stream": {
			spoil: func(t *testing.T, w *world) { require.NoError(t, w.js.DeleteStream(fleet.Context(t), "WORK")) },
			mend:  func(_ *testing.T, w *world) { w.setUp(time.Minute) },
			says:  "stream WORK is not on this server: heartbeat-nats setup --stream WORK makes it",
		},
		"no bucket": {
			spoil: func(t *testing.T, w *world) {
				require.NoError(t, w.js.DeleteKeyValue(fleet.Context(t), message.Agents("WORK")))
			},
			mend: func(_ *testing.T, w *world) { w.setUp(time.Minute) },
			says: "bucket WORK-agents is not on this server",
		},
		"no consumer": {
			spoil: func(t *testing.T, w *world) {
				require.NoError(t, w.js.DeleteConsumer(fleet.Context(t), "WORK", message.Consumer("work.>")))
			},
			mend: func(_ *testing.T, w *world) { w.setUp(time.Minute) },
			says: "stream WORK has no consumer: heartbeat-nats setup --stream WORK makes one",
		},
		"no consumer for its subject": {
			spoil: func(*testing.T, *world) {},
			mend: func(t *testing.T, w *world) {
				plan, err := setup.Make(fleet.Context(t), w.js, &setup.Wanted{Stream: "WORK", Subjects: []string{"work.>"}, For: []string{"work.a"}, AckWait: time.Minute, MaxDeliver: 5, Duplicates: 2 * time.Minute, Replicas: 1, Given: map[string]bool{}})
				require.NoError(t, err)
				require.NoError(t, plan.Apply(fleet.Context(t)))
			},
			says: "heartbeat-nats setup --stream WORK --for work.a makes one",
			args: []string{"--subject", "work.a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, time.Minute)
			c.spoil(t, w)
			a := w.start("one", nil, append(c.args, "--no-session")...)
			w.says(a, c.says)
			w.says(a, "it is tried again for ever")
			c.mend(t, w)
			w.send("a")
			w.eventually("its entry", func() bool { return len(a.held()) == 1 }, a)
			assert.Equal(t, 1, strings.Count(a.said(), c.says), "once")
		})
	}
}

// A server that is too old is waited for, too: setup, which would refuse it, is not what is missing.
func TestAServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	require.NoError(t, w.js.DeleteStream(fleet.Context(t), "WORK"))
	a := w.startAt(fleet.Older(t, w.server, "2.12.0"), filepath.Join(t.TempDir(), "inbox.jsonl"), "one", nil, "--no-session")
	w.says(a, "the server has version 2.12.0 and writes one key at a time: agents need nats-server 2.12.1 or later; it is tried again for ever")
	assert.NotContains(t, a.said(), "setup")
}

// Who ends it while it waits has it end as at any other time.
func TestEndedBeforeItBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	require.NoError(t, w.js.DeleteStream(fleet.Context(t), "WORK"))
	a := w.start("one", nil, "--no-session")
	w.says(a, "it is tried again for ever")
	a.term()
	assert.Equal(t, 128+int(syscall.SIGTERM), a.ended())
	assert.Equal(t, 1, strings.Count(a.said(), "WORK is not on this server"), "once")
	w.server.Stop()
	for _, args := range [][]string{{"--no-session"}, {"--drain-on", "TERM", "--no-session"}} {
		a := w.start("two", nil, args...)
		w.says(a, "it is tried again for ever")
		a.term()
		assert.Equal(t, 128+int(syscall.SIGTERM), a.ended(), "%q", args)
	}
}

// An agent with a subject of its own takes the consumer of all subjects from nobody, not even
// while no agent runs.
func TestTheConsumerOfAllSubjectsStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	a := w.start("one", nil, "--subject", "work.b", "--no-session")
	w.says(a, "has no consumer for work.b alone")
	b := w.start("two", nil, "--no-session")
	w.send("a")
	w.eventually("its entry", func() bool { return len(b.held()) == 1 }, a, b)
	_, there, err := setup.Consumers(fleet.Context(t), w.js, "WORK")
	require.NoError(t, err)
	require.Len(t, there, 1)
	assert.Equal(t, message.Consumer("work.>"), there[0].Name)
}

// An agent that starts while too few servers of a cluster run waits for them.
func TestAClusterWithoutQuorum(t *testing.T) {
	long.Only(t, "a cluster takes its time to elect a leader")
	t.Parallel()
	const slowly = 10 * time.Minute // a busy machine elects leaders again and again
	c := fleet.StartCluster(t, 3)
	_, js := fleet.Connect(t, c[0].URL())
	ctx := fleet.Context(t)
	plan, err := setup.Make(ctx, js, &setup.Wanted{Stream: "WORK", Subjects: []string{"work.>"}, MaxDeliver: 5, AckWait: time.Minute, Duplicates: 2 * time.Minute, Replicas: 3, Given: map[string]bool{}})
	require.NoError(t, err)
	require.NoError(t, plan.Apply(ctx))
	w := &world{t: t, js: js, gate: t.TempDir()}
	before := w.startAt(c[0].URL(), filepath.Join(t.TempDir(), "inbox.jsonl"), "before", nil, "--no-session")
	w.says(before, "takes messages")
	c[1].Stop()
	c[2].Stop()
	require.Eventually(t, func() bool {
		_, err := js.AccountInfo(soon(t))
		var answer *jetstream.APIError
		const noQuorum jetstream.ErrorCode = 10008
		return errors.As(err, &answer) && answer.ErrorCode == noQuorum
	}, slowly, 10*time.Millisecond)

	out, err := exec.Command("heartbeat-nats", "setup", "--server", c[0].URL()).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "no quorum")

	w.says(before, "no quorum")
	a := w.startAt(c[0].URL(), filepath.Join(t.TempDir(), "inbox.jsonl"), "one", nil, "--no-session")
	w.says(a, "no quorum")
	assert.NotContains(t, a.said(), "setup")
	require.NoError(t, c[1].Resume())
	require.NoError(t, c[2].Resume())
	require.Eventually(t, func() bool {
		_, err := js.Publish(soon(t), "work.a", []byte("a"), jetstream.WithMsgID("a"))
		return err == nil
	}, slowly, 10*time.Millisecond)
	w.eventually("its entry", func() bool { return len(a.held())+len(before.held()) == 1 }, a, before)
	w.says(before, "others see again what this agent does")
}

// soon bounds a request that a server without a leader never answers.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Clients still reach a server that has lost the rest of its cluster, and it answers nothing.
func TestAServerThatAnswersNothingIsLeft(t *testing.T) {
	t.Parallel()
	one, two := newWorld(t, 3*time.Second), newWorld(t, 3*time.Second)
	a := one.startAt(one.server.URL()+","+two.server.URL(), filepath.Join(t.TempDir(), "inbox.jsonl"), "one", nil, "--no-session")
	one.eventually("it is with one of them", func() bool { return one.presence("one") != nil || two.presence("one") != nil }, a)
	if one.presence("one") == nil {
		one, two = two, one
	}
	require.NoError(t, one.server.Server().DisableJetStream())
	two.send("a")
	two.eventually("it goes on with the other", func() bool { return len(a.held()) == 1 }, a)
}
