package crash

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watchdog is how long a child may take before it is killed and the test fails.
const watchdog = 5 * time.Minute

// Command is a run of this test binary as one of the commands of [Main].
type Command struct {
	Name  string
	Args  []string
	Stdin string
	Env   []string // added to the environment of this process
	Dir   string   // its working directory; "" is this process's
}

// Result is how a child ended.
type Result struct {
	ExitCode       int            // -1 after a signal
	Signal         syscall.Signal // 0 after an exit
	Stdout, Stderr string
	// MaxRSS is its peak memory in bytes, on Linux only.
	MaxRSS int64
}

// Child runs a command to its end, without input.
func Child(t testing.TB, name string, args []string, env ...string) Result {
	t.Helper()
	return Command{Name: name, Args: args, Env: env}.Run(t)
}

// Run runs the command to its end.
func (c Command) Run(t testing.TB) Result {
	t.Helper()
	return c.start(t, func(cmd *exec.Cmd) (io.WriteCloser, error) {
		cmd.Stdin = strings.NewReader(c.Stdin)
		return nil, nil
	}).Wait(t)
}

// Start starts the command with Input open and ignores Stdin. A child that still
// runs when the test ends is killed.
func (c Command) Start(t testing.TB) *Running {
	t.Helper()
	return c.start(t, (*exec.Cmd).StdinPipe)
}

func (c Command) start(t testing.TB, input func(*exec.Cmd) (io.WriteCloser, error)) *Running {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	r := &Running{name: c.Name, ctx: ctx, out: newOutput(), done: make(chan struct{})}
	r.cmd = exec.CommandContext(ctx, exe, c.Args...)
	r.cmd.Env = append(c.environ(), c.Env...)
	r.cmd.Dir = c.Dir
	r.cmd.Stdout, r.cmd.Stderr = r.out, &r.stderr
	r.cmd.WaitDelay = time.Minute // a grandchild may keep the pipes open
	r.Input, err = input(r.cmd)
	if err = errors.Join(err, r.cmd.Start()); err != nil {
		cancel()
		t.Fatalf("start child %s: %v", c.Name, err)
	}
	go r.wait()
	t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// environ returns the environment without what this process itself was told to do.
func (c Command) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "HEARTBEAT_TEST_") })
	// Otherwise a program built with -race waits a second before it exits.
	return append(env, envChild+"="+c.Name, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
}

func maxRSS(usage *syscall.Rusage) int64 {
	if usage == nil || runtime.GOOS != "linux" {
		return 0
	}
	return usage.Maxrss << 10
}

// Running is a child that was started. Only the test's goroutine may call its
// methods.
type Running struct {
	Input  io.WriteCloser // the child's standard input
	name   string
	ctx    context.Context
	cmd    *exec.Cmd
	out    *output
	stderr bytes.Buffer
	done   chan struct{}
}

func (r *Running) wait() {
	_ = r.cmd.Wait() // the result is in ProcessState
	r.out.close()
	close(r.done)
}

// Line waits for the child's next line of output, by which a child reports how far
// it has got.
func (r *Running) Line(t testing.TB) string {
	t.Helper()
	s, ok := r.out.line()
	if !ok {
		<-r.done
		t.Fatalf("child %s ended (%v) before it said its next line; stderr:\n%s", r.name, r.cmd.ProcessState, &r.stderr)
	}
	return s
}

// CloseInput closes the child's standard input, which tells a child to continue.
func (r *Running) CloseInput(t testing.TB) {
	t.Helper()
	if err := r.Input.Close(); err != nil {
		t.Fatal(err)
	}
}

// Kill kills the child with SIGKILL and waits for its end.
func (r *Running) Kill(t testing.TB) Result {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	return r.Wait(t)
}

// Wait waits for the child's end. The test fails if that takes too long.
func (r *Running) Wait(t testing.TB) Result {
	t.Helper()
	<-r.done
	if r.ctx.Err() != nil {
		t.Fatalf("child %s was not done after %v; stderr:\n%s", r.name, watchdog, &r.stderr)
	}
	status := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	usage, _ := r.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	result := Result{MaxRSS: maxRSS(usage), ExitCode: r.cmd.ProcessState.ExitCode(), Stdout: r.out.String(), Stderr: r.stderr.String()}
	if status.Signaled() {
		result.Signal = status.Signal()
	}
	return result
}
