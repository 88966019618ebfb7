package guardian

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
)

// family starts a script, and returns once that has printed something or ended. It must be over when the test ends.
func family(t *testing.T, script string, grace time.Duration, guard int) *Family {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	out, print, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	f, err := Start("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Dir: t.TempDir(), Env: []string{"PATH=/bin:/usr/bin"},
		Files: []uintptr{null.Fd(), print.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	}, grace, guard)
	require.NoError(t, errors.Join(err, print.Close()))
	_, _ = out.Read(make([]byte, 1)) // nothing is there at its end
	return f
}

// beside starts a process that is none of a family.
func beside(t *testing.T) (pid int) {
	t.Helper()
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Kill(), "it was left alone")
		_, err := p.Wait()
		require.NoError(t, err)
	})
	return p.Pid
}

// A family is over once the kernel knows no child of this process but its guardian, or nobody is found but strangers.
func TestFamilyIsOver(t *testing.T) {
	for name, guard := range map[string]func() int{
		"alone":             func() int { return 0 },
		"beside a guardian": func() int { return beside(t) },
		"beside a stranger": func() int { beside(t); return 0 },
	} {
		f := family(t, "(setsid sleep 0.1 &) ; exit 3", time.Hour, guard())
		<-f.Gone()
		assert.Equal(t, 3, f.Status().ExitStatus(), name)
		<-f.Over()
		assert.Zero(t, f.Killed(), name)
		_, stuck := f.Stuck()
		assert.False(t, stuck, name)
		unreaped, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		assert.LessOrEqual(t, unreaped, 0, name)
	}
}

// What does not listen is killed after the grace, with what it has started meanwhile.
func TestFamilyIsKilled(t *testing.T) {
	const deaf = `trap "" TERM; >up; echo; while :; do sleep 1000; done`
	t.Run("what was left behind", func(t *testing.T) {
		f := family(t, "setsid sh -c '"+deaf+"' & until [ -e up ]; do sleep 0.01; done", time.Millisecond, beside(t))
		<-f.Over()
		assert.Positive(t, f.Killed())
	})
	t.Run("the leader", func(t *testing.T) {
		f := family(t, deaf, time.Hour, 0)
		f.End(time.Hour)
		f.End(time.Millisecond) // the second request is in a hurry,
		f.End(time.Hour)        // and the third gives it no more time
		<-f.Over()
		assert.Equal(t, syscall.SIGKILL, f.Status().Signal())
		f.End(0) // nobody is there
		assert.Zero(t, machine.ProcessStart(f.Leader))
	})
}

// A guardian that is posted after the start is no reason to wait, and is not asked to end.
func TestFamilyGetsAGuardian(t *testing.T) {
	f := family(t, "echo; sleep 1000", time.Hour, 0)
	guard := beside(t)
	f.mu.Lock() // as in Guard, which needs a program that can be a guardian
	f.guard = guard
	f.mu.Unlock()
	f.End(time.Hour)
	<-f.Over()
	assert.Equal(t, syscall.SIGTERM, f.Status().Signal())
	assert.NotContains(t, f.asked, guard)
}

// A leader that the kernel keeps from dying is given up, and its end is told when it comes: a host waits for that.
func TestFamilyIsGivenUp(t *testing.T) {
	tracer := exec.Command(os.Args[0], "-test.run=^TestTracer$")
	tracer.Env = append(os.Environ(), "TRACER=1")
	in, err := tracer.StdinPipe()
	require.NoError(t, err)
	out, err := tracer.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, tracer.Start())
	defer func() { _ = tracer.Wait() }() // ended by the end of its input
	defer func() { _ = in.Close() }()    // it may be closed

	f := family(t, "echo; sleep 1000", time.Hour, 0)
	_, err = fmt.Fprintln(in, f.Leader)
	require.NoError(t, err)
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	f.End(0)
	<-f.Over()
	if said != "traced\n" {
		t.Skipf("nobody may trace here: %s", said)
	}
	_, stuck := f.Stuck()
	assert.True(t, stuck)
	select {
	case <-f.Gone():
		assert.Fail(t, "it is not gone")
	default:
	}
	require.NoError(t, in.Close())
	<-f.Gone()
	assert.Equal(t, syscall.SIGKILL, f.Status().Signal())
}

// TestTracer is a process for [TestFamilyIsGivenUp]: whom it traces, nobody else can reap.
func TestTracer(t *testing.T) {
	if os.Getenv("TRACER") == "" {
		t.Skip("it is no test of its own")
	}
	runtime.LockOSThread()
	var pid int
	_, err := fmt.Scanln(&pid)
	require.NoError(t, err)
	if err := unix.PtraceSeize(pid); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("traced")
	_, _ = fmt.Scanln() // its end
}
