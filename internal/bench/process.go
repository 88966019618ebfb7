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
)

// patience bounds the run of a process that normally takes milliseconds.
const patience = 30 * time.Second

// runner runs one process after another. None may print to stderr: a warning means that
// the measurement is not of what was meant.
type runner struct {
	ctx      context.Context
	stderr   *os.File
	patience time.Duration // with one process
	env      []string      // beside that of all
}

func (b *bench) runner() (*runner, error) {
	f, err := os.CreateTemp(b.dir, "stderr-")
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return &runner{ctx: b.ctx, stderr: f, patience: patience}, nil
}

func (r *runner) close() { _ = r.stderr.Close() } // nothing is lost with it

// environment returns this process's environment without what a surrounding session may
// have set.
func environment() []string { return []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()} }

// run gives a process its stdin and returns its stdout, both of which must fit into a
// pipe.
func (r *runner) run(stdin []byte, argv ...string) (stdout []byte, took time.Duration, err error) {
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, 0, fmt.Errorf("run: %w", err)
	}
	defer out.Close()
	took, err = r.runInto(childOut, stdin, argv...)
	if err := errors.Join(err, childOut.Close()); err != nil {
		return nil, 0, err
	}
	stdout, err = io.ReadAll(out)
	return stdout, took, err
}

// runInto gives a process its stdin, and a file for its stdout. The time is from before
// its start until after its end; nothing else is done meanwhile.
func (r *runner) runInto(stdout *os.File, stdin []byte, argv ...string) (time.Duration, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, fmt.Errorf("run: %w", err)
	}
	in, err := filled(stdin)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	dir := filepath.Dir(r.stderr.Name())
	// Left alone, babysitter's hook writes its logs into the caller's home folder.
	env := append(append(environment(), "BABYSITTER_LOG_DIR="+dir), r.env...)
	attr := &os.ProcAttr{Dir: dir, Env: env, Files: []*os.File{in, stdout, r.stderr}}
	took, err := r.timed(program, argv, attr)
	return took, r.verify(argv, err)
}

// timed runs a process from start to end. One that hangs is killed.
func (r *runner) timed(program string, argv []string, attr *os.ProcAttr) (time.Duration, error) {
	began := time.Now()
	p, err := os.StartProcess(program, argv, attr)
	if err != nil {
		return 0, err
	}
	hangs := time.AfterFunc(r.patience, func() { _ = p.Kill() }) // it may just have ended
	state, err := p.Wait()
	took := time.Since(began)
	hangs.Stop()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return took, err
}

// filled returns the reading end of a pipe that contains b and then ends.
func filled(b []byte) (*os.File, error) {
	const capacity = 4 << 10 // of the smallest pipe: more could block
	if len(b) > capacity {
		return nil, fmt.Errorf("run: a stdin of %d bytes is more than a pipe is sure to hold", len(b))
	}
	in, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		_ = in.Close() // nobody reads it
		return nil, fmt.Errorf("run: %w", err)
	}
	return in, nil
}

// verify checks that the process succeeded and printed nothing to stderr.
func (r *runner) verify(argv []string, err error) error {
	info, statErr := r.stderr.Stat()
	if statErr != nil {
		return errors.Join(err, statErr)
	}
	if err == nil && info.Size() == 0 {
		return nil
	}
	said, _ := os.ReadFile(r.stderr.Name()) // the error is reported in any case
	if err == nil {
		err = errors.New("it complained")
	}
	_, seekErr := r.stderr.Seek(0, io.SeekStart) // or the next process would write where this one stopped
	err = fmt.Errorf("run %s: %w: %s", filepath.Base(argv[0]), err, strings.TrimSpace(string(said)))
	return errors.Join(err, seekErr, r.stderr.Truncate(0))
}
