package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// Files in the directory of an embedded server.
const (
	lockFile    = ".server-lock"  // held by the process that serves
	stayFile    = ".server-stays" // held by a process that is to stay: a detached one ends
	addressFile = "server.json"   // address and token for clients
	logFile     = "server.log"    // output of a detached server
	storeDir    = "store"
)

const (
	maxAddress   = 4 << 10
	startTimeout = 30 * time.Second
	// probeTimeout is how long a server that should have ended may take to answer.
	probeTimeout = time.Second
	// lockWait outlasts processes that only test whether the lock is free.
	lockWait = time.Second
	// detachedIdle is how long a detached server runs without any client.
	detachedIdle = 5 * time.Minute
)

// ServeOptions say how an embedded server runs.
type ServeOptions struct {
	Dir string
	// Detached ends the server once nobody was connected for five minutes. Its output goes to a file in the
	// directory, since nobody reads its streams.
	Detached bool
	// Say gets a sentence for each fault while the server runs.
	Say func(sentence string)
	// Out gets the address in a line once clients can connect.
	Out io.Writer

	idle time.Duration // replaces detachedIdle in tests
}

// Serve runs the server of this machine on loopback until ctx is done or the directory is lost. It syncs each write.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	dir, err := serverDir(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	wait := lockWait
	var stay, lock *disk.Lock
	if !o.Detached { // clients keep a detached server from being idle, so make it end
		if a, _ := readAddress(dir); a.Detached {
			wait = startTimeout
		}
		stay, err = disk.AcquireLock(ctx, filepath.Join(dir, stayFile), lockWait)
		defer func() { err = errors.Join(err, stay.Release()) }()
	}
	if err == nil {
		lock, err = disk.AcquireLock(ctx, filepath.Join(dir, lockFile), wait)
	}
	if errors.Is(err, disk.ErrLocked) {
		a, _ := readAddress(dir)
		return fmt.Errorf("process %d serves %s already: connect to it with --embed %s", a.PID, dir, words.Shell(dir))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := forget(dir); err != nil {
		return err
	}
	store := filepath.Join(dir, storeDir)
	if info, err := disk.StatName(store); err == nil && !info.IsDir {
		return fmt.Errorf("%s is not a directory: remove it", store)
	}
	a := address{PID: os.Getpid(), Detached: o.Detached}
	if a.Token, err = machine.RandomName(); err != nil {
		return err
	}
	s, err := startServer(a.Token, store, o.Say)
	if err != nil {
		return fmt.Errorf("start the server on %s: %w", store, err)
	}
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	a.Port, a.ID = s.Addr().(*net.TCPAddr).Port, s.ID()
	if err := o.announce(dir, &a); err != nil {
		return err
	}
	if err := o.waitForEnd(ctx, s, lock, &a); err != nil {
		return err // the directory's files may belong to another server now
	}
	return disk.Remove(filepath.Join(dir, addressFile))
}

// announce publishes the server's address. A detached server then logs, since whoever started it reads no more.
func (o *ServeOptions) announce(dir string, a *address) error {
	if err := a.publish(dir); err != nil {
		return err
	}
	ready := servesAt + a.where() + "\n"
	if !o.Detached {
		_, err := io.WriteString(o.Out, ready)
		return err
	}
	log, _, err := disk.OpenWrite(filepath.Join(dir, logFile))
	if err == nil {
		err = log.Truncate(0)
	}
	if err != nil {
		return err
	}
	_, _ = io.WriteString(o.Out, ready) // whoever started it may be gone
	return errors.Join(log.RedirectOutput(), log.Close())
}

// waitForEnd waits until the server is to end, and keeps its address published. After nil the server removes that.
func (o *ServeOptions) waitForEnd(ctx context.Context, s *server.Server, lock *disk.Lock, a *address) error {
	idle := o.idle
	if o.Detached && idle == 0 {
		idle = detachedIdle
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	busy := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := lock.Check(); err != nil {
			return fmt.Errorf("end, since another server may start on the same files: %w", err)
		}
		if _, err := readAddress(o.Dir); errors.Is(err, fs.ErrNotExist) { // somebody removed it
			_ = a.publish(o.Dir) // the next round tries again
		}
		if s.NumClients() > 0 {
			busy = time.Now()
		}
		if idle == 0 {
			continue
		}
		if replaced, _ := isHeld(filepath.Join(o.Dir, stayFile)); replaced && o.Detached || time.Since(busy) > idle {
			return nil
		}
	}
}

// address tells clients where the server is and lets them in.
type address struct {
	Port     int    `json:"port"`
	Token    string `json:"token"`
	PID      int    `json:"pid"`
	ID       string `json:"id"` // unique to this run of the server
	Detached bool   `json:"detached,omitempty"`
}

func (a *address) where() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port)) }

func (a *address) publish(dir string) error {
	text, err := json.Marshal(a)
	if err == nil {
		err = disk.Publish(filepath.Join(dir, addressFile), text, true)
	}
	return err
}

func readAddress(dir string) (a address, err error) {
	path := filepath.Join(dir, addressFile)
	text, err := disk.ReadState(path, maxAddress)
	if err != nil {
		return a, fmt.Errorf("read where the server of this machine is: %w", err)
	}
	if err := json.Unmarshal(text, &a); err != nil || a.Port < 1 || a.Port > 65535 {
		return address{}, fmt.Errorf("read where the server of this machine is: %s is damaged: remove it", path)
	}
	return a, nil
}

// forget removes the address that the last server left: a stranger may have that port by now. It fails if the last
// server still runs, whose lock somebody removed: two servers on the same files would damage them.
func forget(dir string) error {
	a, unknown := readAddress(dir)
	path := filepath.Join(dir, addressFile)
	if err := disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if unknown != nil {
		return nil
	}
	nc, err := nats.Connect("nats://"+a.where(), nats.Token(a.Token), nats.Timeout(probeTimeout))
	if err != nil {
		return nil
	}
	defer nc.Close()
	if nc.ConnectedServerId() != a.ID {
		return nil
	}
	return fmt.Errorf("process %d still serves %s, and its lock was removed: it ends in a moment: try again", a.PID, dir)
}

// serverDir makes and returns a server's directory, links resolved. Others may not write there: they could plant a token.
func serverDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := disk.MakeDir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the directory of the server of this machine: %w: name one whose parent is there", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	info, err := disk.StatDir(dir)
	switch me := uint32(os.Geteuid()); {
	case err != nil:
		return "", err
	case info.UID != me:
		return "", fmt.Errorf("%s belongs to user %d, and this is user %d: name a directory of your own", dir, info.UID, me)
	case info.Mode&0o022 != 0:
		return "", fmt.Errorf("others can write in %s: take that away with chmod go-w %s", dir, words.Shell(dir))
	}
	return dir, nil
}

func startServer(token, store string, say func(string)) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "heartbeat-nats", Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token,
		JetStream: true, StoreDir: store, SyncAlways: true,
		NoSigs: true, DisableShortFirstPing: true,
	})
	if err != nil {
		return nil, err
	}
	s.SetLoggerV2(&log{say: say}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, fmt.Errorf("it was not ready within %v", startTimeout)
	}
	return s, nil
}

// log passes on the server's warnings and errors, such as a full disk.
type log struct{ say func(string) }

func (l *log) Noticef(string, ...any) {}
func (l *log) Debugf(string, ...any)  {}
func (l *log) Tracef(string, ...any)  {}
func (l *log) Warnf(format string, v ...any) {
	l.say("the server of this machine: " + fmt.Sprintf(format, v...))
}
func (l *log) Errorf(format string, v ...any) { l.Warnf(format, v...) }
func (l *log) Fatalf(format string, v ...any) { l.Warnf(format, v...) }
