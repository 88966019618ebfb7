package babysitter

import (
	"bytes"
	"cmp"
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

	"github.com/tidwall/gjson"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"
)

// Timeouts of the commands. They end a CLI that hangs, but let node start, which takes ten seconds on a busy machine
// with a cold disk. A second try may take longer times as long.
const (
	versionTimeout = 15 * time.Second
	createTimeout  = 60 * time.Second
	postTimeout    = 30 * time.Second // and a second for each MiB
	repairTimeout  = 60 * time.Second
	iterateTimeout = 120 * time.Second
	longer         = 3

	// fetching is the time added for a package runner, which may download the CLI.
	fetching = time.Minute
	// lingering is how long the CLI may keep running after its answer. Process code that leaves a timer or a
	// connection open would keep it running for ever.
	lingering = 5 * time.Second
	// endPatience is how long a program may take to end after its signal, and how long after its end its output is
	// read while other processes hold it open.
	endPatience = 2 * time.Second

	outputLimit = 64 << 20
	errorLimit  = 1 << 20
)

// request is one call of the CLI.
type request struct {
	doing   string // for sentences, such as: iterate the run X
	command string // run:iterate
	args    []string
	dir     string // working directory of the CLI, and so of process code
	stdin   []byte // nil is none
	timeout time.Duration
	// answer finds the answer in the output so far.
	answer func(stdout []byte) (gjson.Result, bool)
}

// result is how a call ended.
type result struct {
	stdout, stderr []byte
	code           int  // -1 if it was killed
	timedOut, cut  bool // cut: the beginning of stdout was not kept
}

var errTimeout = errors.New("time is up")

func (c *CLI) command() []string {
	if len(c.Command) == 0 {
		return []string{effect.DefaultCommand}
	}
	return c.Command
}

func (c *CLI) stretched(d time.Duration) time.Duration {
	return time.Duration(float64(d) * cmp.Or(c.patience, 1))
}

// runOnce runs the CLI once. It fails only if the CLI did not run or ctx is done; the result has all else.
func (c *CLI) runOnce(ctx context.Context, r request) (result, error) {
	path, err := c.executable()
	if err != nil {
		return result{}, err
	}
	timeout := c.stretched(r.timeout)
	if filepath.Base(path) == "npx" {
		timeout += fetching
	}
	bounded, stop := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer stop()

	stdout, stderr := &words.Tail{Most: outputLimit}, &words.Tail{Most: errorLimit} // the answer is near the end
	cmd := guardian.Group(bounded, syscall.SIGKILL, path, slices.Concat(c.command()[1:], []string{r.command}, r.args)...)
	cmd.Dir, cmd.WaitDelay = r.dir, endPatience
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(telltales, name)
	})
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if r.stdin != nil {
		cmd.Stdin = bytes.NewReader(r.stdin)
	}
	// The CLI dies with the thread that started it, and the guardian kills what the CLI started.
	guardian.DiesWithParent(cmd.SysProcAttr)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer postGuardian(cmd)()
	if err := cmd.Start(); ctx.Err() != nil && err != nil {
		return result{}, givenUp(ctx, r.doing)
	} else if err != nil {
		return result{}, fmt.Errorf("%s: start %s: %w", r.doing, path, err)
	}
	var dismissing sync.WaitGroup
	dismissing.Go(func() { c.dismiss(bounded, r, stdout, stop) })
	_ = cmd.Wait() // the exit status and the output show how it ended
	out := result{code: cmd.ProcessState.ExitCode(), timedOut: context.Cause(bounded) == errTimeout}
	stop()
	dismissing.Wait()
	var written int
	out.stdout, written = stdout.Kept()
	out.stderr, _ = stderr.Kept()
	out.cut = written > outputLimit
	if ctx.Err() != nil {
		return out, givenUp(ctx, r.doing)
	}
	return out, nil
}

func givenUp(ctx context.Context, doing string) error {
	return fmt.Errorf("%s: given up: %w", doing, context.Cause(ctx))
}

func (c *CLI) executable() (string, error) {
	name := c.command()[0]
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no command %s: install the babysitter CLI (%s), or say where it is", name, effect.Install)
	case err != nil:
		return "", fmt.Errorf("cannot run the command %s: %w: install the babysitter CLI (%s), or say where it is", name, err, effect.Install)
	}
	return path, nil
}

// dismiss ends a CLI that has answered and keeps running. It searches the output only after a pause in the
// printing, so that a long output is not searched again and again.
func (c *CLI) dismiss(ctx context.Context, r request, stdout *words.Tail, stop context.CancelFunc) {
	tick := time.Tick(250 * time.Millisecond)
	before, searched := -1, -1
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		output, written := stdout.Kept()
		quiet := written == before
		before = written
		if !quiet || written == searched {
			continue
		}
		searched = written
		if _, has := r.answer(output); has {
			break
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(c.stretched(lingering)):
		c.note("%s: the CLI answered and kept running, so it was ended: the process keeps something open, such as a timer or a connection", r.doing)
		stop()
	}
}

func (c *CLI) commandLine() string { return strings.Join(c.command(), " ") }

// postGuardian starts a guardian that kills the CLI's process group if this process is killed. Without a guardian, as in
// a program that cannot be one, only the CLI itself dies then.
func postGuardian(cmd *exec.Cmd) (over func()) {
	mark, err := machine.RandomName()
	if err != nil {
		return func() {}
	}
	cmd.Env = guardian.Marked(cmd.Env, mark)
	g, _ := guardian.Post(mark, nil, guardian.Then{})
	return g.Dismiss
}

// MaxOutput limits, in bytes, how much of each output stream of a task's command is kept.
const MaxOutput = 16 << 20

// Outcome is how the command of a task ended.
type Outcome struct {
	Stdout, Stderr string // the end of each, at most MaxOutput
	// Cut says that the command printed more, which is a failure only if the output was to be its result.
	Cut     bool
	Status  int    // the exit status, -1 if there is none
	Failure string // why the command failed, in words, or "" if it succeeded
}

// Execute runs the command of a task until it ends, its time is over, or ctx is done. All processes in the
// command's process group end with it. On Linux the command ends with this process.
func Execute(ctx context.Context, c runs.Command) Outcome {
	ctx, stop := context.WithTimeout(ctx, c.Timeout)
	defer stop()
	out, errs := &words.Tail{Most: MaxOutput}, &words.Tail{Most: MaxOutput}
	cmd := guardian.Group(ctx, syscall.SIGTERM, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Cwd, append(os.Environ(), c.Env...), endPatience
	cmd.Stdout, cmd.Stderr = out, errs
	guardian.DiesWithParent(cmd.SysProcAttr)
	runtime.LockOSThread() // the command dies with the thread that started it
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	stdout, wrote := out.Kept()
	stderr, wroteErrs := errs.Kept()
	o := Outcome{Stdout: string(stdout), Stderr: string(stderr), Cut: wrote > len(stdout) || wroteErrs > len(stderr), Status: -1}
	if cmd.Process != nil {
		_ = guardian.SignalGroup(cmd.Process.Pid, syscall.SIGKILL) // usually none is left
		o.Status = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.Failure = fmt.Sprintf("it was ended after %v", c.Timeout)
	case ctx.Err() != nil:
		o.Failure = fmt.Sprintf("it was ended: %v", context.Cause(ctx))
	// ErrWaitDelay: a process that the command left behind holds its output open.
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		o.Failure = err.Error()
		if _, none := os.Stat(c.Cwd); c.Cwd != "" && none != nil {
			o.Failure = "its working directory: " + none.Error() // else the program seems to be missing
		}
	case o.Status < 0:
		o.Failure = fmt.Sprintf("a signal ended it (%s)", strings.TrimPrefix(cmd.ProcessState.String(), "signal: "))
	case o.Status != c.Success:
		o.Failure = fmt.Sprintf("it ended with status %d, and not %d", o.Status, c.Success)
	case wrote > len(stdout) && !c.Silent:
		o.Failure = fmt.Sprintf("it printed more than %d MiB to stdout, and the beginning was cut off: have it print to a file", MaxOutput>>20)
	}
	return o
}
