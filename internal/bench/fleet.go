package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Targets for agents of one stream.
const (
	maxFleetRatio = 3.0 // of a bare worker's time per message
	maxAgentSize  = 15_000_000
)

// fleetPlan is how much agents have to do.
type fleetPlan struct {
	agents   int
	messages int // of all rounds together
	alone    int // messages of an agent, and of a worker, that have the server for themselves
	whole    int // messages whose sessions start a hook
	rounds   int
	asleep   time.Duration
}

// measureFleet has agents with scripted sessions work through a stream, in turn with bare
// workers, which acknowledge and do nothing.
func measureFleet(b *bench) (t table, err error) {
	f, err := newFleet(b)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	p := b.plan.fleet
	if err := f.addAgents(1); err != nil {
		return t, err
	}
	one, err := f.race(p.alone, 1)
	if err != nil {
		return t, fmt.Errorf("one agent: %w", err)
	}
	if err := f.addAgents(p.agents - 1); err != nil {
		return t, err
	}
	all, err := f.race(p.messages, p.agents)
	if err != nil {
		return t, fmt.Errorf("%d agents: %w", p.agents, err)
	}
	f.useHooks()
	hooks, err := f.race(p.whole, p.agents)
	if err != nil {
		return t, fmt.Errorf("%d agents with hooks: %w", p.agents, err)
	}
	if err := f.verify(); err != nil {
		return t, err
	}
	if err := f.rest(p.asleep / 4); err != nil { // what follows the work is done then
		return t, err
	}
	asleep, err := f.sleep(p.asleep)
	if err != nil {
		return t, fmt.Errorf("idle agents: %w", err)
	}
	t = table{
		title: "Agents of one stream",
		how: fmt.Sprintf("A server with synced writes, in turn for agents (`heartbeat-nats agent --no-session`, a process each) and for bare workers that pull one\n"+
			"message and acknowledge it with DoubleAck, until the stream is empty, in %d rounds. The agents' time includes publishing, the workers' does not. A\n"+
			"scripted session answers each entry at once: it commits its delivery, and its acknowledgement.", p.rounds),
		header: []string{"", "messages", "per message, median", "bare workers, as many", "ratio", "CPU of agents, per message", "calls per message", "bare"},
	}
	one.row(&t, "one agent")
	all.row(&t, fmt.Sprintf("%d agents", p.agents))
	hooks.row(&t, fmt.Sprintf("%d agents, a process of heartbeat-stop for each stop", p.agents))
	lone := float64(all.agents.median()) / float64(one.bare.median())
	t.result = fmt.Sprintf("One agent takes %.2f of the time of one bare worker, %d agents %.2f of that of %d, and %.2f of that of one (target: at most %.0f: %s).\n%s",
		one.ratio(), p.agents, all.ratio(), p.agents, lone, maxFleetRatio, met(all.ratio() <= maxFleetRatio), asleep)
	return t, nil
}

// race is how agents and bare workers did, in turn.
type race struct {
	messages         int
	agents, bare     sample // per message, for each round
	calls, bareCalls float64
	cpu              time.Duration // of the agents, per message
}

func (r race) ratio() float64 { return r.agents.over(r.bare) }

func (r race) row(t *table, name string) {
	t.add(name, fmt.Sprint(r.messages), ms(r.agents.median()), ms(r.bare.median()), ratio(r.ratio()), ms(r.cpu), fmt.Sprintf("%.1f", r.calls), fmt.Sprintf("%.1f", r.bareCalls))
}

// race gives all agents that are there, and as many workers, so many messages in turn.
func (f *fleetRig) race(messages, workers int) (race, error) {
	rounds := min(f.b.plan.fleet.rounds, messages)
	r := race{messages: messages / rounds * rounds}
	for i := range rounds {
		each := messages / rounds
		bare, calls, err := f.round(f.bare, each, true, func(ctx context.Context) error { return f.work(ctx, each, workers) })
		if err != nil {
			return r, fmt.Errorf("bare workers: %w", err)
		}
		r.bare, r.bareCalls = append(r.bare, bare/time.Duration(each)), r.bareCalls+calls/float64(r.messages)
		before, err := f.used()
		if err != nil {
			return r, err
		}
		took, calls, err := f.round(f.queue, each, false, func(ctx context.Context) error { return f.answered(ctx, each) })
		if err != nil {
			return r, err
		}
		after, err := f.used()
		if err != nil {
			return r, err
		}
		for i := range after {
			r.cpu += (after[i] - before[i]) / time.Duration(r.messages)
		}
		r.agents, r.calls = append(r.agents, took/time.Duration(each)), r.calls+calls/float64(r.messages)
		f.b.say("round %d of %d: %v per message, bare %v", i+1, rounds, r.agents[i], r.bare[i])
	}
	return r, nil
}

// idleAgents are agents that nothing happened to.
type idleAgents struct {
	cpu      sample  // of a minute, for each
	rss, pss []int64 // bytes, of each
	private  int64   // bytes, in the median
	calls    float64 // of one, in a minute
}

func (i idleAgents) String() string {
	cpu, rss := i.cpu.median(), median(i.rss)
	return fmt.Sprintf("An idle agent of %d that has worked: %s of CPU a minute in the median, %s at most (target: under %s: %s); %s resident, %s at most (target: under %s: %s),\n"+
		"of which %s are its own and the rest are pages of the program that all share (Pss %s); %.1f messages to the server a minute.",
		len(i.cpu), ms(cpu), ms(i.cpu.max()), ms(maxIdleCPU), met(cpu < maxIdleCPU),
		megabytes(rss), megabytes(slices.Max(i.rss)), megabytes(maxAgentSize), met(rss < maxAgentSize),
		megabytes(i.private), megabytes(median(i.pss)), i.calls)
}
