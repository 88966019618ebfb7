package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// crowds is the result of all rounds.
type crowds struct {
	exits         sample // from an answer's acknowledgement to its waiter's end
	with, without sample // from the session's start until everybody had an answer
	// CPU time of a whole crowd: until all wait, for each second of that, and from
	// the first answer to the end.
	coming, asleep, leaving sample
}

func measureWaiters(b *bench) (table, error) {
	if !canSeeWaiting {
		return table{}, errors.New("this system does not show what a process waits for")
	}
	var all crowds
	for i := range b.plan.crowds {
		if err := all.round(b, strconv.Itoa(i)); err != nil {
			return table{}, fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	return all.table(b), nil
}

// round drains the same number of entries without anybody waiting, and with a producer
// waiting for each.
func (all *crowds) round(b *bench, name string) error {
	alone, err := b.crowd("uncrowded-" + name)
	if err != nil {
		return err
	}
	if err := alone.sendOnly(); err != nil {
		return err
	}
	took, err := alone.drain()
	if err != nil {
		return err
	}
	all.without = append(all.without, took)
	c, err := b.crowd("crowd-" + name)
	if err != nil {
		return err
	}
	return errors.Join(all.wait(c), c.end())
}

// wait is a round with a crowd.
func (all *crowds) wait(c *crowd) error {
	if err := c.start(); err != nil {
		return err
	}
	coming, err := c.cpuTime()
	if err != nil {
		return err
	}
	if err := c.stay(c.b.plan.idle); err != nil {
		return err
	}
	stayed, err := c.cpuTime()
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := c.drain(); err != nil {
		return err
	}
	last, exits, err := c.collect()
	if err != nil {
		return err
	}
	all.exits, all.with = append(all.exits, exits...), append(all.with, last.Sub(began))
	all.coming = append(all.coming, coming)
	all.asleep = append(all.asleep, time.Duration(float64(stayed-coming)/c.b.plan.idle.Seconds()))
	all.leaving = append(all.leaving, c.used()-stayed)
	return nil
}

func (all *crowds) table(b *bench) table {
	t := table{
		title: "Waiting for answers",
		how: fmt.Sprintf("%d processes of `send --wait --timeout 60s` at once on one inbox, asleep for %v, then drained by a session stand-in with the real hook.\n"+
			"Each printed the answer to its own entry and exited with 0. The acknowledgement is the `acknowledged_at` of the result, which is made before its\n"+
			"commit. The CPU time is that of all %d processes together, user and system.", b.plan.crowd, b.plan.idle, b.plan.crowd),
		header: []string{"", "runs", "median", "min", "worst"},
		result: "No target.",
	}
	row := func(name string, s sample) {
		t.add(name, fmt.Sprint(len(s)), ms(s.median()), ms(s.min()), ms(s.max()))
	}
	row("acknowledgement to the waiter's exit", all.exits)
	row(fmt.Sprintf("drain of %d entries, to the last waiter's exit", b.plan.crowd), all.with)
	row("the same with nobody waiting", all.without)
	row("CPU until all are asleep", all.coming)
	row("CPU for each second asleep", all.asleep)
	row("CPU from the first answer to the last exit", all.leaving)
	return t
}

// file is the path of a file beside the crowd's inbox.
func (c *crowd) file(name string) string { return filepath.Join(filepath.Dir(c.inbox), name) }
