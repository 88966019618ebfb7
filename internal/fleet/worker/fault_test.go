package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/fleet/verbs"
	"heartbeat/internal/fleet/worker"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/script"
)

// What happens to an agent, by its environment.
const (
	killVariable = "HEARTBEAT_TEST_KILL" // it is killed at this step
	skewVariable = "HEARTBEAT_TEST_SKEW" // by which its clock is wrong
	holdVariable = "HEARTBEAT_TEST_HOLD" // it waits at this step until the test lets it go on
	fullVariable = "HEARTBEAT_TEST_FULL" // its disk is full from this step on, until there is room
)

// program is heartbeat-nats with faults.
func program() {
	os.Exit(crash.Run(func() int {
		f := faults{gate: os.Getenv(gateVariable), kill: os.Getenv(killVariable), hold: os.Getenv(holdVariable), full: os.Getenv(fullVariable)}
		worker.TestOnlyStep = f.at
		upstream.TestOnlyStep = func(step string) { f.at("settle: " + step) }
		if skew, err := time.ParseDuration(os.Getenv(skewVariable)); err == nil {
			worker.TestOnlyClock = func() time.Time { return time.Now().Add(skew) }
		}
		if f.full != "" {
			disk.TestOnlyObserver = f.write
		}
		verbs.Main()
		return 0
	}))
}

// faults are what happens to an agent. The folder gate has a file for each thing that the
// test and the agent tell each other.
type faults struct {
	gate             string
	kill, hold, full string

	once   sync.Once
	mu     sync.Mutex
	isFull bool
}

func (f *faults) at(step string) {
	switch step {
	case "":
	case f.kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		script.Forever()
	case f.hold:
		if is(f.gate, "not yet") {
			return
		}
		f.once.Do(func() {
			touch(f.gate, "held")
			for !is(f.gate, "go on") {
				time.Sleep(5 * time.Millisecond) // the test opens the gate
			}
		})
	case f.full:
		f.once.Do(func() {
			f.mu.Lock()
			f.isFull = true
			f.mu.Unlock()
			touch(f.gate, "full")
		})
	}
}

// write refuses what needs space on a full disk.
func (f *faults) write(op disk.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isFull = f.isFull && !is(f.gate, "room")
	if f.isFull && (op.Kind == disk.OpCreate || op.Kind == disk.OpWrite) {
		return unix.ENOSPC
	}
	return nil
}

func touch(dir, name string) {
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		panic(err)
	}
}

func is(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// tell makes a file that an agent or a client waits for.
func (w *world) tell(name string) {
	require.NoError(w.t, os.WriteFile(filepath.Join(w.gate, name), nil, 0o600))
}

// told waits for a file that an agent makes.
func (w *world) told(name string, running ...*running) {
	w.t.Helper()
	w.eventually("an agent that is "+name, func() bool { return is(w.gate, name) }, running...)
}

// says waits until an agent has said something.
func (w *world) says(r *running, sentence string) {
	w.t.Helper()
	w.eventually("that it says: "+sentence, func() bool {
		return strings.Contains(strings.Join(strings.Fields(r.said()), " "), sentence)
	}, r)
}
