package machine_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine"
)

// TestList has a child in it as long as it runs, and no zombie.
func TestList(t *testing.T) {
	cmd, input := start(t)
	pid := cmd.Process.Pid
	is := func(e machine.Entry) bool { return e.PID == pid }
	all := machine.List()
	i := slices.IndexFunc(all, is)
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, os.Getpid(), all[i].Parent)
	assert.Equal(t, machine.ProcessStart(pid), all[i].Start)

	life := machine.WatchProcess(pid)
	require.NoError(t, input.Close())
	<-life.Died()
	assert.False(t, slices.ContainsFunc(machine.List(), is))
	require.NoError(t, cmd.Wait())
}
