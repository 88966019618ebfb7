package babysitter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"heartbeat/orchestrate/babysitter/invocation"
)

// How long each command may take. If there is a second try, it may take longer times as
// long.
const (
	versionTimeout = 5 * time.Second
	statusTimeout  = 10 * time.Second
	createTimeout  = 10 * time.Second
	postTimeout    = 15 * time.Second // and a second for each MiB
	repairTimeout  = 30 * time.Second
	iterateTimeout = 120 * time.Second
	longer         = 3

	// fetching is the time added for a package runner, which may download the CLI.
	fetching = time.Minute
	// lingering is how long the CLI may keep running after its answer. Process code that
	// leaves a timer or a connection open would keep it running for ever.
	lingering = 5 * time.Second
	// letGo is how long the output is read after the end of the CLI, while other processes
	// hold it open.
	letGo = 2 * time.Second

	outputLimit = 64 << 20
	errorLimit  = 1 << 20
)

// request is one call of the CLI.
type request struct {
	doing   string // for sentences: iterate the run X
	command string // run:iterate
	args    []string
	dir     string // to work in, unless CLI.Dir is set
	stdin   []byte // nil is none
	timeout time.Duration
	// answered reports whether the output so far has the answer. It may be nil.
	answered func(stdout []byte) bool
}

// result is how a call ended.
type result struct {
	stdout, stderr []byte
	code           int // -1 if it was killed
	timedOut       bool
}

var errTimeout, errLingers = errors.New("time is up"), errors.New("it answered")

func (c *CLI) command() []string {
	if len(c.Command) == 0 {
		return []string{"babysitter"}
	}
	return c.Command
}

// stretched is a timeout, times the patience.
func (c *CLI) stretched(d time.Duration) time.Duration {
	if c.Patience > 0 {
		d = time.Duration(float64(d) * c.Patience)
	}
	return d
}

// ask runs the CLI once. An error says that it did not run, or that ctx is done;
// everything else is in the result.
func (c *CLI) ask(ctx context.Context, r request) (result, error) {
	path, err := c.executable()
	if err != nil {
		return result{}, err
	}
	timeout := c.stretched(r.timeout)
	if filepath.Base(path) == "npx" {
		timeout += fetching
	}
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	bounded, stop := context.WithCancelCause(bounded)
	defer stop(nil)

	stdout, stderr := &tail{limit: outputLimit}, &tail{limit: errorLimit}
	cmd := c.prepare(bounded, path, r)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// The CLI dies with the thread that started it, and the guardian kills what the CLI
	// started.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer guarded(cmd)()
	if err := cmd.Start(); ctx.Err() != nil && err != nil {
		return result{}, givenUp(ctx, r.doing)
	} else if err != nil {
		return result{}, fmt.Errorf("%s: start %s: %w", r.doing, path, err)
	}
	var dismissing sync.WaitGroup
	if r.answered != nil {
		dismissing.Go(func() { c.dismiss(bounded, r, stdout, stop) })
	}
	_ = cmd.Wait() // the exit status and the output say how it ended
	inTime := context.Cause(bounded) != errTimeout
	stop(nil)
	dismissing.Wait()
	out := result{code: cmd.ProcessState.ExitCode(), timedOut: !inTime}
	out.stdout, _ = stdout.look()
	out.stderr, _ = stderr.look()
	if ctx.Err() != nil {
		return out, givenUp(ctx, r.doing)
	}
	return out, nil
}

// prepare makes the command. It is the leader of a process group, which is killed when ctx
// is done.
func (c *CLI) prepare(ctx context.Context, path string, r request) *exec.Cmd {
	args := append(slices.Clone(c.command()[1:]), r.command)
	cmd := exec.CommandContext(ctx, path, append(args, r.args...)...)
	cmd.Env, cmd.Dir = c.environment(), r.dir
	if c.Dir != "" {
		cmd.Dir = c.Dir
	}
	if r.stdin != nil {
		cmd.Stdin = bytes.NewReader(r.stdin)
	}
	cmd.SysProcAttr = familyAttr()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = letGo
	return cmd
}

func givenUp(ctx context.Context, doing string) error {
	return fmt.Errorf("%s: given up: %w", doing, context.Cause(ctx))
}

// killGroup kills the CLI and what it started. Nobody has waited for the leader yet, so its
// number has not been given to another process.
func killGroup(leader int) error {
	if err := syscall.Kill(-leader, syscall.SIGKILL); err != syscall.ESRCH {
		return err
	}
	return os.ErrProcessDone
}

// executable is the program's absolute path.
func (c *CLI) executable() (string, error) {
	name := c.command()[0]
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &problem{ErrMissing, fmt.Sprintf("there is no command %s: install the babysitter CLI (%s), or say where it is", name, invocation.Install), err}
	case err != nil:
		return "", &problem{ErrMissing, fmt.Sprintf("cannot run the command %s: %v: install the babysitter CLI (%s), or say where it is", name, err, invocation.Install), err}
	}
	return path, nil
}

// dismiss ends a CLI that has answered and keeps running. It searches the output only after
// a pause in the printing, so that a long output is not searched again and again.
func (c *CLI) dismiss(ctx context.Context, r request, stdout *tail, stop context.CancelCauseFunc) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	before, looked := -1, -1
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		output, written := stdout.look()
		quiet := written == before
		before = written
		if !quiet || written == looked {
			continue
		}
		if looked = written; r.answered(output) {
			break
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(c.stretched(lingering)):
		c.note("%s: the CLI answered and kept running, so it was ended: the process keeps something open, such as a timer or a connection", r.doing)
		stop(errLingers)
	}
}

// call runs the CLI and returns the value in its output that is right, however the CLI
// ended.
func call[T any](ctx context.Context, c *CLI, r request, right func(*T) bool) (T, error) {
	r.answered = func(stdout []byte) bool { _, ok := find(stdout, right); return ok }
	out, err := c.ask(ctx, r)
	if err == nil {
		value, ok := find(out.stdout, right)
		if ok {
			return value, nil
		}
		err = c.explain(r, out)
	}
	var none T
	return none, err
}

// callTwice is call for requests that may be repeated.
func callTwice[T any](ctx context.Context, c *CLI, r request, right func(*T) bool) (T, error) {
	value, err := call(ctx, c, r, right)
	if errors.Is(err, ErrTimeout) {
		c.note("%v: asked once more", err)
		r.timeout *= longer
		value, err = call(ctx, c, r, right)
	}
	return value, err
}

// shown is the command as people read it.
func (c *CLI) shown() string { return strings.Join(c.command(), " ") }
