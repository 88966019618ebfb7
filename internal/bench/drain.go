package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	maxGrowth = 1.10
	// baseEvery is the number of ticks in a window between two runs of the baseline.
	baseEvery = 5
)

// drained is a whole drain. The baseline runs in the first and the last window, to
// distinguish growth from a machine that has become slower.
type drained struct {
	ticks       sample
	first, last sample // of the baseline
	window      int
}

func measureDrain(b *bench) (table, error) {
	n := b.plan.drain
	l, err := b.filledLane("drain", n)
	if err != nil {
		return table{}, err
	}
	defer l.close()
	base, err := b.baseline("drain-baseline")
	if err != nil {
		return table{}, err
	}
	defer base.close()
	d := drained{window: min(1000, n/3)}
	if err := d.run(b, l, base, n); err != nil {
		return table{}, err
	}
	if err := answeredInOrder(filepath.Join(l.dir, ".results.jsonl"), n); err != nil {
		return table{}, err
	}
	return d.table(n), nil
}

func (d *drained) run(b *bench, l *lane, base *baseline, n int) error {
	if _, err := l.tick(); err != nil { // the first has nothing to acknowledge
		return err
	}
	for i := range n - 1 {
		took, err := l.tick()
		if err != nil {
			return err
		}
		d.ticks = append(d.ticks, took)
		if err := d.reference(base, i, n-1); err != nil {
			return err
		}
		if (i+1)%10_000 == 0 {
			b.say("drain: %d of %d", i+1, n)
		}
	}
	return l.finish()
}

func (d *drained) reference(base *baseline, i, n int) error {
	early, late := i < d.window, i >= n-d.window
	if i%baseEvery > 0 || !early && !late {
		return nil
	}
	took, err := base.write()
	if early {
		d.first = append(d.first, took)
	} else {
		d.last = append(d.last, took)
	}
	return err
}

// answeredInOrder checks that each of the n entries has a result.
func answeredInOrder(path string, n int) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	defer f.Close()
	lines, got := bufio.NewScanner(f), 0
	lines.Buffer(nil, 1<<20)
	for ; lines.Scan(); got++ {
		var r struct {
			Start int64 `json:"start_offset"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("results: line %d: %w", got+1, err)
		}
		if want := int64(got) * entrySize; r.Start != want {
			return fmt.Errorf("results: line %d is of the entry at %d instead of %d", got+1, r.Start, want)
		}
	}
	if got != n {
		err = fmt.Errorf("results: %d lines for %d entries", got, n)
	}
	return errors.Join(lines.Err(), err)
}

func (d *drained) table(n int) table {
	first, last := d.ticks[:d.window], d.ticks[len(d.ticks)-d.window:]
	total := d.ticks.sum()
	t := table{
		title: "A long drain",
		how: fmt.Sprintf("%d entries of 1 KB, one tick each, %s of ticks altogether; each was answered, in order. The two atomic writes were run after each\n"+
			"%dth tick of the first and the last %d, to show whether the machine itself changed.", n, total.Round(time.Second), baseEvery, d.window),
		header: []string{"", "tick, median", "tick, min", "two atomic writes, median"},
	}
	t.add(fmt.Sprintf("first %d", d.window), ms(first.median()), ms(first.min()), ms(d.first.median()))
	t.add(fmt.Sprintf("last %d", d.window), ms(last.median()), ms(last.min()), ms(d.last.median()))
	growth := float64(last.median()) / float64(first.median())
	machine := float64(d.last.median()) / float64(d.first.median())
	t.add("last / first", ratio(growth), ratio(float64(last.min())/float64(first.min())), ratio(machine))
	t.result = fmt.Sprintf("Target: no growth (last / first at most %.2f, the machine's own change taken out): %s.", maxGrowth, met(growth/machine <= maxGrowth))
	return t
}
