package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/layout"
	fleetnames "heartbeat/internal/fleet/names"
	"heartbeat/internal/testing/fleet"
)

const (
	fleetStream, bareStream = "WORK", "BARE"
	// fleetPatience bounds what a loaded machine may take for one round.
	fleetPatience = 10 * time.Minute
)

// queue is a stream with its consumer, and where its messages are published.
type queue struct {
	consumer jetstream.Consumer
	stream   jetstream.Stream
	name     string
	subject  string
}

// fleetRig is a server, agents and their sessions.
type fleetRig struct {
	b      *bench
	server *fleet.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	dir    string

	queue, bare *queue
	agents      []*exec.Cmd
	sessions    *sessions
	sent        int
}

func newFleet(b *bench) (f *fleetRig, err error) {
	f = &fleetRig{b: b}
	if f.dir, err = os.MkdirTemp(b.dir, "fleet-"); err != nil {
		return nil, err
	}
	if f.server, err = fleet.Run(filepath.Join(f.dir, "server")); err != nil {
		return nil, err
	}
	if f.nc, err = nats.Connect(f.server.URL()); err == nil {
		f.js, err = jetstream.New(f.nc)
	}
	if err == nil {
		err = f.setUp(b.ctx)
	}
	if err != nil {
		f.server.Stop()
		return nil, err
	}
	f.sessions = newSessions(b)
	return f, nil
}

// setUp makes the stream of the agents as setup does, and one like it for bare workers.
func (f *fleetRig) setUp(ctx context.Context) error {
	plan, err := layout.Make(ctx, f.js, &layout.Wanted{
		Stream: fleetStream, Subjects: []string{"work.>"}, MaxDeliver: layout.DefaultMaxDeliver, AckWait: layout.DefaultAckWait,
		Duplicates: 2 * time.Minute, Replicas: 1, Given: map[string]bool{},
	})
	if err == nil {
		err = plan.Apply(ctx)
	}
	if err != nil {
		return err
	}
	work, err := f.js.Stream(ctx, fleetStream)
	if err != nil {
		return err
	}
	agents, _, err := layout.Consumer(ctx, f.js, fleetStream, ">")
	if err != nil {
		return err
	}
	like := work.CachedInfo().Config
	like.Name, like.Subjects = bareStream, []string{"bare.>"}
	bare, err := f.js.CreateStream(ctx, like)
	if err != nil {
		return err
	}
	config := agents.CachedInfo().Config
	config.Name, config.Durable, config.FilterSubject = "bare", "bare", ""
	worker, err := bare.CreateConsumer(ctx, config)
	if err != nil {
		return err
	}
	f.queue = &queue{agents, work, fleetStream, "work.a"}
	f.bare = &queue{worker, bare, bareStream, "bare.a"}
	return nil
}

// addAgents starts agents, and returns when they wait for messages.
func (f *fleetRig) addAgents(n int) error {
	for range n {
		name := "agent" + strconv.Itoa(len(f.agents))
		box := filepath.Join(f.dir, name, "inbox.jsonl")
		if err := os.Mkdir(filepath.Dir(box), 0o700); err != nil {
			return err
		}
		said, err := os.Create(filepath.Join(f.dir, name, "said"))
		if err != nil {
			return err
		}
		cmd := exec.Command(f.b.programs.nats, "agent", "--server", f.server.URL(), "--stream", fleetStream,
			"--inbox", box, "--name", name, "--no-session")
		cmd.Env, cmd.Stdout, cmd.Stderr = environment(), said, said
		err = cmd.Start()
		if err := errors.Join(err, said.Close()); err != nil {
			return err
		}
		f.agents = append(f.agents, cmd)
		if err := f.sessions.start(box); err != nil {
			return err
		}
	}
	return f.until("the agents ask for messages", func(ctx context.Context) (bool, error) {
		info, err := f.queue.consumer.Info(ctx)
		return err == nil && info.NumWaiting == len(f.agents), err
	}, 50*time.Millisecond)
}

// until asks again and again.
func (f *fleetRig) until(what string, done func(context.Context) (bool, error), every time.Duration) error {
	ctx, cancel := context.WithTimeout(f.b.ctx, fleetPatience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %s", what, ctx.Err(), f.said())
		case <-time.After(every):
		}
	}
}

// said is what the first agent said last.
func (f *fleetRig) said() string {
	text, _ := os.ReadFile(filepath.Join(f.dir, "agent0", "said"))
	return strings.TrimSpace(string(text[max(0, len(text)-300):]))
}

// round publishes messages, and takes the time until done returns and the stream is empty.
// It counts what clients send the server meanwhile, beside the messages. Where nobody pulls
// before done is called, the time is from then on.
func (f *fleetRig) round(q *queue, n int, preloaded bool, done func(context.Context) error) (took time.Duration, calls float64, err error) {
	ctx, cancel := context.WithTimeout(f.b.ctx, fleetPatience)
	defer cancel()
	before, err := f.calls()
	if err != nil {
		return 0, 0, err
	}
	began, asked := time.Now(), n
	if err := f.publish(ctx, q, n); err != nil {
		return 0, 0, err
	}
	if preloaded {
		began = time.Now()
	}
	if err := done(ctx); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, f.said())
	}
	err = f.until("the stream is empty", func(ctx context.Context) (bool, error) {
		asked++
		info, err := q.stream.Info(ctx)
		return err == nil && info.State.Msgs == 0, err
	}, 5*time.Millisecond)
	took = time.Since(began)
	after, callsErr := f.calls()
	return took, float64(after - before - int64(asked)), errors.Join(err, callsErr)
}

// publish puts messages into a stream.
func (f *fleetRig) publish(ctx context.Context, q *queue, n int) error {
	for range n {
		f.sent++
		m := nats.NewMsg(q.subject)
		m.Header.Set(fleetnames.HeaderMsgID, "m"+strconv.Itoa(f.sent))
		m.Data = []byte(entry(f.sent))
		if _, err := f.js.PublishMsgAsync(m); err != nil {
			return err
		}
	}
	select {
	case <-f.js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("publish: %w", ctx.Err())
	}
}

// work is what bare workers do: pull a message, and acknowledge it.
func (f *fleetRig) work(ctx context.Context, messages, workers int) error {
	left := make(chan struct{}, messages)
	for range messages {
		left <- struct{}{}
	}
	close(left)
	var all sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		all.Go(func() { errs <- f.workOne(ctx, left) })
	}
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

func (f *fleetRig) workOne(ctx context.Context, left <-chan struct{}) error {
	nc, err := nats.Connect(f.server.URL())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c, err := js.Consumer(ctx, f.bare.name, "bare")
	if err != nil {
		return err
	}
	for range left {
		m, err := c.Next(jetstream.FetchContext(ctx))
		if err == nil {
			err = m.DoubleAck(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answered waits until sessions have answered so many more entries.
func (f *fleetRig) answered(ctx context.Context, n int) error { return f.sessions.await(ctx, n) }

// calls is how many messages the server got from clients so far: requests, publishes and
// acknowledgements.
func (f *fleetRig) calls() (int64, error) {
	v, err := f.server.Server().Varz(&server.VarzOptions{})
	if err != nil {
		return 0, err
	}
	return v.InMsgs, nil
}

// used is the CPU time of each agent so far.
func (f *fleetRig) used() (all []time.Duration, err error) {
	for _, a := range f.agents {
		one, err := cpuTime(a.Process.Pid)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// rest waits.
func (f *fleetRig) rest(length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-f.b.ctx.Done():
		return f.b.ctx.Err()
	}
}

// sleep measures agents that nothing happens to.
func (f *fleetRig) sleep(length time.Duration) (idle idleAgents, err error) {
	before, err := f.used()
	if err != nil {
		return idle, err
	}
	calls, err := f.calls()
	if err != nil {
		return idle, err
	}
	if err := f.rest(length); err != nil {
		return idle, err
	}
	more, err := f.calls()
	if err != nil {
		return idle, err
	}
	minutes := length.Minutes()
	idle.calls = float64(more-calls) / minutes / float64(len(f.agents))
	after, err := f.used()
	if err != nil {
		return idle, err
	}
	var private []int64
	for i, a := range f.agents {
		m, err := memory(a.Process.Pid)
		if err != nil {
			return idle, err
		}
		idle.cpu = append(idle.cpu, time.Duration(float64(after[i]-before[i])/minutes))
		idle.rss, idle.pss, private = append(idle.rss, m["Rss"]), append(idle.pss, m["Pss"]), append(private, m["Private_Clean"]+m["Private_Dirty"])
	}
	idle.private = median(private)
	return idle, nil
}

// memory is what a process has in memory, in bytes, by the words of smaps_rollup.
func memory(pid int) (map[string]int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		var kb int64
		name, rest, _ := strings.Cut(line, ":")
		if n, _ := fmt.Sscanf(rest, "%d kB", &kb); n == 1 {
			all[name] = kb << 10
		}
	}
	return all, nil
}

// useHooks has sessions start a hook for each stop from now on.
func (f *fleetRig) useHooks() { f.sessions.hooks.Store(true) }

// verify checks that each message has one decision.
func (f *fleetRig) verify() error {
	results, err := f.js.Stream(f.b.ctx, "KV_"+fleetnames.Bucket(fleetStream))
	if err != nil {
		return err
	}
	info, err := results.Info(f.b.ctx, jetstream.WithSubjectFilter("$KV."+fleetnames.Bucket(fleetStream)+".*"))
	if err != nil {
		return err
	}
	if got, want := len(info.State.Subjects), int(f.sessions.answers.Load()); got != want {
		return fmt.Errorf("%d decisions about %d messages", got, want)
	}
	return nil
}

func (f *fleetRig) close() error {
	err := f.sessions.end()
	for _, a := range f.agents {
		_ = a.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, a := range f.agents {
		hangs := time.AfterFunc(patience, func() { _ = a.Process.Kill() }) // it may just have ended
		_ = a.Wait()                                                       // 128 and the signal
		hangs.Stop()
	}
	f.nc.Close()
	f.server.Stop()
	return errors.Join(err, os.RemoveAll(f.dir))
}
