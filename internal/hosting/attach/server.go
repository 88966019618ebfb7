package attach

import (
	"context"
	"errors"
	"iter"
	"net"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

// Backend is the session that a server makes reachable. Its methods are called from
// many goroutines.
type Backend interface {
	// Messages yields the messages from a number on and then those that come, until
	// the session's transcript is closed or ctx ends.
	Messages(ctx context.Context, from int64) iter.Seq2[Message, error]
	// Status returns what JSON is made of. It must not wait for anything.
	Status() any
	// Cancel asks the session to end and returns at once. grace is how long the client
	// may take before it is killed; if it is negative the session uses its own.
	Cancel(grace time.Duration) error
	// Send appends an entry to the session's inbox. The error matches [ErrEnded] if the
	// session takes no more of them.
	Send(ctx context.Context, m inbox.Message) (inbox.Receipt, error)
}

// Options are a server's limits. Their zero value means the usual ones.
type Options struct {
	// Connections is how many there may be at once: by default half of the descriptors
	// that this process may have open.
	Connections int
	// Patience is how long a peer may take to send its request, and a reader to take
	// anything of what is written: 30 s by default.
	Patience time.Duration
	// Log gets a sentence about what went wrong; nil drops it.
	Log func(format string, args ...any)
}

// Server makes one session reachable.
type Server struct {
	Options
	backend Backend
	socket  *net.UnixListener
	path    string

	ctx     context.Context // ends when readers are to be cut off
	cut     context.CancelFunc
	slots   chan struct{}
	working sync.WaitGroup
	done    chan struct{} // closed once no more connections are accepted
}

// Serve makes the session reachable by way of the socket in the folder: see [Listen].
func Serve(folder string, b Backend, o Options) (*Server, error) {
	socket, err := Listen(folder)
	if err != nil {
		return nil, err
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Connections == 0 {
		o.Connections = halfOfDescriptors()
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	s := &Server{
		Options: o, backend: b, socket: socket, path: filepath.Join(folder, SocketName),
		slots: make(chan struct{}, o.Connections), done: make(chan struct{}),
	}
	s.ctx, s.cut = context.WithCancel(context.Background())
	go s.accept()
	return s, nil
}

// Path is that of the socket.
func (s *Server) Path() string { return s.path }

// Readers is how many connections are open.
func (s *Server) Readers() int { return len(s.slots) }

// halfOfDescriptors leaves the other half to the session: its pipes, files, proxy.
func halfOfDescriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 128
	}
	return int(max(16, min(limit.Cur/2, 8192)))
}

// Close takes no more connections, removes the socket, and gives readers up to grace to
// take what is left. The session's transcript has to be closed before.
func (s *Server) Close(grace time.Duration) error {
	err := errors.Join(disk.Remove(s.path), s.socket.Close())
	<-s.done
	timer := time.AfterFunc(grace, s.cut)
	s.working.Wait()
	timer.Stop()
	s.cut()
	return err
}

func (s *Server) accept() {
	defer close(s.done)
	for pause := 5 * time.Millisecond; ; {
		conn, err := s.socket.AcceptUnix()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as no descriptors: those that wait are not lost
			s.Log("the session's socket: %v", err)
			_ = sleep(s.ctx, pause)
			pause = min(2*pause, time.Second)
		}
	}
}

// take serves the connection if there are not too many.
func (s *Server) take(conn *net.UnixConn) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.refuseBusy(conn)
		return
	}
	s.working.Go(func() {
		defer func() { <-s.slots }()
		c := &connection{Server: s, conn: conn}
		defer c.close()
		c.serve()
	})
}

func (s *Server) refuseBusy(conn *net.UnixConn) {
	c := &connection{Server: s, conn: conn}
	defer c.close()
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // an empty buffer takes it at once
	c.print(refusal{Error: "too many connections to the session's host: try again", Busy: true})
}
