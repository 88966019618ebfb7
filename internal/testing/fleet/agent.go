package fleet

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/build"
)

// Commands are tests with our commands on PATH.
type Commands struct {
	*testing.M
	// Change is done with the folder of the commands, if it is not nil.
	Change func(dir string) error
}

// Run runs the tests.
func (m Commands) Run() int {
	dir, remove, err := build.Commands()
	if err == nil {
		defer remove()
		err = os.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+dir)
	}
	if err == nil && m.Change != nil {
		err = m.Change(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = os.Unsetenv("CI") // the launcher would say that it takes that out
	return m.M.Run()
}

// Session is what an agent's flags end with that runs sessions of the stand-in.
var Session = []string{"--launch", "--no-meter", "--", "claude", "begin"}

// Agent is heartbeat-nats agent, which works in its inbox's folder.
type Agent struct {
	*exec.Cmd
	Inbox string
	Done  chan struct{} // closed once it has ended

	t   *testing.T
	mu  sync.Mutex
	out bytes.Buffer
}

// StartAgent starts one. Who starts it ends it.
func StartAgent(t *testing.T, url, name, inbox string, env []string, args ...string) *Agent {
	a := &Agent{Inbox: inbox, Done: make(chan struct{}), t: t}
	a.Cmd = exec.Command("heartbeat-nats", append([]string{"agent", "--server", url, "--inbox", inbox, "--name", name}, args...)...)
	a.Env = append(os.Environ(), env...)
	a.Dir = filepath.Dir(inbox)
	a.Stdout, a.Stderr = a, a
	a.WaitDelay = 2 * time.Second // a launcher that outlives it has its streams
	require.NoError(t, a.Start())
	go func() { _ = a.Wait(); close(a.Done) }()
	return a
}

// Write takes what it says.
func (a *Agent) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Write(p)
}

// Said is what it has said.
func (a *Agent) Said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.String()
}

// Ended waits until it has ended, and returns its status.
func (a *Agent) Ended() int {
	a.t.Helper()
	select {
	case <-a.Done:
		return a.ProcessState.ExitCode()
	case <-time.After(readyWithin):
		require.Fail(a.t, "the agent does not end", a.Said())
		return -1
	}
}
