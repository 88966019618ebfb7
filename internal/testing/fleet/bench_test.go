package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// BenchmarkAgents has agents, a process each, work through a stream, in turn with as many
// bare workers, which pull a message and acknowledge it. The agents' time includes
// publishing, the workers' does not. HEARTBEAT_LONG=1 gives 50 agents 10,000 messages.
func BenchmarkAgents(b *testing.B) {
	for _, n := range []int{1, long.Rounds(5, 50)} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			const rounds = 5
			each := long.Rounds(20, 60) * min(n, long.Rounds(2, 33))
			w := newWork(b, n)
			for b.Loop() {
				var agents, bare, ratios []time.Duration
				var calls, bareCalls int64
				cpu := -w.used()
				for range rounds {
					w.publish("bare.a", each)
					took, asked := w.round(w.bare, func() { w.pull(each, n) })
					bare, bareCalls = append(bare, took/time.Duration(each)), bareCalls+asked
					want := w.answers.Load() + int64(each)
					took, asked = w.round(w.work, func() {
						w.publish("work.a", each)
						w.until("all is answered", func() bool { return w.answers.Load() >= want })
					})
					agents, calls = append(agents, took/time.Duration(each)), calls+asked-int64(each)
					ratios = append(ratios, agents[len(agents)-1]*1000/bare[len(bare)-1])
				}
				messages := float64(rounds * each)
				b.ReportMetric(float64(median(agents))/1e6, "ms/message")
				b.ReportMetric(float64(median(bare))/1e6, "ms/bare")
				b.ReportMetric(float64(median(ratios))/1000, "ratio")
				b.ReportMetric(float64(cpu+w.used())/1e6/messages, "cpu-ms/message")
				b.ReportMetric(float64(calls)/messages, "calls/message")
				b.ReportMetric(float64(bareCalls)/messages, "calls/bare")
			}
			w.decided()
			w.idle(time.Duration(long.Rounds(2, 120)) * time.Second)
		})
	}
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// work is a server with two like streams: one for agents and their sessions, and one for
// bare workers.
type work struct {
	*testing.B
	ctx     context.Context
	server  *fleet.Server
	js      jetstream.JetStream
	work    jetstream.Stream
	bare    jetstream.Stream
	agents  []*exec.Cmd
	answers atomic.Int64
	sent    int
}

// newWork makes the stream of the agents as setup does, starts them with a session each,
// and returns when they wait for messages.
func newWork(b *testing.B, agents int) *work {
	bin, remove, err := build.Commands("cmd/heartbeat-nats")
	require.NoError(b, err)
	b.Cleanup(remove)
	w := &work{B: b, ctx: b.Context(), server: fleet.Start(b)}
	_, w.js = w.server.Connect(b)
	plan, err := setup.Make(w.ctx, w.js, &setup.Wanted{
		Stream: "WORK", Subjects: []string{"work.>"}, MaxDeliver: setup.DefaultMaxDeliver, AckWait: setup.DefaultAckWait,
		Duplicates: 2 * time.Minute, Replicas: 1, Given: map[string]bool{},
	})
	require.NoError(b, err)
	require.NoError(b, plan.Apply(w.ctx))
	w.work, err = w.js.Stream(w.ctx, "WORK")
	require.NoError(b, err)
	pulled, err := setup.Consumer(w.ctx, w.js, "WORK", ">")
	require.NoError(b, err)
	like := w.work.CachedInfo().Config
	like.Name, like.Subjects = "BARE", []string{"bare.>"}
	w.bare, err = w.js.CreateStream(w.ctx, like)
	require.NoError(b, err)
	config := pulled.CachedInfo().Config
	config.Name, config.Durable, config.FilterSubject = "bare", "bare", ""
	_, err = w.bare.CreateConsumer(w.ctx, config)
	require.NoError(b, err)

	ctx, cancel := context.WithCancel(context.Background())
	var sessions sync.WaitGroup
	b.Cleanup(func() { cancel(); sessions.Wait() })
	for i := range agents {
		box := filepath.Join(b.TempDir(), "inbox.jsonl")
		said, err := os.Create(filepath.Join(filepath.Dir(box), "said"))
		require.NoError(b, err)
		agent := exec.Command(filepath.Join(bin, "heartbeat-nats"), "agent", "--server", w.server.URL(), "--stream", "WORK",
			"--inbox", box, "--name", "agent"+strconv.Itoa(i), "--no-session")
		agent.Stdout, agent.Stderr = said, said
		require.NoError(b, errors.Join(agent.Start(), said.Close()))
		b.Cleanup(func() {
			_ = agent.Process.Signal(syscall.SIGTERM) // it may have ended
			_ = agent.Wait()                          // 128 and the signal
		})
		w.agents = append(w.agents, agent)
		sessions.Go(func() {
			if err := w.session(ctx, box); err != nil && ctx.Err() == nil {
				b.Errorf("session of %s: %v", box, err)
			}
		})
	}
	w.until("the agents ask for messages", func() bool {
		info, err := pulled.Info(w.ctx)
		return err == nil && info.NumWaiting == agents
	})
	return w
}

// session makes the hook's writes at the end of each turn, which takes no time: it
// acknowledges what was given, gives what is next, and commits that.
func (w *work) session(ctx context.Context, path string) error {
	box, err := inbox.Open(path, inbox.Options{LockWait: time.Minute})
	if err != nil {
		return err
	}
	changes := box.Watch(5 * time.Second)
	defer func() { _ = changes.Close() }()
	for {
		gave, answered, err := turn(ctx, box)
		if err != nil {
			return err
		}
		if answered {
			w.answers.Add(1)
		}
		if gave {
			continue
		}
		select {
		case <-changes.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func turn(ctx context.Context, box *inbox.Inbox) (gave, answered bool, err error) {
	tx, err := box.Begin(ctx)
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	if answered = tx.InFlight() != nil; answered {
		err = tx.Acknowledge("done, and the tests pass")
	}
	e, none := tx.Next(inbox.Mark{})
	if gave = none == nil; gave && err == nil {
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
	} else if !errors.Is(none, inbox.ErrEmpty) && !errors.Is(none, inbox.ErrTorn) {
		err = errors.Join(err, none)
	}
	if err == nil && tx.Dirty() {
		err = tx.Commit()
	}
	return gave, answered, err
}

// round takes the time until do returns and the stream is empty, and counts what clients
// send the server meanwhile: requests, publishes and acknowledgements.
func (w *work) round(stream jetstream.Stream, do func()) (took time.Duration, calls int64) {
	before, asked, began := w.calls(), int64(0), time.Now()
	do()
	w.until("the stream is empty", func() bool {
		asked++
		info, err := stream.Info(w.ctx)
		return err == nil && info.State.Msgs == 0
	})
	return time.Since(began), w.calls() - before - asked
}

func (w *work) calls() int64 {
	v, err := w.server.Server().Varz(&server.VarzOptions{})
	require.NoError(w, err)
	return v.InMsgs
}

func (w *work) until(what string, done func() bool) {
	w.Helper()
	require.Eventually(w, done, 10*time.Minute, 2*time.Millisecond, what)
}

func (w *work) publish(subject string, n int) {
	for range n {
		w.sent++
		m := nats.NewMsg(subject)
		m.Header.Set(message.HeaderMsgID, "m"+strconv.Itoa(w.sent))
		m.Data = fmt.Appendf(nil, "entry %01017d", w.sent)
		_, err := w.js.PublishMsgAsync(m)
		require.NoError(w, err)
	}
	<-w.js.PublishAsyncComplete()
}

// pull is what bare workers do: pull a message, and acknowledge it.
func (w *work) pull(messages, workers int) {
	var left atomic.Int64
	left.Store(int64(messages))
	var all sync.WaitGroup
	for range workers {
		_, js := w.server.Connect(w)
		c, err := js.Consumer(w.ctx, "BARE", "bare")
		require.NoError(w, err)
		all.Go(func() {
			for err == nil && left.Add(-1) >= 0 {
				var m jetstream.Msg
				if m, err = c.Next(jetstream.FetchContext(w.ctx)); err == nil {
					err = m.DoubleAck(w.ctx)
				}
			}
			if err != nil {
				w.Errorf("a bare worker: %v", err)
			}
		})
	}
	all.Wait()
}

// used is the CPU time of all agents so far.
func (w *work) used() (sum time.Duration) {
	for _, a := range w.agents {
		one, err := script.CPUTime(a.Process.Pid)
		require.NoError(w, err)
		sum += one
	}
	return sum
}

// decided checks that each message has one decision.
func (w *work) decided() {
	bucket := message.Bucket("WORK")
	results, err := w.js.Stream(w.ctx, "KV_"+bucket)
	require.NoError(w, err)
	info, err := results.Info(w.ctx, jetstream.WithSubjectFilter("$KV."+bucket+".*"))
	require.NoError(w, err)
	require.Len(w, info.State.Subjects, int(w.answers.Load()))
}

// idle measures agents that nothing happens to, after what follows the work is done.
func (w *work) idle(length time.Duration) {
	time.Sleep(length / 4)
	cpu, calls := -w.used(), -w.calls()
	time.Sleep(length)
	each := length.Minutes() * float64(len(w.agents))
	w.ReportMetric(float64(cpu+w.used())/1e6/each, "idle-cpu-ms/min")
	w.ReportMetric(float64(calls+w.calls())/each, "idle-calls/min")
	var resident int64
	for _, a := range w.agents {
		one, err := script.Memory(a.Process.Pid, "Rss")
		require.NoError(w, err)
		resident += one
	}
	w.ReportMetric(float64(resident)/1e6/float64(len(w.agents)), "resident-MB")
}
