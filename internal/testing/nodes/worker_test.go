package nodes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine"
	"heartbeat/internal/testing/fleet"
)

// worker is an agent, which reaches each node through a proxy of its own.
type worker struct {
	t       *testing.T
	name    string
	inbox   string
	builds  []string // the folders of its commands, of which each start takes the next
	starts  int
	clock   string // how far its clock is ahead
	proxies []*fleet.Proxy
	agent   *fleet.Agent
	meant   bool // its end is
}

func newWorker(t *testing.T, name string, nodes []*node, clock string, builds ...string) *worker {
	a := &worker{t: t, name: name, inbox: filepath.Join(t.TempDir(), name, "inbox.jsonl"), clock: clock, builds: builds}
	require.NoError(t, os.Mkdir(filepath.Dir(a.inbox), 0o700))
	for _, n := range nodes {
		a.proxies = append(a.proxies, fleet.NewProxy(t, n.address()))
	}
	a.start()
	t.Cleanup(func() {
		a.kill(true)
		require.Eventually(t, func() bool { return os.RemoveAll(filepath.Dir(a.inbox)) == nil }, 5*time.Minute, 20*time.Millisecond,
			"the guardian ends a session that the launcher left")
	})
	return a
}

func (a *worker) start() {
	var urls []string
	for _, p := range a.proxies {
		urls = append(urls, p.URL())
	}
	args := append([]string{"--slots", "2", "--drain-on", "TERM"}, fleet.Session...)
	a.meant = false
	path := os.Getenv("PATH")
	build := a.builds[a.starts%len(a.builds)]
	a.starts++
	a.t.Setenv("PATH", build+string(os.PathListSeparator)+path)
	a.agent = fleet.StartAgent(a.t, strings.Join(urls, ","), a.name, a.inbox, []string{clockVariable + "=" + a.clock}, args...)
	a.t.Setenv("PATH", path)
}

// kill kills the agent, and its launcher if that is asked for. It reports whether there was one.
func (a *worker) kill(launcher bool) bool {
	a.meant = true
	_ = a.agent.Process.Kill() // it may have ended
	<-a.agent.Done
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(a.inbox), ".launch-lock"))
	if err != nil || !launcher {
		return false
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(first)
	return err == nil && strings.HasPrefix(machine.Name(pid), "heartbeat-launc") && syscall.Kill(pid, syscall.SIGKILL) == nil
}

// update ends the agent in order, as a new release does, and starts it again.
func (a *worker) update() {
	a.meant = true
	require.NoError(a.t, a.agent.Process.Signal(syscall.SIGTERM))
	if status, said := a.agent.Ended(), a.agent.Said(); strings.Contains(said, "takes messages") {
		require.Zero(a.t, status, said)
	} else { // it held nothing yet: the signal ends it, or kills it before it catches any
		require.Contains(a.t, []int{128 + int(syscall.SIGTERM), -1}, status, said)
	}
	a.start()
}

// each does something to the way to every node.
func (a *worker) each(do func(*fleet.Proxy)) {
	for _, p := range a.proxies {
		do(p)
	}
}

// endedByItself reports whether the agent ended although nobody asked for it.
func (a *worker) endedByItself() bool {
	select {
	case <-a.agent.Done:
		return !a.meant
	default:
		return false
	}
}
