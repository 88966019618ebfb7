package guardian

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine"
)

// The members are the processes that have the mark among theirs, and their descendants.
func TestMembers(t *testing.T) {
	run := func(marks, script string) (pid int) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = []string{"PATH=/bin:/usr/bin", Variable + "=" + marks, "OTHER=themark"}
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			assert.NoError(t, in.Close())
			_ = cmd.Wait() // ended by the end of its input
		})
		_, err = out.Read(make([]byte, 1)) // it runs, and its child
		require.NoError(t, err)
		return cmd.Process.Pid
	}
	const waits = "echo; read line"
	parent := run("themark", "env -i sh -c '"+waits+"'; :")
	inner, outer := run("outer:themark", waits), run("themark:inner", waits)
	longer, none := run("themarks", waits), run("", waits)

	found := map[int]int{}
	for _, p := range Members("themark") {
		found[p.PID] = p.Parent
	}
	assert.Len(t, found, 4)
	for _, pid := range []int{parent, inner, outer} {
		assert.Contains(t, found, pid)
		delete(found, pid)
	}
	for _, its := range found {
		assert.Equal(t, parent, its, "the child whose environment was cleared")
	}
	assert.NotContains(t, found, longer)
	assert.NotContains(t, found, none)
}

// Another process that has got the pid is left alone.
func TestAnotherWithTheNumber(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	assert.ErrorIs(t, Send(machine.Entry{PID: pid, Start: machine.ProcessStart(pid) - 1}, syscall.SIGKILL), os.ErrProcessDone)
	require.NoError(t, Send(machine.Entry{PID: pid, Start: machine.ProcessStart(pid)}, syscall.SIGTERM))
	_ = cmd.Wait() // its status is looked at
	assert.Equal(t, syscall.SIGTERM, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// A guardian that was killed and reaped is dismissed at once, and nobody is waited for.
func TestDismissAfterReaping(t *testing.T) {
	process, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	require.NoError(t, err)
	_, err = syscall.Wait4(process.Pid, nil, 0, nil)
	require.NoError(t, err)
	line, undo, err := os.Pipe()
	require.NoError(t, err)
	(&Guardian{PID: process.Pid, process: process, line: line, undo: undo}).Dismiss()
}

// A guardian is dismissed although this process can open no file, so that /proc tells it nothing.
func TestDismissWithoutDescriptors(t *testing.T) {
	process, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	require.NoError(t, err)
	line, undo, err := os.Pipe()
	require.NoError(t, err)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: limit.Max}))
	(&Guardian{PID: process.Pid, process: process, line: line, undo: undo}).Dismiss()
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	assert.ErrorIs(t, syscall.Kill(process.Pid, 0), syscall.ESRCH)
}
