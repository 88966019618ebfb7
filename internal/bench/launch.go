package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// What the launcher may take to notice, and cost while nothing happens.
const (
	maxNotice     = 20 * time.Millisecond
	maxLaunchIdle = 10 * time.Millisecond // of CPU in a minute
)

func measureLaunch(b *bench) (table, error) {
	if !canSeeWaiting {
		return table{}, errors.New("this system does not show what a process costs while it waits")
	}
	bare, wrapped, err := b.launches()
	if err != nil {
		return table{}, err
	}
	var notices sample
	for range b.plan.notices {
		s, err := b.launch()
		if err != nil {
			return table{}, err
		}
		took, err := s.ask()
		if err != nil {
			return table{}, err
		}
		notices = append(notices, took)
	}
	idle, err := b.launchIdle()
	if err != nil {
		return table{}, err
	}
	t := table{
		title: "A terminal of its own",
		how: "`heartbeat-launch -- true` in turn with `true`, as whole processes; and from the making of the file of `--exit-signal` to the launcher's end,\n" +
			"with a `sleep` in between that ends at once. Then a command that prints zeros without a pause, read through a pipe.",
		header: []string{"", "runs", "median", "min", "worst"},
		result: fmt.Sprintf("Target for the file: %s in the median: %s. An idle minute costs %s of CPU (target: under %s: %s).",
			ms(maxNotice), met(notices.median() <= maxNotice), ms(idle), ms(maxLaunchIdle), met(idle < maxLaunchIdle)),
	}
	t.add("`true`", fmt.Sprint(len(bare)), ms(bare.median()), ms(bare.min()), ms(bare.max()))
	t.add("in the launcher", fmt.Sprint(len(wrapped)), ms(wrapped.median()), ms(wrapped.min()), ms(wrapped.max()))
	t.add("file to end", fmt.Sprint(len(notices)), ms(notices.median()), ms(notices.min()), ms(notices.max()))
	return t, b.addFloods(&t)
}

// launches runs `true`, alternately without the launcher and with it.
func (b *bench) launches() (bare, wrapped sample, err error) {
	r, err := b.runner()
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	for range b.plan.pairs {
		_, took, err := r.run(nil, "true")
		if err != nil {
			return nil, nil, err
		}
		bare = append(bare, took)
		if _, took, err = r.run(nil, b.programs.launch, "--", "true"); err != nil {
			return nil, nil, err
		}
		wrapped = append(wrapped, took)
	}
	return bare, wrapped, nil
}

// launched is a launcher whose command has started and does nothing.
type launched struct {
	cmd  *exec.Cmd
	file string // ends it
}

func (b *bench) launch() (*launched, error) {
	l := &launched{file: filepath.Join(b.dir, "exit-signal")}
	l.cmd = exec.CommandContext(b.ctx, b.programs.launch, "--timeout", "1h", "--idle-timeout", "1h", "--exit-signal", l.file,
		"--", "sh", "-c", "echo begun; exec sleep 1000")
	l.cmd.Env, l.cmd.Cancel = environment(), func() error { return l.cmd.Process.Signal(syscall.SIGTERM) }
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\r\n" {
		return nil, errors.Join(fmt.Errorf("launch: the command printed %q: %w", line, err), l.cmd.Process.Kill(), l.cmd.Wait())
	}
	return l, nil
}

// ask makes the file and returns how long the launcher took to end successfully.
func (l *launched) ask() (time.Duration, error) {
	began := time.Now()
	if err := os.WriteFile(l.file, nil, 0o600); err != nil {
		return 0, errors.Join(err, l.cmd.Process.Kill(), l.cmd.Wait())
	}
	err := l.cmd.Wait()
	return time.Since(began), err
}

// launchIdle is the CPU time that the launcher uses in a minute without events.
func (b *bench) launchIdle() (perMinute time.Duration, err error) {
	l, err := b.launch()
	if err != nil {
		return 0, err
	}
	defer func() {
		_, askErr := l.ask()
		err = errors.Join(err, askErr)
	}()
	before, err := cpuTime(l.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(b.plan.asleep):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	after, err := cpuTime(l.cmd.Process.Pid)
	return (after - before) * time.Duration(time.Minute) / time.Duration(b.plan.asleep), err
}

// addFloods compares the launcher's throughput with that of script(1), if that is
// installed.
func (b *bench) addFloods(t *table) error {
	zeros := "exec head -c " + strconv.Itoa(b.plan.flood) + " /dev/zero"
	ways := [][]string{{"launcher", b.programs.launch, "--", "sh", "-c", zeros}}
	if _, err := exec.LookPath("script"); err == nil {
		ways = append(ways, []string{"`script -q`", "script", "-qc", zeros, "/dev/null"})
	}
	times := make([]sample, len(ways))
	for range b.plan.floods {
		for i, way := range ways {
			took, err := b.flood(way[1:])
			if err != nil {
				return fmt.Errorf("%s: %w", way[0], err)
			}
			times[i] = append(times[i], took)
		}
	}
	for i, way := range ways {
		s := times[i]
		rate := float64(b.plan.flood) / 1e6 / s.median().Seconds()
		t.add(fmt.Sprintf("%s, %s: %.0f MB a second", way[0], megabytes(int64(b.plan.flood)), rate),
			fmt.Sprint(len(s)), ms(s.median()), ms(s.min()), ms(s.max()))
	}
	return nil
}

// flood reads everything that a command prints.
func (b *bench) flood(argv []string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	cmd.Env = environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if n != int64(b.plan.flood) {
		return 0, fmt.Errorf("%d bytes came through of %d", n, b.plan.flood)
	}
	return took, nil
}
