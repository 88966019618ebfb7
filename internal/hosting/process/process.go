// Package process runs the client of a hosted session, and ends the client with everything that it started.
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

type Options struct {
	Path    string   // the program's absolute path
	Command []string // its arguments, beginning with the name that ps shows
	Dir     string
	Env     []string // must contain Mark: see guardian.Marked
	Mark    string
	Stdin   []byte    // written to its standard input, which is then closed
	Stderr  io.Writer // gets its standard error; must neither block nor fail, which would end the client
	// MemoryMax limits the data of each of its processes (RLIMIT_DATA of setrlimit(2)), in bytes, rounded
	// down to KiB; 0 is no limit. With a limit, ps shows the path as the program's name.
	MemoryMax int64
	Guard     int // the pid of this process's guardian, 0 for none
}

type Exit struct {
	Code   int    // -1 after a signal
	Signal string // such as SIGKILL
}

// drain is how long standard output is still read after the client's end, while another process holds it open.
const drain = 2 * time.Second

// Process is a running client. It leads its own session and process group.
type Process struct {
	*guardian.Family
	mark     string
	stdout   *os.File
	copied   sync.WaitGroup
	inputErr error // of writing its input, once copied is done
}

// leftFor is how long the processes that the client has left behind have to end by themselves.
const leftFor = 500 * time.Millisecond

// shell limits its own memory and becomes the client.
const shell = "/bin/sh"

// Start starts the client: see [guardian.Start].
func Start(o Options) (*Process, error) {
	ours, theirs, err := openPipes()
	defer closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", o.Path, err)
	}
	var fds []uintptr
	for _, f := range theirs {
		fds = append(fds, f.Fd()) // makes the pipe blocking, as the client expects
	}
	stdin, stdout, stderr := ours[0], ours[1], ours[2]
	p := &Process{mark: o.Mark, stdout: stdout}
	path, command := o.Path, o.Command
	if o.MemoryMax > 0 { // limiting this process meanwhile would not be safe
		path, command = shell, slices.Concat([]string{shell, "-c", fmt.Sprintf(`ulimit -d %d && exec "$@"`, o.MemoryMax>>10), "heartbeat-limit", path}, command[1:])
	}
	attributes := &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true}}
	if p.Family, err = guardian.Start(path, command, attributes, leftFor, o.Guard); err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", o.Path, guardian.WhyNot(err, o.Dir))
	}
	p.copied.Go(func() {
		_, p.inputErr = stdin.Write(o.Stdin) // the client may close its end at any time
		_ = stdin.Close()                    // a pipe
	})
	p.copied.Go(func() {
		_, _ = io.Copy(o.Stderr, &output{f: stderr}) // ends at the deadline
	})
	go func() {
		<-p.Gone()
		limit := time.Now().Add(drain)
		_ = stdout.SetReadDeadline(limit) // pipes support deadlines
		_ = stderr.SetReadDeadline(limit)
		_ = stdin.SetWriteDeadline(limit)
	}()
	return p, nil
}

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

// Stdout is the client's standard output until its end, or two seconds longer if another process holds it open.
func (p *Process) Stdout() io.Reader { return &output{f: p.stdout} }

// output is a pipe that ends after its deadline, once what waits in it then was read: this process may have been slow.
type output struct {
	f    *os.File
	late int // bytes read since the deadline
}

// mostLate is the most bytes that are read after the deadline. No pipe holds more.
const mostLate = 1 << 20

func (o *output) Read(b []byte) (n int, err error) {
	if o.late == 0 {
		n, err = o.f.Read(b)
	}
	if o.late > 0 || n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = guardian.ReadWaiting(o.f, b)
		o.late += n
	}
	if n == 0 && err != nil || o.late > mostLate {
		_ = o.f.Close() // a pipe
		return n, io.EOF
	}
	return n, nil
}

// EndRest returns once everything that the client left behind has ended, and how many of that it had to kill.
func (p *Process) EndRest() (killed int) {
	<-p.Over()
	if _, stuck := p.Stuck(); stuck { // it may start processes faster than they are found one by one
		killed = guardian.Kill(p.mark)
	}
	return killed + p.Killed()
}

// Exit returns how the client ended. Call it after Gone.
func (p *Process) Exit() Exit {
	exit := Exit{Code: p.Status().ExitStatus()}
	if p.Status().Signaled() {
		exit.Signal = unix.SignalName(p.Status().Signal())
	}
	return exit
}

// Finish returns once the client's input and standard error were copied. Call it after Gone. The error means
// that the client did not take its whole input.
func (p *Process) Finish() error {
	p.copied.Wait()
	return p.inputErr
}
