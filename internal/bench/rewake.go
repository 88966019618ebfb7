package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// What a background hook may cost while its session is idle.
const (
	maxIdleCPU  = 10 * time.Millisecond // in a minute
	maxIdlePeak = 15 << 20              // bytes of memory
	exitWake    = 2
)

func measureRewake(b *bench) (table, error) {
	if !canSeeWaiting {
		return table{}, errors.New("this system does not show what a process waits for")
	}
	cpu, peak, err := b.idleCosts()
	if err != nil {
		return table{}, err
	}
	var wakes sample
	for i := range b.plan.waits {
		took, err := b.wake(fmt.Sprintf("wake-%d", i))
		if err != nil {
			return table{}, fmt.Errorf("run %d: %w", i+1, err)
		}
		wakes = append(wakes, took)
	}
	perMinute := cpu * time.Duration(time.Minute) / time.Duration(b.plan.asleep)
	t := table{
		title: "Waiting in the background",
		how: "A hook with `--rewake` that waits; a line is appended with one write; the time until its text has been read from the hook's stderr. Before\n" +
			fmt.Sprintf("that, one that nothing happens to for %v: its CPU time by its own clock, and its peak memory.", b.plan.asleep),
		header: []string{"", "runs", "median", "min", "worst"},
		result: fmt.Sprintf("An idle minute costs %s of CPU (target: under %s: %s) and at most %.1f MB (target: 15 MB: %s).",
			ms(perMinute), ms(maxIdleCPU), met(perMinute < maxIdleCPU), float64(peak)/(1<<20), met(peak <= maxIdlePeak)),
	}
	t.add("newline to text", fmt.Sprint(len(wakes)), ms(wakes.median()), ms(wakes.min()), ms(wakes.max()))
	return t, nil
}

// sleep starts a background hook on an empty inbox, and returns when it waits.
func (l *lane) sleep() (*waiter, error) {
	w, err := l.startHook(func(cmd *exec.Cmd, out *os.File) { cmd.Stderr = out }, "--rewake")
	if err != nil {
		return nil, err
	}
	if err := w.awaitWaiting(); err != nil {
		return nil, errors.Join(err, w.kill())
	}
	return w, nil
}

// idleCosts measures a waiting hook.
func (b *bench) idleCosts() (cpu time.Duration, peak int64, err error) {
	l, err := b.filledLane("asleep", 0)
	if err != nil {
		return 0, 0, err
	}
	defer l.close()
	w, err := l.sleep()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.kill()) }()
	before, err := cpuTime(w.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-time.After(b.plan.asleep):
	case <-b.ctx.Done():
		return 0, 0, b.ctx.Err()
	}
	after, err := cpuTime(w.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	peak, err = peakMemory(w.cmd.Process.Pid)
	return after - before, peak, err
}

// peakMemory is the peak memory of a running process (proc(5), status).
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "\nVmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); !found || err != nil {
		return 0, fmt.Errorf("process %d shows no peak of its memory", pid)
	}
	return kilobytes << 10, nil
}

// wake appends an entry while a background hook waits.
func (b *bench) wake(name string) (time.Duration, error) {
	l, err := b.filledLane(name, 0)
	if err != nil {
		return 0, err
	}
	defer l.close()
	w, err := l.sleep()
	if err != nil {
		return 0, err
	}
	appended, err := appendEntry(l.inbox, entry(0))
	if err != nil {
		return 0, errors.Join(err, w.kill())
	}
	d := <-w.decision
	var exit *exec.ExitError
	if err := w.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitWake {
		return 0, fmt.Errorf("the hook ended with %v in place of status %d: %.300q", err, exitWake, d.stdout)
	}
	if !strings.HasSuffix(string(d.stdout), "\n\n"+entry(0)+"\n") {
		return 0, fmt.Errorf("it handed over %.300q", d.stdout)
	}
	return d.at.Sub(appended), d.err
}
