package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	smallLines = 10 // 10 KB
	// ticksPerRound leaves one entry of the small inbox undelivered.
	ticksPerRound = smallLines - 3

	maxBigRatio = 1.10
	maxPeak     = 20_000_000
)

// place is a position in an inbox, and what ticks cost there.
type place struct {
	*lane
	name  string
	start int // the entry that the cursor is set before
	ticks sample
	peak  int64 // bytes
}

func measureBigfile(b *bench) (table, error) {
	places, err := b.places()
	if err != nil {
		return table{}, err
	}
	// In a different order each time: a tick may pay for what the previous one left
	// for the file system to do.
	order := rand.New(rand.NewPCG(1, 2))
	for range b.plan.rounds {
		if err := b.round(places, order); err != nil {
			return table{}, err
		}
	}
	for _, p := range places {
		p.close()
	}
	return bigTable(b, places), nil
}

// places returns the small inbox and three positions in the big one, which is one
// file with three names, each in its own directory.
func (b *bench) places() ([]*place, error) {
	big := filepath.Join(b.dir, "big.jsonl")
	if err := writeInbox(big, b.plan.bigLines); err != nil {
		return nil, err
	}
	places := []*place{
		{name: "small inbox"},
		{name: "cursor at 0"},
		{name: "cursor in the middle", start: b.plan.bigLines / 2},
		{name: "cursor near the end", start: b.plan.bigLines - smallLines},
	}
	for i, p := range places {
		var err error
		if p.lane, err = b.lane("big-" + strconv.Itoa(i)); err != nil {
			return nil, err
		}
		if i == 0 {
			err = writeInbox(p.inbox, smallLines)
		} else {
			err = os.Link(big, p.inbox)
		}
		if err != nil {
			return nil, err
		}
	}
	return places, nil
}

// round resets all places and then takes ticks in random order.
func (b *bench) round(places []*place, order *rand.Rand) error {
	for _, p := range places {
		if err := p.restart(p.start); err != nil {
			return err
		}
		for range 2 { // the first delivers, the second acknowledges too
			if err := p.weigh(b.programs.peak); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	for range ticksPerRound {
		for _, i := range order.Perm(len(places)) {
			took, err := places[i].tick()
			if err != nil {
				return fmt.Errorf("%s: %w", places[i].name, err)
			}
			places[i].ticks = append(places[i].ticks, took)
		}
	}
	return nil
}

// weigh measures the peak memory of a tick. Its time is not measured, since the program
// that measures memory adds to it.
func (p *place) weigh(program string) error {
	report := filepath.Join(p.dir, "peak.txt")
	if _, err := p.tickBy(program, report, p.hook, "--inbox", p.inbox); err != nil {
		return err
	}
	peak, err := readPeak(report)
	p.peak = max(p.peak, peak)
	return err
}

// readPeak reads what the program that measures peak memory has written.
func readPeak(report string) (int64, error) {
	text, err := os.ReadFile(report)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

func bigTable(b *bench, places []*place) table {
	small := places[0]
	t := table{
		title: "A big inbox",
		how: fmt.Sprintf("The same tick on an inbox of %s (lines of 1 KB), in turn with an inbox of 10 KB, in random order. The ratio is the median of each\n"+
			"tick's to the one on the small inbox beside it. The memory is the peak of the process (`ru_maxrss`).", megabytes(int64(b.plan.bigLines)*entrySize)),
		header: []string{"", "ticks", "median", "min", "ratio", "peak memory"},
	}
	steady, light := true, true
	for _, p := range places {
		r := p.ticks.over(small.ticks)
		t.add(p.name, fmt.Sprint(len(p.ticks)), ms(p.ticks.median()), ms(p.ticks.min()), ratio(r), megabytes(p.peak))
		steady, light = steady && r <= maxBigRatio, light && p.peak < maxPeak
	}
	t.result = fmt.Sprintf("Targets: a ratio of at most %.2f: %s; memory under %s: %s.", maxBigRatio, met(steady), megabytes(maxPeak), met(light))
	return t
}
