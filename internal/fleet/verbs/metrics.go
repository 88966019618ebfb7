package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/fleet/message"
)

// figures is what metrics prints with --json.
type figures struct {
	*seen
	Settled    uint64 `json:"settled"`    // only "metrics"
	Superseded uint64 `json:"superseded"` // only "metrics"
}

func metricsVerb() cli.Verb {
	return cli.Verb{
		Name:  "metrics",
		Short: "print figures for Prometheus",
		Long: `Print how many messages wait, are worked on and were settled, and what the agents
do, in the text format that Prometheus reads. With --textfile the figures take a
file's place at once, for the textfile collector.

Exit status: 0 printed or written, 1 not.`,
		Example: `heartbeat-nats metrics
heartbeat-nats metrics --textfile /var/lib/node_exporter/heartbeat_nats.prom`,
		Build: func(f *pflag.FlagSet) cli.Action {
			var o common
			o.begin(f)
			output := ""
			f.Var(cli.Named(&output, "name a file, or leave the flag out"), "textfile", "write them to this `file`, whole or not at all")
			cli.AddAlias(f, "textfile", "output")
			return o.action(f, "metrics", cli.NoArgs, func(ctx context.Context) error { return o.printFigures(ctx, output) })
		},
	}
}

func (o *common) printFigures(ctx context.Context, output string) error {
	var f figures
	var err error
	if f.seen, err = o.gather(ctx); err != nil {
		return err
	}
	bucket := message.Bucket(o.stream)
	found, err := o.openStream(ctx, "KV_"+bucket)
	if err == nil {
		f.Settled, err = count(ctx, found, "$KV."+bucket+".*")
	}
	if err == nil {
		f.Superseded, err = count(ctx, found, "$KV."+bucket+".superseded.*.*")
	}
	if err != nil {
		return fmt.Errorf("count the results: %w", o.explain(err))
	}
	o.s.Warn(f.Warnings)
	content := f.text()
	if o.json {
		var b bytes.Buffer
		if err := cli.PrintJSON(&b, f); err != nil {
			return err
		}
		content = b.Bytes()
	}
	if output != "" {
		return program.WriteFigures(output, content)
	}
	_, err = o.s.Out.Write(content)
	return err
}

// count returns how many messages a stream has under a subject. A consumer counts them without reading them.
func count(ctx context.Context, found jetstream.Stream, subject string) (uint64, error) {
	counter, err := found.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: subject, AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverAllPolicy,
		InactiveThreshold: time.Minute, MemoryStorage: true,
	})
	if err != nil {
		return 0, err
	}
	info := counter.CachedInfo()
	err = found.DeleteConsumer(ctx, info.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = nil
	}
	return info.NumPending, err
}

func (f *figures) text() []byte {
	t := &program.Figures{Labels: []string{"stream", f.Stream}}
	t.One("heartbeat_nats_messages", program.Gauge, "Messages in the stream: those that wait, and those that agents have.", float64(f.Messages))
	t.One("heartbeat_nats_messages_in_work", program.Gauge, "Messages that agents have, not acknowledged yet.", float64(f.InWork))
	t.One("heartbeat_nats_bytes", program.Gauge, "Bytes of the messages in the stream.", float64(f.Bytes))
	if f.Oldest != nil {
		t.One("heartbeat_nats_oldest_age_seconds", program.Gauge, "How old the oldest message in the stream is. Absent when there is none.", f.OldestAge)
	}
	t.One("heartbeat_nats_dead_letters", program.Gauge, "Dead letters that are kept.", float64(f.DeadLetters))
	t.One("heartbeat_nats_settled", program.Gauge, "Decisions that are kept, of answers and of dead letters.", float64(f.Settled))
	t.One("heartbeat_nats_superseded", program.Gauge, "Answers that are kept and were not the first: work that was done twice.", float64(f.Superseded))
	t.Head("heartbeat_nats_redelivered", program.Gauge, "Messages that agents have and that were handed out before, by consumer.")
	for _, c := range f.Consumers {
		t.Series("heartbeat_nats_redelivered", float64(c.Redelivered), "consumer", c.Name)
	}
	t.Head("heartbeat_nats_agents", program.Gauge, "Agents, by state.")
	n := map[lives]int{}
	for _, a := range f.Agents {
		n[a.State]++
	}
	for _, is := range []lives{working, idle, heldUp, draining, away} {
		t.Series("heartbeat_nats_agents", float64(n[is]), "state", string(is))
	}
	f.perAgent(t)
	return []byte(t.String())
}

// mostSeries limits the agents with figures of their own: a name that changes at each start would add series for ever.
const mostSeries = 1000

// perAgent adds figures of each agent that has not ended, or of those seen last if there are too many.
func (f *figures) perAgent(t *program.Figures) {
	agents := slices.DeleteFunc(slices.Clone(f.Agents), func(a agentSeen) bool { return a.State == over })
	if len(agents) > mostSeries {
		slices.SortStableFunc(agents, func(a, b agentSeen) int { return b.LastSeen.Compare(a.LastSeen) })
		agents = agents[:mostSeries]
	}
	each := func(name, kind, help string, value func(agentSeen) float64) {
		t.Head(name, kind, help)
		for _, a := range agents {
			t.Series(name, value(a), "agent", a.Agent)
		}
	}
	each("heartbeat_nats_agent_last_seen_seconds", program.Gauge, "How long ago an agent was seen, by the server's clock.", func(a agentSeen) float64 { return a.SeenAge })
	each("heartbeat_nats_agent_holds", program.Gauge, "Messages that an agent holds.", func(a agentSeen) float64 { return float64(len(a.Holds)) })
	each("heartbeat_nats_agent_answered_total", program.Counter, "Answers that an agent told the stream, since it started.", func(a agentSeen) float64 { return float64(a.Answered) })
	each("heartbeat_nats_agent_dead_total", program.Counter, "Dead letters that an agent told the stream, since it started.", func(a agentSeen) float64 { return float64(a.Dead) })
}
