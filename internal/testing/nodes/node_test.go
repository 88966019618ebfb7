package nodes

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/fleet"
)

// node is a nats-server, with files of its own that outlive it.
type node struct {
	t       *testing.T
	name    string
	program string
	later   string // the program once it was stopped, or ""
	config  string
	port    int
	log     string

	cmd   *exec.Cmd
	ended chan struct{}
}

// startNodes runs a cluster of nats-server processes.
func startNodes(t *testing.T, size int) []*node {
	dir := t.TempDir()
	program, later := filepath.Join(dir, "nats-server"), ""
	command(t, "go", "build", "-o", program, "github.com/nats-io/nats-server/v2")
	if other := filepath.Join(os.Getenv(otherVariable), "nats-server"); filepath.IsAbs(other) && exec.Command(other, "--version").Run() == nil {
		program, later = other, program
	}
	var routes []string
	routed := make([]int, size)
	for i := range size {
		routed[i] = fleet.FreePort()
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", routed[i]))
	}
	nodes := make([]*node, size)
	for i := range nodes {
		n := &node{t: t, name: fmt.Sprint("node-", i+1), program: program, later: later, port: fleet.FreePort()}
		n.config, n.log = filepath.Join(dir, n.name+".conf"), filepath.Join(dir, n.name+".log")
		// Without no_advertise clients would learn the way past the proxies.
		text := fmt.Sprintf(`
server_name: %s
listen: 127.0.0.1:%d
log_file: %q
jetstream { store_dir: %q, sync_interval: always }
`, n.name, n.port, n.log, filepath.Join(dir, n.name))
		if size > 1 {
			text += fmt.Sprintf("cluster { name: test, listen: 127.0.0.1:%d, no_advertise: true, routes: [%s] }\n", routed[i], strings.Join(routes, ", "))
		}
		require.NoError(t, os.WriteFile(n.config, []byte(text), 0o600))
		nodes[i] = n
		n.start()
		t.Cleanup(n.kill)
	}
	return nodes
}

func (n *node) start() {
	n.cmd, n.ended = exec.Command(n.program, "-c", n.config), make(chan struct{})
	require.NoError(n.t, n.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(n.cmd, n.ended) // it is killed
	require.Eventually(n.t, func() bool {
		c, err := net.Dial("tcp", n.address())
		if err == nil {
			_ = c.Close() // it was only opened
		}
		return err == nil
	}, 5*time.Minute, 10*time.Millisecond)
}

func (n *node) kill() { n.end(syscall.SIGKILL) }

// update ends the node in order, to start as the later program if there is one.
func (n *node) update() {
	n.end(syscall.SIGTERM)
	n.program = cmp.Or(n.later, n.program)
}

func (n *node) end(sig syscall.Signal) {
	_ = n.cmd.Process.Signal(sig) // it may have ended
	<-n.ended
}

func (n *node) address() string { return fmt.Sprintf("127.0.0.1:%d", n.port) }

// addresses are those of all nodes, for a client.
func addresses(nodes []*node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, "nats://"+n.address())
	}
	return strings.Join(all, ",")
}
