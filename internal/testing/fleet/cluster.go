package fleet

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// Cluster is a cluster of servers in this process, with routes on loopback.
type Cluster []*Server

// StartCluster runs a cluster of so many servers for a test. It returns once they have a
// leader.
func StartCluster(t testing.TB, size int) Cluster {
	t.Helper()
	ports := make([]int, size) // routes have to be known before a server starts
	var routes []*url.URL
	for i := range ports {
		ports[i] = FreePort()
		routes = append(routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i]))})
	}
	c := make(Cluster, size)
	for i, port := range ports {
		c[i] = &Server{options: &server.Options{
			ServerName: fmt.Sprint("node-", i+1), Host: "127.0.0.1",
			Cluster: server.ClusterOpts{Name: "cluster", Host: "127.0.0.1", Port: port}, Routes: routes,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, NoSigs: true, NoLog: true,
		}}
		require.NoError(t, c[i].Resume())
		t.Cleanup(c[i].Stop)
	}
	require.Eventually(t, func() bool { return c.hasLeader(size) }, readyWithin, 10*time.Millisecond)
	return c
}

// URL names all servers.
func (c Cluster) URL() string {
	all := make([]string, len(c))
	for i, s := range c {
		all[i] = s.URL()
	}
	return strings.Join(all, ",")
}

// Named is the server with a name, as the information about a stream has it.
func (c Cluster) Named(name string) *Server {
	for _, s := range c {
		if s.options.ServerName == name {
			return s
		}
	}
	return nil
}

func (c Cluster) hasLeader(peers int) bool {
	for _, s := range c {
		if running := s.Server(); running != nil && running.JetStreamIsLeader() && len(running.JetStreamClusterPeers()) == peers {
			return true
		}
	}
	return false
}
