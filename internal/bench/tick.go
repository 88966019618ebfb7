package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// maxTickRatio is the target for this disk. Where syncs cost a lot, only their number
// counts; where they are free, only the hook's own work.
func (b *bench) maxTickRatio() float64 {
	switch {
	case b.sync >= time.Millisecond:
		return 0.60
	case fileSystem(b.dir) == "tmpfs":
		return 1.25
	}
	return 0.80
}

func measureTick(b *bench) (table, error) {
	// One for the first tick, and a whole block too many for the last.
	l, err := b.filledLane("tick", 1+b.plan.pairs+2*(b.plan.alone+aloneBlock))
	if err != nil {
		return table{}, err
	}
	defer l.close()
	base, err := b.baseline("tick-baseline")
	if err != nil {
		return table{}, err
	}
	defer base.close()
	if _, err := l.tick(); err != nil { // the first has nothing to acknowledge
		return table{}, err
	}
	ticks, writes, err := inTurn(l, base, b.plan.pairs)
	if err != nil {
		return table{}, err
	}
	aloneTicks, aloneWrites, err := apart(l, base, b.plan.alone)
	if err != nil {
		return table{}, err
	}
	metered, plain, err := b.tickWithMeter()
	if err != nil {
		return table{}, err
	}
	t := table{
		title: "One tick",
		how: "One acknowledge-and-deliver tick as a whole process, hook input on stdin, entries of 1 KB, in turn with a Go program that does nothing\n" +
			"but two atomic writes (temporary file, file sync, rename, directory sync). Every tick printed the next entry. The ratio is the median of each\n" +
			"tick's to the run beside it. The last two rows are runs of the one without the other in between (ten in a row), where neither leaves work to the\n" +
			"other; their ratio is that of the medians. The tick with a meter charges the entry before, in a session of 150 turns, in turn with one of a session that\n" +
			"has no meter: its ratio is to that one.",
		header: []string{"", "runs", "median", "min", "ratio"},
	}
	r := ticks.over(writes)
	t.add("tick", fmt.Sprint(len(ticks)), ms(ticks.median()), ms(ticks.min()), ratio(r))
	t.add("two atomic writes", fmt.Sprint(len(writes)), ms(writes.median()), ms(writes.min()), ratio(1))
	t.add("tick, by itself", fmt.Sprint(len(aloneTicks)), ms(aloneTicks.median()), ms(aloneTicks.min()),
		ratio(float64(aloneTicks.median())/float64(aloneWrites.median())))
	t.add("two atomic writes, by themselves", fmt.Sprint(len(aloneWrites)), ms(aloneWrites.median()), ms(aloneWrites.min()), ratio(1))
	price := metered.over(plain)
	t.add("tick with a meter", fmt.Sprint(len(metered)), ms(metered.median()), ms(metered.min()), ratio(price))
	t.add("tick without", fmt.Sprint(len(plain)), ms(plain.median()), ms(plain.min()), ratio(1))
	most := b.maxTickRatio()
	t.result = fmt.Sprintf("Target: a ratio of at most %.2f: %s; with a meter, of at most %.2f: %s.", most, met(r <= most), maxMeteredTick, met(price <= maxMeteredTick))
	return t, nil
}

// maxMeteredTick is what the meter may cost a tick.
const maxMeteredTick = 1.03

// tickWithMeter takes ticks of two sessions in turn. Each has a turn in its transcript
// and a reading of the status line before, and so the same left in the caches; but of the
// second one the meter's file is elsewhere.
func (b *bench) tickWithMeter() (metered, plain sample, err error) {
	const before = 150 // turns: the meter keeps the last 128
	var lanes [2]*lane
	var sessions [2]*metering
	for i, name := range []string{"tick-metered", "tick-unmetered"} {
		if lanes[i], err = b.filledLane(name, 1+before+b.plan.pairs); err != nil {
			return nil, nil, err
		}
		defer lanes[i].close()
		sessions[i] = &metering{dir: lanes[i].dir, transcript: lanes[i].input.TranscriptPath, session: lanes[i].input.SessionID}
	}
	if sessions[1].dir, err = b.folder("tick-elsewhere"); err != nil {
		return nil, nil, err
	}
	for turn := range before + b.plan.pairs {
		var took [2]time.Duration
		for i, l := range lanes {
			if err = sessions[i].turn(); err == nil {
				err = sessions[i].read(l.runner, b.programs.meter)
			}
			if err == nil {
				took[i], err = l.tick()
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if turn >= before {
			metered, plain = append(metered, took[0]), append(plain, took[1])
		}
	}
	return metered, plain, charged(lanes[0].dir, before)
}

// charged checks that what the metered session spent was charged.
func charged(dir string, atLeast int) error {
	costs, err := os.ReadFile(filepath.Join(dir, ".costs.jsonl"))
	if err == nil && bytes.Count(costs, []byte(`"cost_usd":`)) < atLeast {
		err = fmt.Errorf("only %d entries have a price", bytes.Count(costs, []byte(`"cost_usd":`)))
	}
	return err
}

// inTurn takes n pairs of a tick and a run of the baseline.
func inTurn(l *lane, base *baseline, n int) (ticks, writes sample, err error) {
	for range n {
		tick, err := l.tick()
		if err != nil {
			return nil, nil, err
		}
		write, err := base.write()
		if err != nil {
			return nil, nil, err
		}
		ticks, writes = append(ticks, tick), append(writes, write)
	}
	return ticks, writes, nil
}

// aloneBlock is how many runs of one kind are done in a row. The first one may still pay
// for what the other kind left, and does not count.
const aloneBlock = 11

// apart takes n ticks and n runs of the baseline, in alternating blocks.
func apart(l *lane, base *baseline, n int) (ticks, writes sample, err error) {
	for len(ticks) < n {
		some, err := block(l.tick)
		if err != nil {
			return nil, nil, err
		}
		others, err := block(base.write)
		if err != nil {
			return nil, nil, err
		}
		ticks, writes = append(ticks, some...), append(writes, others...)
	}
	return ticks, writes, nil
}

func block(run func() (time.Duration, error)) (s sample, err error) {
	for range aloneBlock {
		took, err := run()
		if err != nil {
			return nil, err
		}
		s = append(s, took)
	}
	return s[1:], nil
}
