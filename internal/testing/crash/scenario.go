package crash

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// Scenario is a child that works on the files of a directory. It must make the same
// calls each time.
type Scenario struct {
	Setup func(t testing.TB, dir string)   // makes the files; may be nil
	Run   func(dir string) Command         // the child that works on them
	Want  func(t testing.TB, whole Result) // judges the undisturbed run; nil wants exit 0
}

// EveryKill kills the child before each of its calls, and half-way through each
// write, and calls check with what is left. The last call of check is for a child
// that was not killed.
func (s Scenario) EveryKill(t *testing.T, check func(*testing.T, Crash)) {
	t.Helper()
	rec := s.Record(t)
	tries := newTries(t)
	kill := func(i int, option string) {
		tries.run("before-"+label(i+1, rec.Ops)+option, func(t *testing.T) {
			c := s.crash(t, rec, i, EnvKillAt+"="+strconv.Itoa(i+1)+option)
			if c.Result.Signal != syscall.SIGKILL {
				t.Fatalf("the child did not come to its call %d (%s): it exited with %d; stderr:\n%s",
					i+1, rec.Ops[i].Kind, c.Result.ExitCode, c.Result.Stderr)
			}
			check(t, c)
		})
	}
	for i := range rec.Ops {
		kill(i, "")
	}
	for i, op := range rec.Ops {
		if tearable(op) {
			kill(i, ",torn")
		}
	}
	tries.must("complete", func(t *testing.T) { check(t, s.crash(t, rec, len(rec.Ops))) })
}

// EveryFail makes each of the child's calls fail with errno, in three ways: alone, as
// a write that stops half-way, and together with all later calls. On a full disk
// files can still be removed: with ENOSPC and EDQUOT, only the kinds in [NeedsSpace]
// fail later. When the child has ended, check is called with what is left, and with
// what the child promised.
func (s Scenario) EveryFail(t *testing.T, errno syscall.Errno, check func(*testing.T, Crash)) {
	t.Helper()
	rec := s.Record(t)
	tries := newTries(t)
	for i, op := range rec.Ops {
		for _, way := range failures(i+1, op, errno) {
			tries.run(label(i+1, rec.Ops)+"-"+way.name, func(t *testing.T) { check(t, s.crash(t, rec, i, way.env)) })
		}
	}
}

// failure is one way for a call to fail, as the child's environment spells it.
type failure struct{ name, env string }

func failures(n int, op disk.Op, errno syscall.Errno) []failure {
	at := fmt.Sprintf("=%d:%s", n, unix.ErrnoName(errno))
	ways := []failure{{"once", EnvFailAt + at}}
	if tearable(op) {
		ways = append(ways, failure{"torn", EnvFailAt + at + ",torn"})
	}
	if errno != unix.ENOSPC && errno != unix.EDQUOT {
		return append(ways, failure{"stays", EnvFailFrom + at})
	}
	if slices.Contains(NeedsSpace, op.Kind) {
		for _, kind := range NeedsSpace {
			at += "," + string(kind)
		}
		ways = append(ways, failure{"stays", EnvFailFrom + at})
	}
	return ways
}

// EveryPowerLoss is the function [EveryPowerLoss] for the child's calls.
func (s Scenario) EveryPowerLoss(t *testing.T, seed uint64, rounds int, check func(*testing.T, Crash)) {
	t.Helper()
	EveryPowerLoss(t, s.Record(t), seed, rounds, check)
}

// EveryKillThenPowerLoss is the function [EveryKillThenPowerLoss] for the child's
// calls. The child runs twice.
func (s Scenario) EveryKillThenPowerLoss(t *testing.T, seed uint64, rounds int, check func(*testing.T, Crash)) {
	t.Helper()
	everyKillThenPowerLoss(t, s.Record(t), s.record, seed, rounds, check)
}

// Record runs the child undisturbed and returns its calls. All of them must be inside
// the directory.
func (s Scenario) Record(t testing.TB) *Recording {
	t.Helper()
	rec := s.record(t, s.dir(t))
	if len(rec.Ops) == 0 {
		t.Fatal("the undisturbed child made no call through package disk: is it run by crash.Main or crash.Run?")
	}
	return rec
}

func (s Scenario) record(t testing.TB, dir string) *Recording {
	t.Helper()
	before := Snapshot(t, dir)
	result, r := s.child(t, dir)
	switch {
	case s.Want != nil:
		s.Want(t, result)
	case result.ExitCode != 0:
		t.Fatalf("the undisturbed child ended with exit status %d, %v; stderr:\n%s", result.ExitCode, result.Signal, result.Stderr)
	}
	return &Recording{Before: before, After: Snapshot(t, dir), Ops: r.ops, promises: r.promises}
}

func (s Scenario) crash(t testing.TB, rec *Recording, made int, env ...string) Crash {
	t.Helper()
	dir := s.dir(t)
	result, r := s.child(t, dir, env...)
	promised := (&Recording{promises: r.promises}).Promised(len(r.ops))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("environment of the child: %s", strings.Join(env, " "))
		}
	})
	return Crash{Dir: dir, Made: made, Ops: rec.Ops, Promised: promised, Result: result}
}

func (s Scenario) dir(t testing.TB) string {
	t.Helper()
	dir := tempDir(t)
	if s.Setup != nil {
		s.Setup(t, dir)
	}
	return dir
}

func (s Scenario) child(t testing.TB, dir string, env ...string) (Result, *Recorder) {
	t.Helper()
	count := filepath.Join(tempDir(t), "count")
	c := s.Run(dir)
	c.Env = append(append([]string{EnvCount + "=" + count}, env...), c.Env...)
	result := c.Run(t)
	return result, ReadCount(t, count)
}
