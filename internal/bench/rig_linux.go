package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/testing/script"
)

// patience bounds the run of a process that normally takes milliseconds.
const patience = 30 * time.Second

// rig is where one measure is taken. What it needs is made in its folder, and ends with it.
type rig struct {
	ctx      context.Context
	level    int // of [sizes]
	bin, dir string
	sync     time.Duration
	log      io.Writer
	patience time.Duration
	stderr   *os.File // of all processes: a warning means that the measurement is not of what was meant
	ends     []func()
}

// failure is what ends a measure: it is thrown by [check], and caught by [caught].
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

func caught(do func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v.error
		default:
			panic(v)
		}
	}()
	do()
	return nil
}

// take takes a measure, in a scratch directory below dir.
func (r *rig) take(m measure, dir string) (*table, error) {
	t := &table{title: m.title}
	err := caught(func() {
		r.dir, r.patience = must(os.MkdirTemp(dir, "heartbeat-bench-")), patience
		r.atEnd(func() { check(os.RemoveAll(r.dir)) })
		r.stderr = must(os.OpenFile(r.path("stderr"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600))
		r.atEnd(func() { check(r.stderr.Close()) })
		m.take(r, t)
	})
	for len(r.ends) > 0 {
		last := len(r.ends) - 1
		end := r.ends[last]
		r.ends = r.ends[:last]
		err = errors.Join(err, caught(end))
	}
	return t, err
}

func (r *rig) atEnd(do func()) { r.ends = append(r.ends, do) }

// n is how much to do of something.
func (r *rig) n(what string) int { return sizes[what][r.level] }

func (r *rig) asleep() time.Duration { return time.Duration(r.n("asleep")) * time.Millisecond }

// path names something in the scratch directory.
func (r *rig) path(names ...string) string {
	return filepath.Join(append([]string{r.dir}, names...)...)
}

func (r *rig) folder(name string) string {
	check(os.Mkdir(r.path(name), 0o700))
	return r.path(name)
}

// program is the path of one that was built.
func (r *rig) program(name string) string { return filepath.Join(r.bin, name) }

// environment is without what a surrounding session may have set. Left alone,
// babysitter's hook writes its logs into the caller's home folder.
func (r *rig) environment(more ...string) []string {
	return append([]string{"PATH=" + r.bin + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "BABYSITTER_LOG_DIR=" + r.dir}, more...)
}

// once is a way to time a command that reads nothing.
func (r *rig) once(argv ...string) func() time.Duration {
	return func() time.Duration {
		_, took := r.run(nil, nil, argv...)
		return took
	}
}

// run gives a process its stdin and returns its stdout, both of which must fit into a
// pipe. The time is from before its start until after its end; nothing else is done
// meanwhile. One that hangs is killed.
func (r *rig) run(env []string, stdin []byte, argv ...string) (string, time.Duration) {
	check(r.ctx.Err())
	program, err := exec.LookPath(filepath.Join(r.bin, argv[0]))
	if err != nil {
		program = must(exec.LookPath(argv[0]))
	}
	in := filled(stdin)
	defer in.Close()
	out, childOut, err := os.Pipe()
	check(err)
	defer out.Close()
	attr := &os.ProcAttr{Dir: r.dir, Env: r.environment(env...), Files: []*os.File{in, childOut, r.stderr}}
	began := time.Now()
	p := must(os.StartProcess(program, argv, attr))
	hangs := time.AfterFunc(r.patience, func() { _ = p.Kill() }) // it may just have ended
	state, err := p.Wait()
	took := time.Since(began)
	hangs.Stop()
	check(errors.Join(err, childOut.Close()))
	if !state.Success() {
		err = errors.New(state.String())
	}
	r.verify(argv, err)
	return string(must(io.ReadAll(out))), took
}

// filled returns the reading end of a pipe that contains b and then ends.
func filled(b []byte) *os.File {
	if len(b) > 4<<10 { // of the smallest pipe: more could block
		fail("a stdin of %d bytes is more than a pipe is sure to hold", len(b))
	}
	in, w, err := os.Pipe()
	check(err)
	_, err = w.Write(b)
	check(errors.Join(err, w.Close()))
	return in
}

// verify checks that a process succeeded and that none printed to stderr.
func (r *rig) verify(argv []string, err error) {
	said := must(os.ReadFile(r.stderr.Name()))
	if err == nil && len(said) > 0 {
		err = errors.New("it complained")
	}
	if err != nil {
		fail("run %s: %w: %s", filepath.Base(argv[0]), err, strings.TrimSpace(string(said)))
	}
}

// start starts a process that is ended with the measure, if it has not ended by then. It
// prints to stdout, and complains to stderr.
func (r *rig) start(stdin []byte, stdout, stderr *os.File, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.ctx, r.program(argv[0]), argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.environment(), r.dir, filled(stdin), stdout, stderr
	check(cmd.Start())
	check(cmd.Stdin.(*os.File).Close())
	r.atEnd(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it may just have ended
			_ = cmd.Wait()
		}
	})
	return cmd
}

// stay waits.
func (r *rig) stay(length time.Duration) {
	select {
	case <-time.After(length):
	case <-r.ctx.Done():
		check(r.ctx.Err())
	}
}

// until looks again and again.
func (r *rig) until(what string, limit, every time.Duration, done func() bool) {
	for deadline := time.Now().Add(limit); !done(); r.stay(every) {
		if time.Now().After(deadline) {
			fail("it took more than %v until %s: %s", limit, what, must(os.ReadFile(r.stderr.Name())))
		}
	}
}

// untilWaits returns when a process watches the inbox and is idle: it has not run between
// two looks.
func (r *rig) untilWaits(pid int) {
	var last time.Duration
	r.until(fmt.Sprintf("process %d waits", pid), patience, 2*time.Millisecond, func() bool {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
			fail("the process ended before it waited")
		}
		before := last
		last = must(script.CPUTime(pid))
		return before == last && script.Watches(pid)
	})
}

// idles is the CPU time that a process takes in a minute in which nothing happens.
func (r *rig) idles(pid int) time.Duration {
	before := must(script.CPUTime(pid))
	r.stay(r.asleep())
	return (must(script.CPUTime(pid)) - before) * time.Duration(time.Minute) / r.asleep()
}
