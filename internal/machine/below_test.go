package machine

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	self, parent := os.Getpid(), os.Getppid()
	is := func(want int) func(int) bool { return func(pid int) bool { return pid == want } }
	assert.Equal(t, self, Nearest(self, is(self)))
	assert.Equal(t, parent, Nearest(self, is(parent)))
	assert.Zero(t, Nearest(parent, is(self)))
	assert.Equal(t, 1, Nearest(1, is(1)), "a container's first process may be a client")
	assert.Zero(t, Nearest(self, func(pid int) bool { return pid < 1 }))
	assert.Zero(t, Nearest(-1, func(int) bool { return true }))
}

func TestVariable(t *testing.T) {
	t.Setenv("HEARTBEAT_TEST", "mine")
	value, known := Variable(os.Getpid(), "HEARTBEAT_TEST")
	assert.Equal(t, []any{"mine", true}, []any{value, known})
	_, known = Variable(-1, "HEARTBEAT_TEST")
	assert.False(t, known)
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		return // this system does not show it
	}
	child := exec.Command("cat")
	child.Env = []string{"A=1", "HEARTBEAT_TEST=its=own"}
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	defer func() { require.NoError(t, in.Close()); require.NoError(t, child.Wait()) }()
	_, err = in.Write([]byte("x")) // during execve a process has no environment for a moment
	require.NoError(t, err)
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	value, known = Variable(child.Process.Pid, "HEARTBEAT_TEST")
	assert.Equal(t, []any{"its=own", true}, []any{value, known})
	value, known = Variable(child.Process.Pid, "B")
	assert.Equal(t, []any{"", true}, []any{value, known})
}
