package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"

	"heartbeat/internal/screen"
)

// Targets for the live view of many inboxes.
const (
	maxRefresh = 100 * time.Millisecond
	maxIdle    = 0.01 // of a core
)

// watching is a live view in a terminal, over inboxes that hold many entries.
type watching struct {
	b        *bench
	inboxes  []string
	entries  int // in all
	terminal *os.File
	screen   *screen.Screen
	cmd      *exec.Cmd
	shown    chan string // the title, whenever it was drawn
}

func measureWatch(b *bench) (t table, err error) {
	w := &watching{b: b, screen: screen.New(60, 120), shown: make(chan string, 1)}
	if err := w.fill(); err != nil {
		return t, err
	}
	began := time.Now()
	if err := w.start(); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	if err := w.awaits(); err != nil {
		return t, err
	}
	first := time.Since(began)
	one, err := w.changes(1)
	if err != nil {
		return t, err
	}
	all, err := w.changes(len(w.inboxes))
	if err != nil {
		return t, err
	}
	idle, err := w.idles()
	if err != nil {
		return t, err
	}
	t = table{
		title: "A live view of many inboxes",
		how: fmt.Sprintf("`heartbeat-watch` in a terminal of 120x60, over %d inboxes of %d entries, from a line that is appended to the view that counts it,\n"+
			"as a terminal emulator shows it. The CPU time while nothing changes is that of %v.", len(w.inboxes), b.plan.watchedEntries, b.plan.asleep),
		header: []string{"", "runs", "median", "worst"},
		result: fmt.Sprintf("Targets: a refresh within %v: %s; under %.0f %% of a core while nothing changes: %s.", maxRefresh,
			met(one.median() <= maxRefresh), 100*maxIdle, met(idle < maxIdle)),
	}
	t.add("from the start to the whole view", "1", ms(first), ms(first))
	t.add("an entry comes to one inbox", fmt.Sprint(len(one)), ms(one.median()), ms(one.max()))
	t.add("an entry comes to each inbox", fmt.Sprint(len(all)), ms(all.median()), ms(all.max()))
	t.add("share of a core while nothing changes", "1", fmt.Sprintf("%.2f %%", 100*idle), "")
	return t, nil
}

// fill makes the inboxes, each with its entries and a commit.
func (w *watching) fill() error {
	root, err := w.b.folder("watched")
	if err != nil {
		return err
	}
	for i := range w.b.plan.watched {
		dir := filepath.Join(root, fmt.Sprintf("box-%02d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		path := filepath.Join(dir, "inbox.jsonl")
		if err := writeBatch(path, w.b.plan.watchedEntries); err != nil {
			return err
		}
		resume := exec.CommandContext(w.b.ctx, w.b.programs.heartbeat, "resume", "--inbox", path)
		if out, err := resume.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		w.inboxes = append(w.inboxes, path)
		w.entries += w.b.plan.watchedEntries
	}
	return nil
}

func (w *watching) start() error {
	w.cmd = exec.CommandContext(w.b.ctx, w.b.programs.watch, filepath.Dir(filepath.Dir(w.inboxes[0])))
	w.cmd.Env = append(environment(), "TERM=xterm-256color")
	var err error
	if w.terminal, err = pty.StartWithSize(w.cmd, &pty.Winsize{Rows: 60, Cols: 120}); err != nil {
		return err
	}
	go func() {
		defer close(w.shown)
		for in := bufio.NewReaderSize(w.terminal, 64<<10); ; {
			chunk := make([]byte, 64<<10)
			n, err := in.Read(chunk)
			if err != nil {
				return
			}
			_, _ = w.screen.Write(chunk[:n]) // it has no error
			title, _, _ := strings.Cut(w.screen.Text(), "\n")
			select {
			case <-w.shown:
			default:
			}
			w.shown <- title
		}
	}()
	return nil
}

// awaits waits until the view counts all entries.
func (w *watching) awaits() error {
	want := fmt.Sprintf(", %d wait,", w.entries)
	limit := time.After(patience)
	for {
		select {
		case title, ok := <-w.shown:
			if !ok {
				return fmt.Errorf("the view ended: %s", w.screen.Text())
			}
			if strings.Contains(title, want) {
				return nil
			}
		case <-limit:
			return fmt.Errorf("%q is not in the view: %s", want, w.screen.Text())
		}
	}
}

// changes appends a line to that many inboxes, again and again, and takes the time until
// the view counts them.
func (w *watching) changes(inboxes int) (all sample, err error) {
	for range w.b.plan.looks {
		began := time.Now()
		for _, path := range w.inboxes[:inboxes] {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("one more\n")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return nil, err
			}
		}
		w.entries += inboxes
		if err := w.awaits(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
	}
	return all, nil
}

// idles is the share of a core that the view takes while nothing changes.
func (w *watching) idles() (share float64, err error) {
	before, err := cpuTime(w.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	time.Sleep(w.b.plan.asleep)
	after, err := cpuTime(w.cmd.Process.Pid)
	return float64(after-before) / float64(w.b.plan.asleep), err
}

func (w *watching) end() error {
	err := w.cmd.Process.Signal(syscall.SIGTERM)
	for range w.shown { // to the end
	}
	var exit *exec.ExitError
	if ended := w.cmd.Wait(); !errors.As(ended, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		err = errors.Join(err, fmt.Errorf("it ended with %w", ended))
	}
	return errors.Join(err, w.terminal.Close())
}
