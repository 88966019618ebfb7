package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"heartbeat/internal/disk"
)

// retryEvery is the pause between tries while a server starts or ends.
const retryEvery = 100 * time.Millisecond

// embedded is the server of one machine, a process of its own. Clients find it by its directory, or start it.
type embedded struct {
	dir string
	say func(string)
}

// unstarted marks an error that kept the server from starting.
type unstarted struct{ error }

func (u unstarted) Unwrap() error { return u.error }

// openEmbedded returns the server of a directory, and how to connect. Each run of the server has another port and token.
func openEmbedded(dir string, say func(string)) (*embedded, []nats.Option, error) {
	dir, err := serverDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("find the server of this machine: %w", err)
	}
	e := &embedded{dir: dir, say: say}
	return e, []nats.Option{nats.SetCustomDialer(e), nats.IgnoreDiscoveredServers(), nats.TokenHandler(func() string {
		a, _ := readAddress(dir) // without a token, the server's refusal says what is wrong
		return a.Token
	})}, nil
}

// Dial connects to the server. It starts one first if no process holds the lock: a stranger may have the old port.
func (e *embedded) Dial(network, _ string) (net.Conn, error) {
	isServed, err := e.isServed()
	if err == nil && !isServed {
		err = e.start()
	}
	if err != nil {
		return nil, unstarted{fmt.Errorf("start the server of this machine: %w", err)}
	}
	a, err := readAddress(e.dir)
	if err != nil {
		return nil, err
	}
	return net.DialTimeout(network, a.where(), dialTimeout)
}

func (e *embedded) isServed() (bool, error) { return isHeld(filepath.Join(e.dir, lockFile)) }

func isHeld(path string) (bool, error) {
	lock, err := disk.AcquireLock(context.Background(), path, time.Nanosecond)
	if errors.Is(err, disk.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Release()
}

// start starts the server and returns once it is ready. It succeeds too if another process started one first.
func (e *embedded) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // everything wanted has been read
	c := exec.Command(self, "serve", "--detached", "--dir", e.dir)
	c.Args[0] = "heartbeat-nats"
	c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
	c.Stdout, c.Stderr = in, in
	err = c.Start()
	if err = errors.Join(err, in.Close(), out.SetReadDeadline(time.Now().Add(startTimeout+lockWait))); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // the connection notices its end
	output, err := io.ReadAll(io.LimitReader(out, maxOutput))
	text := strings.TrimSpace(string(output))
	switch {
	case err != nil:
		return fmt.Errorf("process %d, heartbeat-nats serve, is not ready: %w", c.Process.Pid, err)
	case strings.HasPrefix(text, servesAt):
		e.say(fmt.Sprintf("started the server of %s, process %d, which ends once nobody was connected for 5 minutes", e.dir, c.Process.Pid))
		return nil
	}
	if isServed, err := e.isServed(); isServed || err != nil {
		return err
	}
	return failed(text, c.Process.Pid)
}

// failed returns why a server ended, without its warnings before, such as of an index that it makes anew.
func failed(output string, pid int) error {
	const ends = "heartbeat-nats: serve: "
	if i := strings.LastIndex(output, ends); i >= 0 {
		output = output[i+len(ends):]
	}
	return errors.New(cmp.Or(output, fmt.Sprintf("process %d, heartbeat-nats serve, ended before it was ready", pid)))
}

// servesAt begins the line that a server prints first, once it is ready.
const servesAt = "serves at "

// maxOutput limits what is read from a server that starts, in bytes.
const maxOutput = 64 << 10
