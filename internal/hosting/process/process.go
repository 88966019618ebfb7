// Package process runs the client of a hosted session, and ends it together with
// everything that it started.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/machine/guardian"
)

// Options say what to run.
type Options struct {
	Path    string   // of the program, absolute
	Command []string // its arguments; the first is the name that ps shows
	Dir     string
	Env     []string // with Mark in it: see guardian.Marked
	Mark    string
	Stdin   []byte    // is written to its standard input, which is then closed
	Stderr  io.Writer // gets what it writes to standard error; it must not block
	// MemoryMax limits the data of each of its processes, in bytes (RLIMIT_DATA of
	// setrlimit(2)), in whole KiB; 0 is no limit. The name that ps shows is the path then.
	MemoryMax int64
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // -1 after a signal
	Signal string // such as SIGKILL
}

// drain is how long standard output is read on after the client has ended, while
// something that it started holds it open.
const drain = 2 * time.Second

// Process is a running client. It leads a session and a process group of its own.
type Process struct {
	PID  int
	mark string

	stdout *os.File
	ended  chan struct{}
	exit   Exit
	copied sync.WaitGroup

	mu     sync.Mutex
	taken  error // of the write to its input
	family guardian.Ending
	killAt *time.Timer // nil until it was asked to end
}

// shell limits its own memory and becomes the client.
const shell = "/bin/sh"

// Start starts the client. The kernel kills it if this process dies.
func Start(o Options) (*Process, error) {
	ours, theirs, err := openPipes()
	defer closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", o.Path, err)
	}
	var fds []uintptr
	for _, f := range theirs {
		fds = append(fds, f.Fd()) // sets it to blocking, as the client expects it
	}
	stdin, stdout, stderr := ours[0], ours[1], ours[2]
	p := &Process{mark: o.Mark, stdout: stdout, ended: make(chan struct{})}
	path, command := o.Path, o.Command
	if o.MemoryMax > 0 { // to limit this process meanwhile would not be safe
		path, command = shell, slices.Concat([]string{shell, "-c", fmt.Sprintf(`ulimit -d %d && exec "$@"`, o.MemoryMax>>10), "heartbeat-limit", path}, command[1:])
	}
	attributes := &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true}}
	if p.PID, err = children.start(path, command, attributes, p.bury); err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", o.Path, guardian.WhyNot(err, o.Dir))
	}
	p.family.Leader = p.PID
	p.copied.Go(func() { p.write(stdin, o.Stdin) })
	p.copied.Go(func() { copyAll(o.Stderr, stderr) })
	go func() {
		<-p.ended
		limit := time.Now().Add(drain)
		_ = stdout.SetReadDeadline(limit) // pipes support deadlines
		_ = stderr.SetReadDeadline(limit)
		_ = stdin.SetWriteDeadline(limit)
	}()
	return p, nil
}

// openPipes opens our ends of the client's input, output and errors, and its own.
func openPipes() (ours, theirs []*os.File, err error) {
	for fd := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return ours, theirs, err
		}
		if fd > 0 {
			r, w = w, r
		}
		ours, theirs = append(ours, w), append(theirs, r)
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a pipe
	}
}

// bury notes the client's end.
func (p *Process) bury(status syscall.WaitStatus) {
	p.exit = Exit{Code: status.ExitStatus()}
	if status.Signaled() {
		p.exit.Signal = unix.SignalName(status.Signal())
	}
	close(p.ended)
}

// write gives the client its input. It may close its end at any time.
func (p *Process) write(to *os.File, text []byte) {
	_, err := to.Write(text)
	p.mu.Lock()
	p.taken = err
	p.mu.Unlock()
	_ = to.Close() // a pipe
}

// copyAll reads everything, whether or not the writer takes it.
func copyAll(to io.Writer, from *os.File) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && to != nil {
			_, _ = to.Write(b[:n]) // the client goes on without its log
		}
		if err != nil {
			_ = from.Close() // a pipe
			return
		}
	}
}

// Stdout is the client's standard output. It ends with the client, at the latest two
// seconds after it if something that it started holds it open.
func (p *Process) Stdout() io.Reader { return &output{p.stdout, 1 << 20} }

// output takes the end of the time for the end of the stream, but for what waits in the
// pipe: this process may have been slow.
type output struct {
	f     *os.File
	extra int // bytes that are read once the time is over, at most
}

// glance is how long a read takes that waits for nothing.
const glance = 10 * time.Millisecond

func (o *output) Read(b []byte) (int, error) {
	n, err := o.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 && o.extra > 0 {
		_ = o.f.SetReadDeadline(time.Now().Add(glance)) // pipes support deadlines
		n, err = o.f.Read(b)
		o.extra -= n
	}
	if err != nil && n == 0 {
		_ = o.f.Close() // a pipe
		return 0, io.EOF
	}
	return n, nil
}

// Ended is closed once the client itself has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Exit is how the client ended. Call it after Ended.
func (p *Process) Exit() Exit { return p.exit }

// Finish returns once all of the client's output was passed on. Call it after Ended.
// The error says that the client did not take its whole input.
func (p *Process) Finish() error {
	p.copied.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
