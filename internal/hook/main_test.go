package hook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/command"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// TestMain makes the test binary the command itself where a script runs it.
func TestMain(m *testing.M) {
	inbox.TestOnlyBelieve = os.Getenv("STRICT") == "" // scripts write state by hand
	if os.Getenv("GORACE") == "" {
		// The race detector would have each child sleep for a second at its end.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // best effort: it only takes longer
	}
	crash.EveryNth = long.Rounds(6, 1)
	testscript.Main(m, map[string]func(){
		"heartbeat":      command.Main,
		"heartbeat-stop": hook.Main,
		"hold-lock":      holdLock,
		"parent":         parent,
		"panic-aside":    panicAside,
		"signal-amid":    signalAmid,
		"uncertain":      uncertain,
	})
}

// holdLock takes the lock on the file that its argument names, says so by making
// a file `held` beside it, and keeps it until it is killed.
func holdLock() {
	lock, err := disk.AcquireLock(context.Background(), os.Args[1], 0)
	if err == nil {
		err = os.WriteFile(os.Args[1]+".held", nil, 0o600)
	}
	if err != nil {
		fatal(err)
	}
	awaitSignal()
	if err := lock.Release(); err != nil {
		fatal(err)
	}
}

// parent runs a command as its child, with the file of the second argument as
// stdin and its output in OUT.out and OUT.err, writes both process ids into
// OUT.pids, and waits.
func parent() {
	out := os.Args[1]
	cmd := exec.Command(os.Args[3], os.Args[4:]...)
	var err error
	if cmd.Stdin, err = os.Open(os.Args[2]); err != nil {
		fatal(err)
	}
	for name, stream := range map[string]*io.Writer{".out": &cmd.Stdout, ".err": &cmd.Stderr} {
		if *stream, err = os.Create(out + name); err != nil {
			fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		fatal(err)
	}
	pids := strconv.Itoa(os.Getpid()) + " " + strconv.Itoa(cmd.Process.Pid)
	if err := os.WriteFile(out+".tmp", []byte(pids), 0o600); err != nil {
		fatal(err)
	}
	if err := os.Rename(out+".tmp", out+".pids"); err != nil {
		fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		fatal(err)
	}
}

// panicAside is the command with a panic in a goroutine that nobody recovers
// from, at the first change of the state.
func panicAside() {
	disk.TestOnlyObserver = func(disk.Op) error {
		go func() { panic("aside") }()
		select {}
	}
	hook.Main()
}

// signalAmid is the command with a SIGTERM that comes while it commits.
func signalAmid() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	once := sync.OnceFunc(func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			fatal(err)
		}
		<-signals
		time.Sleep(50 * time.Millisecond) // for the command to notice, or the test shows nothing
	})
	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpSync {
			once()
		}
		return nil
	}
	hook.Main()
}

// uncertain is the command with a disk that fails while a delivery is committed,
// and while that is taken back, and then works: nobody can tell whether it was.
func uncertain() {
	amid, over := false, false
	disk.TestOnlyObserver = func(op disk.Op) error {
		switch {
		case over || filepath.Base(op.Path) != ".inbox-journal":
		case op.Kind == disk.OpWrite && bytes.Contains(op.Data, []byte(`"woken":true`)):
			amid = true
		case amid:
			over = op.Kind == disk.OpWrite
			return unix.EIO
		}
		return nil
	}
	hook.Main()
}

func awaitSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
}

func fatal(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", strings.Join(os.Args, " "), err)
	os.Exit(1)
}

// anyCommand is the verb that comes first, or else the hook.
func anyCommand(args []string, s cli.Streams) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		s.Command = "heartbeat"
		return command.Run(args, s)
	}
	s.Command = hook.CommandName
	return hook.Run(args, s)
}
