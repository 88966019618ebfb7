package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// Files in the directory of --embed.
const (
	lockFile    = ".server-lock"
	addressFile = "server.json"
	storeDir    = "store"
)

const (
	maxAddress   = 4 << 10
	startTimeout = 30 * time.Second
	lookEvery    = 100 * time.Millisecond
	// askTimeout is how long a server has to answer that should not be there.
	askTimeout = time.Second
)

// embedded is the server of one machine: this process is it while it holds the lock on the
// directory, else another one is. Whoever sees it end takes its place.
type embedded struct {
	dir string
	say func(string)

	mu      sync.Mutex
	lock    *disk.Lock
	running func() // ends the server, nil if this process is not it
	closed  bool
	taking  bool          // a goroutine waits to take the place
	done    chan struct{} // closed with the connection
}

// address is how the server's clients find it and are let in.
type address struct {
	Port  int    `json:"port"`
	Token string `json:"token"`
	PID   int    `json:"pid"`
}

func openEmbedded(dir string, say func(string)) (*embedded, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := disk.MakeDir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the directory of the server of this machine: %w: name one with --embed whose parent is there", err)
	}
	if dir, err = ownDir(dir); err != nil {
		return nil, fmt.Errorf("be the server of this machine: %w", err)
	}
	return &embedded{dir: dir, say: say, done: make(chan struct{})}, nil
}

// ownDir is the directory that a name leads to. One in which others can write is refused:
// they could put their files in the place of the server's, and the token of their server.
func ownDir(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	info, err := disk.StatDir(dir)
	switch me := uint32(os.Geteuid()); {
	case err != nil:
		return "", err
	case info.UID != me:
		return "", fmt.Errorf("%s belongs to user %d, and this is user %d: name a directory of your own with --embed", dir, info.UID, me)
	case info.Mode&0o022 != 0:
		return "", fmt.Errorf("others can write in %s: take that away with chmod go-w %s", dir, words.Shell(dir))
	}
	return dir, nil
}

// target is where to connect. The port and the token are looked up at each try, since they
// are the next server's own if that cannot have the same port.
func (e *embedded) target() (Target, []nats.Option) {
	return Target{URL: "nats://127.0.0.1"}, []nats.Option{
		nats.SetCustomDialer(e),
		nats.IgnoreDiscoveredServers(),
		nats.TokenHandler(func() string {
			a, _ := e.address() // without it, the server's refusal says what is wrong
			return a.Token
		}),
	}
}

// Dial connects to the server that runs now.
func (e *embedded) Dial(network, _ string) (net.Conn, error) {
	a, err := e.address()
	if err != nil {
		return nil, err
	}
	return net.DialTimeout(network, net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port)), dialTimeout)
}

func (e *embedded) address() (a address, err error) {
	path := filepath.Join(e.dir, addressFile)
	text, err := disk.ReadState(path, maxAddress)
	if err != nil {
		return a, fmt.Errorf("read where the server of this machine is: %w", err)
	}
	if err := json.Unmarshal(text, &a); err != nil || a.Port < 1 || a.Port > 65535 {
		return address{}, fmt.Errorf("read where the server of this machine is: %s is damaged: remove it", path)
	}
	return a, nil
}

// ready returns once the server of this machine can be connected to: it is this process, or
// another one that serves already.
func (e *embedded) ready(ctx context.Context) error {
	if e == nil {
		return nil
	}
	give := time.Now().Add(startTimeout)
	for {
		served, err := e.serve()
		if served || err != nil {
			return err
		}
		conn, err := e.Dial("tcp", "")
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(give) {
			return fmt.Errorf("the server in %s does not answer, though a process has it: %w", e.dir, err)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// serve makes this process the server if no other one is.
func (e *embedded) serve() (served bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.running != nil {
		return e.running != nil, nil
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	lock, err := disk.AcquireLock(now, filepath.Join(e.dir, lockFile), 0)
	if errors.Is(err, disk.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("be the server of this machine: %w", err)
	}
	if e.isServed() {
		return false, lock.Release()
	}
	running, err := e.start()
	if err != nil {
		return false, errors.Join(fmt.Errorf("be the server of this machine: %w", err), lock.Release())
	}
	e.lock, e.running = lock, running
	return true, nil
}

// isServed reports whether a server lets this process in although nobody holds the lock:
// somebody removed the lock's file. Two servers on the same files would damage them.
func (e *embedded) isServed() bool {
	a, err := e.address()
	if err != nil || isFree(a.Port) {
		return false
	}
	nc, err := nats.Connect("nats://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port)), nats.Token(a.Token), nats.Timeout(askTimeout))
	if err != nil {
		return false
	}
	nc.Close()
	return true
}

// start starts the server under the lock, on the last one's port if that is free.
func (e *embedded) start() (end func(), err error) {
	last, err := e.address()
	if err != nil || !isFree(last.Port) {
		last.Port = 0
	}
	token, err := machine.RandomName()
	if err != nil {
		return nil, err
	}
	store := filepath.Join(e.dir, storeDir)
	if info, err := disk.StatName(store); err == nil && !info.IsDir {
		return nil, fmt.Errorf("%s is not a directory: remove it", store)
	}
	now := address{Token: token, PID: os.Getpid()}
	if now.Port, end, err = startServer(last.Port, now.Token, store, e.say); err != nil {
		return nil, err
	}
	text, err := json.Marshal(now)
	if err == nil {
		err = disk.Publish(filepath.Join(e.dir, addressFile), text, true)
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// isFree reports whether a server can listen on the port.
func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// takeOver has this process become the server while the connection is lost.
func (e *embedded) takeOver(c *Conn) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.taking {
		return
	}
	e.taking = true
	go func() {
		for try := 1; !e.over(c); try++ {
			served, err := e.serve()
			if served {
				e.say("this process is the server of this machine now")
			}
			if err != nil {
				e.say(err.Error())
			}
			select {
			case <-time.After(delay(try)):
			case <-e.done:
			}
		}
	}()
}

// over reports whether nothing is to be taken over any more. A connection that is lost
// right after finds that nobody waits.
func (e *embedded) over(c *Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.running != nil || c.Connected() {
		e.taking = false
	}
	return !e.taking
}

// close ends the server if this process is it.
func (e *embedded) close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	close(e.done)
	if e.running == nil {
		return nil
	}
	e.running()
	return e.lock.Release()
}

// startServer starts a server on loopback, with the files in store and each write synced. It
// listens at port, or at a free one if that is 0, and lets in who has the token. say gets a
// sentence about what goes wrong with it later. end ends it.
func startServer(port int, token, store string, say func(string)) (at int, end func(), err error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "heartbeat-nats", Host: "127.0.0.1", Port: port, Authorization: token,
		JetStream: true, StoreDir: store, SyncAlways: true,
		NoSigs: true, DisableShortFirstPing: true,
	})
	if err != nil {
		return 0, nil, err
	}
	s.SetLoggerV2(&log{say: say}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return 0, nil, fmt.Errorf("it was not ready within %v", startTimeout)
	}
	end = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	return s.Addr().(*net.TCPAddr).Port, end, nil
}

// log passes on what is wrong with the server, such as a full disk.
type log struct{ say func(string) }

func (l *log) Noticef(string, ...any) {}
func (l *log) Debugf(string, ...any)  {}
func (l *log) Tracef(string, ...any)  {}
func (l *log) Warnf(format string, v ...any) {
	l.say("the server of this machine: " + fmt.Sprintf(format, v...))
}
func (l *log) Errorf(format string, v ...any) { l.Warnf(format, v...) }
func (l *log) Fatalf(format string, v ...any) { l.Warnf(format, v...) }
