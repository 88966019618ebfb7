package link

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
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
	"heartbeat/internal/testing/script"
)

// serveVariable names a directory to this test binary, which then is its server until it is
// killed.
const serveVariable = "LINK_TEST_SERVE"

func serveHere(dir string) {
	c, err := Connect(context.Background(), &Flags{Embed: dir}, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("up at", c.Where())
	script.Forever()
}

// elsewhere has another process be the server, and returns what kills it.
func elsewhere(t *testing.T, dir string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	// The test's end may meet a kill that is under way.
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	b := make([]byte, 200)
	n, err := out.Read(b)
	require.NoError(t, err)
	require.Contains(t, string(b[:n]), "up at")
	return kill
}

func TestEmbeddedKeepsWhatItHas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
	require.NoError(t, err)
	fleet.WorkQueue(t, c.JS, "WORK", "work.>")
	_, err = c.JS.Publish(fleet.Context(t), "work.a", nil)
	require.NoError(t, err)
	port := portOf(t, dir)
	require.NoError(t, c.Close())

	c = connect(t, &Flags{Embed: dir}, Options{})
	assert.Equal(t, port, portOf(t, dir))
	s, err := c.JS.Stream(fleet.Context(t), "WORK")
	require.NoError(t, err)
	assert.EqualValues(t, 1, s.CachedInfo().State.Msgs)
	for _, name := range []string{addressFile, lockFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
}

func portOf(t *testing.T, dir string) int {
	t.Helper()
	a, err := (&embedded{dir: dir}).address()
	require.NoError(t, err)
	return a.Port
}

func TestOneOfManyIsTheServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	var all []*Conn
	for range 3 {
		all = append(all, connect(t, &Flags{Embed: dir}, Options{}))
	}
	got := make(chan struct{})
	_, err := all[2].NATS.Subscribe("x", func(*nats.Msg) { close(got) })
	require.NoError(t, err)
	require.NoError(t, all[2].NATS.FlushTimeout(time.Minute))
	require.NoError(t, all[1].NATS.Publish("x", nil))
	select {
	case <-got:
	case <-fleet.Context(t).Done():
		require.Fail(t, "they are not on one server")
	}
}

func TestWhoIsLeftTakesOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	kill := elsewhere(t, dir)
	var told said
	c := connect(t, &Flags{Embed: dir}, Options{Say: told.say})
	other := connect(t, &Flags{Embed: dir}, Options{Say: told.say})
	fleet.WorkQueue(t, c.JS, "WORK", "work.>")
	_, err := c.JS.Publish(fleet.Context(t), "work.a", nil)
	require.NoError(t, err)
	kill()
	for _, each := range []*Conn{c, other} {
		require.Eventually(t, func() bool { return each.NATS.FlushTimeout(time.Second) == nil && each.Connected() }, time.Minute, time.Millisecond)
		var s jetstream.Stream
		require.Eventually(t, func() bool { s, err = each.JS.Stream(fleet.Context(t), "WORK"); return err == nil }, time.Minute, time.Millisecond)
		assert.EqualValues(t, 1, s.CachedInfo().State.Msgs)
	}
	assert.Equal(t, 1, strings.Count(told.text(), "this process is the server"), told.text())
}

func TestStrangersAreNotLetIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	connect(t, &Flags{Embed: dir}, Options{})
	_, err := Connect(fleet.Context(t), &Flags{Server: fmt.Sprintf("nats://127.0.0.1:%d", portOf(t, dir))}, Options{})
	require.ErrorContains(t, err, "wants to know who this is")
}

func TestAnotherPortWhereTheLastIsTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
	require.NoError(t, err)
	port := portOf(t, dir)
	require.NoError(t, c.Close())
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	connect(t, &Flags{Embed: dir}, Options{})
	assert.NotEqual(t, port, portOf(t, dir))
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

// A server that has just started may listen before the file has its token.
func TestATokenOfTheLastServerIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	var told said
	connect(t, &Flags{Embed: dir}, Options{Say: told.say})
	path := filepath.Join(dir, addressFile)
	right, err := os.ReadFile(path)
	require.NoError(t, err)
	stale := fmt.Appendf(nil, `{"port":%d,"token":"of the last one"}`, portOf(t, dir))
	require.NoError(t, os.WriteFile(path, stale, 0o600))
	done := make(chan error, 1)
	go func() {
		c, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
		if err == nil {
			err = c.Close()
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(told.text(), "authentication error") }, time.Minute, time.Millisecond)
	require.NoError(t, os.WriteFile(path, right, 0o600))
	require.NoError(t, <-done)
}

// Whoever finds the lock free asks whether there is a server all the same.
func TestALockThatSomebodyRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	first := connect(t, &Flags{Embed: dir}, Options{})
	require.NoError(t, os.Remove(filepath.Join(dir, lockFile)))
	second := connect(t, &Flags{Embed: dir}, Options{})
	assert.NotNil(t, first.server.running)
	assert.Nil(t, second.server.running)
	assert.Equal(t, first.NATS.ConnectedServerId(), second.NATS.ConnectedServerId())
}

// What a killed server leaves: a lock that nobody holds, the address of a port that a
// stranger has now, or a damaged one.
func TestWhatAKilledServerLeaves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it says nothing
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	for name, left := range map[string]string{
		"nothing":  "",
		"damaged":  `{"port":`,
		"stranger": fmt.Sprintf(`{"port":%d,"token":"old"}`, l.Addr().(*net.TCPAddr).Port),
		"no port":  `{"port":70000}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, addressFile), []byte(left), 0o644))
			c := connect(t, &Flags{Embed: dir}, Options{})
			assert.NotNil(t, c.server.running)
			info, err := os.Stat(filepath.Join(dir, addressFile))
			require.NoError(t, err)
			assert.EqualValues(t, 0o600, info.Mode().Perm())
		})
	}
}

// What the server has said yes to is there, whenever its process is killed.
func TestAKilledServerLosesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	ctx, kept := fleet.Context(t), 0
	for round := range 3 {
		kill := elsewhere(t, dir)
		a, err := (&embedded{dir: dir}).address()
		require.NoError(t, err)
		nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", a.Port), nats.Token(a.Token), nats.NoReconnect())
		require.NoError(t, err)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		if round == 0 {
			fleet.WorkQueue(t, js, "WORK", "work.>")
		}
		enough := make(chan struct{})
		go func() {
			<-enough
			kill()
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

	real, name := t.TempDir(), filepath.Join(t.TempDir(), "name")
	require.NoError(t, os.Symlink(real, name))
	connect(t, &Flags{Embed: name}, Options{})
	_, err = os.Stat(filepath.Join(real, addressFile))
	require.NoError(t, err)
}

// A disk that is full when the server is to start is said, and the lock is free again.
func TestADirectoryOnAFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	}
	_, err := Connect(fleet.Context(t), &Flags{Embed: dir}, Options{})
	disk.TestOnlyObserver = nil
	require.ErrorContains(t, err, "be the server of this machine")
	require.ErrorIs(t, err, syscall.ENOSPC)
	connect(t, &Flags{Embed: dir}, Options{})
}
