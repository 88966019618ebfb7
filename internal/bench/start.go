package main

import "fmt"

const maxStartRatio = 1.20

// measureStart compares the start of the hook with that of a Go program that does nothing.
func measureStart(b *bench) (table, error) {
	r, err := b.runner()
	if err != nil {
		return table{}, err
	}
	defer r.close()
	var hook, empty sample
	for range b.plan.pairs {
		_, took, err := r.run(nil, b.programs.hook, "--version")
		if err != nil {
			return table{}, err
		}
		_, floor, err := r.run(nil, b.programs.empty)
		if err != nil {
			return table{}, err
		}
		hook, empty = append(hook, took), append(empty, floor)
	}
	t := table{
		title:  "Start-up",
		how:    "`heartbeat-stop --version` in turn with a Go program that prints one line, both from start to end. The ratio is the median of each run's to the one beside it.",
		header: []string{"", "runs", "median", "min", "ratio"},
	}
	over := hook.over(empty)
	t.add("heartbeat-stop --version", fmt.Sprint(len(hook)), ms(hook.median()), ms(hook.min()), ratio(over))
	t.add("an empty Go program", fmt.Sprint(len(empty)), ms(empty.median()), ms(empty.min()), ratio(1))
	t.result = fmt.Sprintf("Target: a ratio of at most %.2f: %s.", maxStartRatio, met(over <= maxStartRatio))
	return t, nil
}
