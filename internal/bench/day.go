package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"heartbeat/internal/testing/days"
)

const (
	// maxLeft is what a drained and compacted inbox may take on the disk.
	maxLeft = 10_000_000
	daySeed = 1
)

// compacted is a day's directory before and after its compaction.
type compacted struct{ before, after int64 }

func measureDay(b *bench) (table, error) {
	dir, err := b.folder("day")
	if err != nil {
		return table{}, err
	}
	d := days.Day{
		Command: b.programs.hook, Dir: dir, Entries: b.plan.day, KillEvery: b.plan.killEvery,
		Random: rand.New(rand.NewPCG(daySeed, 0)), Env: environment(),
		Tick: func(n int) {
			if n%10_000 == 0 {
				b.say("day: %d ticks", n)
			}
		},
	}
	report, err := d.Run(b.ctx)
	if err != nil {
		return table{}, err
	}
	if want := d.Entries / d.KillEvery; report.Kills < want {
		return table{}, fmt.Errorf("%d kills in %d ticks: %d were to be", report.Kills, report.Ticks, want)
	}
	space, err := b.compact(d.Inbox())
	if err != nil {
		return table{}, err
	}
	return dayTable(d, report, space), nil
}

// compact runs the verb, and checks how much it leaves.
func (b *bench) compact(inbox string) (c compacted, err error) {
	dir := filepath.Dir(inbox)
	if c.before, err = days.Space(dir); err != nil {
		return c, err
	}
	r, err := b.runner()
	if err != nil {
		return c, err
	}
	defer r.close()
	if _, _, err := r.run(nil, b.programs.heartbeat, "compact", "--inbox", inbox, "--keep", "0"); err != nil {
		return c, err
	}
	if c.after, err = days.Space(dir); err == nil && c.after >= maxLeft {
		err = fmt.Errorf("compact: %s are left of %s: less than %s was promised", megabytes(c.after), megabytes(c.before), megabytes(maxLeft))
	}
	return c, err
}

func dayTable(d days.Day, r days.Report, space compacted) table {
	t := table{
		title: "A day of entries",
		how: fmt.Sprintf("%d entries of 1 KB, drained by a session stand-in whose Stop hook gets a SIGKILL in one of %d ticks, at a random moment (seed %d) of\n"+
			"its run; then `recover --on-orphan retry`, and a new session. Afterwards each entry had one result, with the answer to that very entry, in order;\n"+
			"there was no dead letter, nothing in flight, and no more redeliveries than kills. Then `compact --keep 0`. The disk use is that of the inbox's\n"+
			"whole directory (`st_blocks`).", d.Entries, d.KillEvery, daySeed),
		header: []string{"entries", "time", "ticks/s", "kills", "redeliveries", "disk use", "compacted"},
		result: fmt.Sprintf("Targets: at most one redelivery for each kill: %s; less than %s after compaction: %s.",
			met(r.Redeliveries <= r.Kills), megabytes(maxLeft), met(space.after < maxLeft)),
	}
	t.add(fmt.Sprint(d.Entries), r.Took.Round(time.Second).String(), fmt.Sprintf("%.0f", float64(r.Ticks)/r.Took.Seconds()),
		fmt.Sprint(r.Kills), fmt.Sprint(r.Redeliveries), megabytes(space.before), megabytes(space.after))
	return t
}
