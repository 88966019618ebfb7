package script

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
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// Programs returns the programs that scripts run beside the commands: one that holds
// a lock, one that is a hook's parent, and hooks that fail in some way. hook is the
// main function of heartbeat-stop.
func Programs(hook func()) map[string]func() {
	return map[string]func(){
		"hold-lock":   func() { rename(); holdLock() },
		"parent":      func() { rename(); parent() },
		"panic-aside": func() { panicAside(hook) },
		"signal-amid": func() { signalAmid(hook) },
		"uncertain":   func() { uncertain(hook) },
	}
}

// rename has the process be called what COMM says, and none that it starts.
func rename() {
	if name := os.Getenv("COMM"); name != "" {
		_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // the script tells
		_ = os.Unsetenv("COMM")
	}
}

// holdLock takes the lock on the file of its argument, reports that with a file
// FILE.held, and keeps the lock until it is killed.
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

// parent runs a command as its child: `parent OUT STDIN COMMAND...`. The child's output
// goes to OUT.out and OUT.err, both pids to OUT.pids.
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

// panicAside is the hook with a panic in a goroutine, which nothing recovers, at the
// first change of the state.
func panicAside(main func()) {
	disk.TestOnlyObserver = func(disk.Op) error {
		go func() { panic("aside") }()
		select {}
	}
	main()
}

// signalAmid is the hook with a SIGTERM that arrives during a commit.
func signalAmid(main func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	once := sync.OnceFunc(func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			fatal(err)
		}
		<-signals
		time.Sleep(50 * time.Millisecond) // time for the hook to react; without it the test proves nothing
	})
	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpSync {
			once()
		}
		return nil
	}
	main()
}

// uncertain is the hook with a disk that fails while a delivery is committed and while
// the commit is undone, and then works: nothing shows whether it was committed.
func uncertain(main func()) {
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
	main()
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
