package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/fleet"
)

// fullVariable has the server find the disk full.
const fullVariable = "LINK_TEST_FULL"

// serveHere is heartbeat-nats serve --detached, as this test binary.
func serveHere(dir string) {
	if os.Getenv(fullVariable) != "" {
		disk.TestOnlyObserver = full
	}
	err := Serve(context.Background(), ServeOptions{
		Dir: dir, Detached: true, Say: func(sentence string) { fmt.Fprintln(os.Stderr, sentence) },
		Out: os.Stdout,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "heartbeat-nats: serve:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func full(op disk.Op) error {
	if op.Kind == disk.OpWrite {
		return syscall.ENOSPC
	}
	return nil
}

// serverIn ends the server of a directory with the test.
func serverIn(t *testing.T, dir string) string {
	t.Helper()
	t.Cleanup(func() {
		if a, err := readAddress(dir); err == nil {
			end(t, dir, syscall.Kill(a.PID, syscall.SIGKILL))
		}
	})
	return dir
}

func newServerDir(t *testing.T) string {
	t.Helper()
	return serverIn(t, filepath.Join(t.TempDir(), "server"))
}

// end waits until nobody serves the directory.
func end(t *testing.T, dir string, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ESRCH) {
		require.NoError(t, err)
	}
	lock, err := disk.AcquireLock(fleet.Context(t), filepath.Join(dir, lockFile), 0)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

func kill(t *testing.T, dir string) {
	t.Helper()
	a, err := readAddress(dir)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(a.PID, syscall.SIGKILL))
}

func TestEmbeddedKeepsWhatItHas(t *testing.T) {
	dir := newServerDir(t)
	var told said
	c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{Say: told.say})
	require.NoError(t, err)
	assert.Contains(t, told.text(), "started the server of "+dir)
	fleet.WorkQueue(t, c.JS, "WORK", "work.>")
	_, err = c.JS.Publish(fleet.Context(t), "work.a", nil)
	require.NoError(t, err)
	c.Close()
	kill(t, dir)

	c = connect(t, &Flags{Embed: dir}, Options{})
	s, err := c.JS.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.CachedInfo().State.Msgs)
	for _, name := range []string{addressFile, lockFile, logFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
}

func TestTheServerOutlivesWhoStartedIt(t *testing.T) {
	dir := newServerDir(t)
	first := connect(t, &Flags{Embed: dir}, Options{})
	id := first.NATS.ConnectedServerId()
	first.Close()
	assert.Equal(t, id, connect(t, &Flags{Embed: dir}, Options{}).NATS.ConnectedServerId())
}

func TestOneServerForManyWhoStartIt(t *testing.T) {
	dir := newServerDir(t)
	ids := make([]string, 5)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
			if assert.NoError(t, err) {
				ids[i] = c.NATS.ConnectedServerId()
				c.Close()
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		assert.Equal(t, ids[0], id)
	}
}

func TestAKilledServerIsStartedAgain(t *testing.T) {
	dir := newServerDir(t)
	var told said
	c := connect(t, &Flags{Embed: dir}, Options{Say: told.say})
	other := connect(t, &Flags{Embed: dir}, Options{Say: told.say})
	fleet.WorkQueue(t, c.JS, "WORK", "work.>")
	_, err := c.JS.Publish(fleet.Context(t), "work.a", nil)
	require.NoError(t, err)
	before := c.NATS.ConnectedServerId()
	kill(t, dir)
	for _, each := range []*Conn{c, other} {
		require.Eventually(t, func() bool {
			return each.NATS.FlushTimeout(time.Second) == nil && each.Connected() && each.NATS.ConnectedServerId() != before
		}, 5*time.Minute, time.Millisecond)
		var s jetstream.Stream
		require.Eventually(t, func() bool { s, err = each.JS.Stream(fleet.Context(t), "WORK"); return err == nil }, 5*time.Minute, time.Millisecond)
		assert.EqualValues(t, 1, s.CachedInfo().State.Msgs)
	}
	assert.Equal(t, c.NATS.ConnectedServerId(), other.NATS.ConnectedServerId())
}

func TestAnIdleServerEnds(t *testing.T) {
	dir := newServerDir(t)
	var said strings.Builder
	require.NoError(t, Serve(fleet.Context(t), ServeOptions{Dir: dir, idle: time.Nanosecond, Say: func(string) {}, Out: &said}))
	assert.Contains(t, said.String(), servesAt)
	_, err := os.Stat(filepath.Join(dir, addressFile))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// A server that is to stay takes the place of the detached one, which its clients keep from ever being idle. Of two at
// once the other one is refused, and so is one that comes later.
func TestASecondServer(t *testing.T) {
	dir := newServerDir(t)
	c := connect(t, &Flags{Embed: dir}, Options{})
	ctx, cancel := context.WithCancel(fleet.Context(t))
	done := make(chan error)
	for range 2 {
		go func() { done <- Serve(ctx, ServeOptions{Dir: dir, Say: func(string) {}, Out: io.Discard}) }()
	}
	t.Cleanup(func() {
		c.Close()
		cancel()
		assert.NoError(t, <-done)
	})
	require.Eventually(t, func() bool {
		a, err := readAddress(dir)
		return err == nil && a.PID == os.Getpid() && c.NATS.ConnectedServerId() == a.ID
	}, 5*time.Minute, time.Millisecond)
	refused := "serves " + dir + " already: connect to it with --embed " + dir
	require.ErrorContains(t, <-done, refused)
	require.ErrorContains(t, Serve(fleet.Context(t), ServeOptions{Dir: dir}), fmt.Sprintf("process %d %s", os.Getpid(), refused))
}

func TestStrangersAreNotLetIn(t *testing.T) {
	dir := newServerDir(t)
	connect(t, &Flags{Embed: dir}, Options{})
	a, err := readAddress(dir)
	require.NoError(t, err)
	_, err = Connect(fleet.Context(t), &Flags{Server: "nats://" + a.where()}, Options{})
	require.ErrorContains(t, err, "wants to know who this is")
}

func TestWhereNoServerCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	link := filepath.Join(t.TempDir(), "server")
	require.NoError(t, os.Mkdir(link, 0o700))
	require.NoError(t, os.Symlink(file, filepath.Join(link, lockFile)))
	for dir, want := range map[string]string{
		filepath.Join(file, "x"):               "not a directory",
		filepath.Join(t.TempDir(), "no", "no"): "whose parent is there",
		file:                                   "not a directory",
		link:                                   "symbolic link",
	} {
		_, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
		assert.ErrorContains(t, err, want, dir)
	}
}

// Between two servers, the file may have the token of the last one.
func TestATokenOfTheLastServerIsTriedAgain(t *testing.T) {
	dir := newServerDir(t)
	connect(t, &Flags{Embed: dir}, Options{})
	path := filepath.Join(dir, addressFile)
	right, err := os.ReadFile(path)
	require.NoError(t, err)
	a, err := readAddress(dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"port":%d,"token":"of the last one","pid":%d}`, a.Port, a.PID), 0o600))
	done := make(chan error, 1)
	go func() {
		c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
		if err == nil {
			c.Close()
		}
		done <- err
	}()
	log := filepath.Join(dir, logFile)
	require.Eventually(t, func() bool {
		said, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(said), "authentication error")
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, os.WriteFile(path, right, 0o600))
	require.NoError(t, <-done)
}

// The address that somebody removed is written anew.
func TestAnAddressThatSomebodyRemoved(t *testing.T) {
	dir := newServerDir(t)
	first := connect(t, &Flags{Embed: dir}, Options{})
	require.NoError(t, os.Remove(filepath.Join(dir, addressFile)))
	again := connect(t, &Flags{Embed: dir}, Options{})
	require.Equal(t, first.NATS.ConnectedServerId(), again.NATS.ConnectedServerId())
}

// A server whose lock somebody removed ends, and no other one is on its files before that.
func TestALockThatSomebodyRemoved(t *testing.T) {
	dir := newServerDir(t)
	first := connect(t, &Flags{Embed: dir}, Options{})
	fleet.WorkQueue(t, first.JS, "WORK", "work.>")
	before := first.NATS.ConnectedServerId()
	require.NoError(t, os.Remove(filepath.Join(dir, lockFile)))
	require.Eventually(t, func() bool {
		c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
		if err != nil {
			assert.ErrorContains(t, err, "its lock was removed")
			return false
		}
		defer c.Close()
		if c.NATS.ConnectedServerId() == before {
			return false
		}
		_, err = c.JS.Stream(fleet.Context(t), "WORK")
		return err == nil
	}, 5*time.Minute, time.Millisecond)
}

// What a killed server leaves: a lock that nobody holds, the address of a port that a
// stranger has now, here a server that lets everybody in, or a damaged one.
func TestWhatAKilledServerLeaves(t *testing.T) {
	for name, left := range map[string]string{
		"nothing":  "",
		"damaged":  `{"port":`,
		"stranger": `{"port":%d,"token":"old"}`,
		"no port":  `{"port":70000}`,
	} {
		t.Run(name, func(t *testing.T) {
			stranger := fleet.Start(t)
			if strings.Contains(left, "%d") {
				left = fmt.Sprintf(left, stranger.Server().Addr().(*net.TCPAddr).Port)
			}
			dir := serverIn(t, t.TempDir())
			require.NoError(t, os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, addressFile), []byte(left), 0o600))
			c := connect(t, &Flags{Embed: dir}, Options{})
			assert.NotEqual(t, stranger.Server().ID(), c.NATS.ConnectedServerId())
			info, err := os.Stat(filepath.Join(dir, addressFile))
			require.NoError(t, err)
			assert.EqualValues(t, 0o600, info.Mode().Perm())
		})
	}
}

// What the server has said yes to is there, whenever its process is killed.
func TestAKilledServerLosesNothing(t *testing.T) {
	dir := newServerDir(t)
	ctx, kept := fleet.Context(t), 0
	for round := range 3 {
		connect(t, &Flags{Embed: dir}, Options{}).Close()
		a, err := readAddress(dir)
		require.NoError(t, err)
		nc, err := nats.Connect("nats://"+a.where(), nats.Token(a.Token), nats.NoReconnect())
		require.NoError(t, err)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		if round == 0 {
			fleet.WorkQueue(t, js, "WORK", "work.>")
		}
		enough, killed := make(chan struct{}), make(chan error)
		go func() {
			<-enough
			killed <- syscall.Kill(a.PID, syscall.SIGKILL)
		}()
		for i := 0; ; i++ {
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err := js.Publish(short, "work.a", []byte(fmt.Sprint(kept+1)))
			cancel()
			if err != nil {
				break
			}
			if kept++; i == 20 {
				close(enough) // and it goes on until the server is gone
			}
		}
		require.NoError(t, <-killed)
		nc.Close()
	}
	c := connect(t, &Flags{Embed: dir}, Options{})
	s, err := c.JS.Stream(ctx, "WORK")
	require.NoError(t, err)
	there := s.CachedInfo().State
	assert.GreaterOrEqual(t, int(there.Msgs), kept)
	assert.LessOrEqual(t, int(there.Msgs), kept+3, "one of each round may have come in without an answer")
}

func TestDirectoriesThatNoServerGets(t *testing.T) {
	if os.Geteuid() == 0 {
		dir := t.TempDir()
		require.NoError(t, os.Chown(dir, 12345, 12345))
		_, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
		require.ErrorContains(t, err, "belongs to user 12345, and this is user 0")
	}
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o777))
	_, err := Connect(fleet.Context(t), &Flags{Embed: open}, Options{})
	require.ErrorContains(t, err, "others can write in "+open+": take that away with chmod go-w "+open)

	dir := t.TempDir()
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, storeDir)))
	_, err = Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
	require.ErrorContains(t, err, "store is not a directory: remove it")

	real, name := serverIn(t, t.TempDir()), filepath.Join(t.TempDir(), "name")
	require.NoError(t, os.Symlink(real, name))
	connect(t, &Flags{Embed: name}, Options{})
	_, err = os.Stat(filepath.Join(real, addressFile))
	require.NoError(t, err)
}

// A disk that is full when the server is to start is said to who wants it. An agent waits.
func TestADirectoryOnAFullDisk(t *testing.T) {
	dir := newServerDir(t)
	t.Setenv(fullVariable, "1")
	_, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
	require.ErrorContains(t, err, "start the server of this machine: ")
	require.ErrorContains(t, err, "no space left on device")

	var told said
	done := make(chan *Conn)
	go func() {
		c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{Patient: true, Say: told.say})
		assert.NoError(t, err)
		done <- c
	}()
	require.Eventually(t, func() bool {
		return strings.Contains(told.text(), "no space left on device; it is tried again for ever")
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, os.Unsetenv(fullVariable))
	(<-done).Close()
}

// A server that was killed warns of the indexes that it makes anew, with the time. A client says only what ended it, and
// says the same at each try.
func TestWhyTheServerDoesNotStart(t *testing.T) {
	const warns = "heartbeat-nats: 2026-11-30 00:13:12 the server of this machine: Filestore [WORK] Recovering stream state from index errored: corrupt state file\n"
	require.EqualError(t, failed(warns+warns+"heartbeat-nats: serve: write server.json.tmp: no space left on device", 7), "write server.json.tmp: no space left on device")
	require.EqualError(t, failed("heartbeat-nats: serve: it is damaged", 7), "it is damaged")
	require.EqualError(t, failed("panic: x", 7), "panic: x")
	require.EqualError(t, failed("", 7), "process 7, heartbeat-nats serve, ended before it was ready")
}
