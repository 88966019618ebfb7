package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// readyWithin is how long a server may take to start on a loaded machine.
const readyWithin = 3 * time.Minute

// Server is a NATS server with JetStream in this process. It syncs each write, and keeps
// its port and its files over restarts.
type Server struct {
	mu      sync.Mutex
	options *server.Options
	running *server.Server
	port    int
	clients []*nats.Conn // of [Server.Connect]
}

// Start runs a server for a test, on files of its own. change may alter its options, such
// as MaxPayload or users.
func Start(t testing.TB, change ...func(*server.Options)) *Server {
	t.Helper()
	s, err := Run(t.TempDir(), change...)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// Run runs a server on the files in dir.
func Run(dir string, change ...func(*server.Options)) (*Server, error) {
	o := &server.Options{
		Host:      "127.0.0.1",
		JetStream: true, StoreDir: dir, SyncAlways: true,
		NoSigs: true, NoLog: true,
	}
	for _, c := range change {
		c(o)
	}
	s := &Server{options: o}
	return s, s.Resume()
}

// RunFile runs a server with a configuration file, on loopback, on a free port, and on the
// files in dir.
func RunFile(file, dir string, change ...func(*server.Options)) (*Server, error) {
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the server's configuration: %w", err)
	}
	o.Host, o.StoreDir = "127.0.0.1", dir
	o.HTTPPort, o.NoSigs, o.NoLog, o.LogFile = 0, true, true, ""
	for _, c := range change {
		c(o)
	}
	s := &Server{options: o}
	return s, s.Resume()
}

// Resume starts the server again after [Server.Stop].
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return errors.New("the server runs already")
	}
	o := s.options.Clone()
	if s.port == 0 {
		s.port = FreePort()
	}
	o.Port = s.port
	// Another process may look at this moment whether the port is free, and have it.
	for range 3 {
		running, err := server.NewServer(o)
		if err != nil {
			return fmt.Errorf("start the server: %w", err)
		}
		running.Start()
		if running.ReadyForConnections(readyWithin) {
			s.running = running
			return nil
		}
		running.Shutdown()
		running.WaitForShutdown()
	}
	return fmt.Errorf("the server on port %d was not ready within %v, three times", o.Port, readyWithin)
}

var given sync.Map // of ports, which two servers might draw alike

// FreePort returns a port that the system gives to nobody who asks for any: while the server
// is stopped, nobody takes it.
func FreePort() int {
	for {
		port := 10000 + rand.IntN(22000)
		if _, is := given.LoadOrStore(port, true); is {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
}

// Stop ends the server. Its clients see their connections closed. It may be stopped
// already.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Shutdown()
		s.running.WaitForShutdown()
		s.running = nil
	}
}

// Restart stops the server and starts it on the same port and files. It returns once the
// connections of [Server.Connect] are back: what they sent before would never be answered.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	before := map[*nats.Conn]uint64{}
	for _, nc := range s.clients {
		before[nc] = nc.Stats().Reconnects
	}
	s.mu.Unlock()
	s.Stop()
	require.NoError(t, s.Resume())
	for nc, n := range before {
		require.Eventually(t, func() bool { return nc.IsClosed() || nc.Stats().Reconnects > n }, readyWithin, time.Millisecond)
	}
}

// Reload changes options of the running server, as a reload of its configuration does.
func (s *Server) Reload(t testing.TB, change func(*server.Options)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.options)
	o := s.options.Clone()
	o.Port = s.port
	require.NoError(t, s.running.ReloadOptions(o))
}

// Address is host:port.
func (s *Server) Address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// URL is where clients connect.
func (s *Server) URL() string { return "nats://" + s.Address() }

// Server is the server itself, or nil while it is stopped.
func (s *Server) Server() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Connect returns a connection that ends with the test and survives restarts of the
// server, with its JetStream.
func (s *Server) Connect(t testing.TB, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, js := Connect(t, s.URL(), options...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, nc)
	return nc, js
}

// Connect is [Server.Connect] for any address, such as that of a [Proxy].
func Connect(t testing.TB, url string, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	options = append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond)}, options...)
	nc, err := nats.Connect(url, options...)
	for tries := 0; errors.Is(err, os.ErrDeadlineExceeded) && tries < 10; tries++ { // the library waits two seconds, which a busy machine may need
		nc, err = nats.Connect(url, options...)
	}
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return nc, js
}

// WorkQueue makes a stream and returns it: a work queue with synced files, as setup makes
// it, for tests that need nothing more of the layout.
func WorkQueue(t testing.TB, js jetstream.JetStream, name string, subjects ...string) jetstream.Stream {
	t.Helper()
	stream, err := js.CreateOrUpdateStream(Context(t), jetstream.StreamConfig{
		Name: name, Subjects: subjects, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		Duplicates: 2 * time.Minute,
	})
	require.NoError(t, err)
	return stream
}

// Context ends with the test, and after some minutes, so that a test that waits for
// something that never comes fails with a sentence.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
