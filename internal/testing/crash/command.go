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
const watchdog = time.Minute

// Command is a run of this test binary as one of the commands of [Main].
type Command struct {
	Name  string
	Args  []string
	Stdin string
	Env   []string // beside the environment of this process
	Dir   string   // where it starts; here when empty
}

// Result is how a child ended.
type Result struct {
	ExitCode       int            // -1 after a signal
	Signal         syscall.Signal // 0 after an exit
	Stdout, Stderr string
	// MaxRSS is the most memory that it had, in bytes; only Linux tells.
	MaxRSS int64
}

// Child runs a command without input to its end.
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

// Start starts the command with Input open; Stdin is not used. A child that is
// still there when the test ends is killed.
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
	r.cmd.WaitDelay = 10 * time.Second // for a grandchild that keeps the pipes open
	r.Input, err = input(r.cmd)
	if err = errors.Join(err, r.cmd.Start()); err != nil {
		cancel()
		t.Fatalf("start child %s: %v", c.Name, err)
	}
	go r.wait()
	t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// environ leaves out what this process was told to do itself.
func (c Command) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "HEARTBEAT_TEST_") })
	// A program built with -race otherwise waits a second before it exits.
	return append(env, envChild+"="+c.Name, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
}

func maxRSS(usage *syscall.Rusage) int64 {
	if usage == nil || runtime.GOOS != "linux" {
		return 0
	}
	return usage.Maxrss << 10
}

// Running is a child that was started. Its methods are for the goroutine of
// the test.
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
	_ = r.cmd.Wait() // ProcessState has what Wait uses of it
	r.out.close()
	close(r.done)
}

// Line waits for the child's next line of output, which is how a child says
// how far it is.
func (r *Running) Line(t testing.TB) string {
	t.Helper()
	s, ok := r.out.line()
	if !ok {
		<-r.done
		t.Fatalf("child %s ended (%v) before it said its next line; stderr:\n%s", r.name, r.cmd.ProcessState, &r.stderr)
	}
	return s
}

// CloseInput ends the child's standard input, which is how a child is told to
// go on.
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

// Wait waits for the child's end. The test fails when it takes too long.
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
