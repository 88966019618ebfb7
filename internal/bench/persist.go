package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const maxWait = 50 * time.Millisecond

func measurePersist(b *bench) (table, error) {
	if !canSeeWaiting {
		return table{}, errors.New("this system does not show what a process waits for")
	}
	l, err := b.filledLane("persist", 0)
	if err != nil {
		return table{}, err
	}
	defer l.close()
	var waits sample
	for range b.plan.waits {
		took, err := l.wait()
		if err != nil {
			return table{}, fmt.Errorf("run %d: %w", len(waits)+1, err)
		}
		waits = append(waits, took)
	}
	t := table{
		title: "Waiting for an entry",
		how: "A hook with `--mode persist` that waits; a line is appended with one write; the time until its decision has been read from the hook's\n" +
			"stdout. It includes the syncs of the inbox and of the commit.",
		header: []string{"", "runs", "median", "min", "worst"},
		result: fmt.Sprintf("Target: at most %d ms at the worst: %s.", maxWait.Milliseconds(), met(waits.max() <= maxWait)),
	}
	t.add("newline to decision", fmt.Sprint(len(waits)), ms(waits.median()), ms(waits.min()), ms(waits.max()))
	return t, nil
}

// wait starts a hook on an inbox with nothing new, and appends an entry when the hook
// waits.
func (l *lane) wait() (time.Duration, error) {
	w, err := l.startWaiting()
	if err != nil {
		return 0, err
	}
	err = w.awaitWaiting()
	var appended time.Time
	if err == nil {
		appended, err = appendEntry(l.inbox, entry(l.next))
	}
	if err != nil {
		return 0, errors.Join(err, w.kill())
	}
	d := <-w.decision
	if err := errors.Join(d.err, l.verify(w.cmd.Args, w.cmd.Wait()), l.delivered(d.stdout)); err != nil {
		return 0, err
	}
	return d.at.Sub(appended), nil
}

// appendEntry adds a line with one write, as `echo >>` does, and returns when.
func appendEntry(path, text string) (at time.Time, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return at, err
	}
	line := []byte(text + "\n")
	at = time.Now()
	_, err = f.Write(line)
	return at, errors.Join(err, f.Close())
}
