package script

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// running are the commands that scripts have started and not finished yet.
var running sync.Map // by "script's directory/name"

// background is a command that runs beside its script.
type background struct {
	cmd         *exec.Cmd
	hook        bool // its end is a decision
	out, stderr bytes.Buffer
	done        chan error
}

func runningKey(ts *testscript.TestScript, name string) string { return ts.Getenv("WORK") + "/" + name }

// cmdStart starts a Stop hook: `start NAME SESSION PROMPT ACTIVE REPLY [FLAG...]`.
// HOOK may name another program.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 5, "start NAME SESSION PROMPT ACTIVE REPLY [FLAG...]")
	stdin, err := json.Marshal(stopInput(ts, args[1:]))
	ts.Check(err)
	hook := cmp.Or(ts.Getenv("HOOK"), "heartbeat-stop")
	b := &background{hook: true, cmd: command(ts, hook, append([]string{"--inbox", ts.Getenv("INBOX")}, args[5:]...)...)}
	b.cmd.Stdin = bytes.NewReader(stdin)
	beside(ts, args[0], b)
}

// cmdRun starts any command: `run NAME COMMAND...`. waiting, signal and finish apply to
// it.
func cmdRun(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "run NAME COMMAND...")
	beside(ts, args[0], &background{cmd: command(ts, args[1], args[2:]...)})
}

func beside(ts *testscript.TestScript, name string, b *background) {
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.stderr
	b.done = make(chan error, 1)
	ts.Check(b.cmd.Start())
	go func() { b.done <- b.cmd.Wait() }()
	if _, twice := running.LoadOrStore(runningKey(ts, name), b); twice {
		ts.Fatalf("%s is started already", name)
	}
	ts.Defer(func() {
		if _, unfinished := running.LoadAndDelete(runningKey(ts, name)); unfinished {
			_ = b.cmd.Process.Kill() // the script failed before finish
			<-b.done
		}
	})
}

func started(ts *testscript.TestScript, name string) *background {
	b, ok := running.Load(runningKey(ts, name))
	if !ok {
		ts.Fatalf("%s is not started", name)
	}
	return b.(*background)
}

// pidOf returns the pid of what was started by that name, or the number itself.
func pidOf(ts *testscript.TestScript, name string) int {
	if pid, err := strconv.Atoi(name); err == nil {
		return pid
	}
	return started(ts, name).cmd.Process.Pid
}

// cmdWaiting waits until a hook waits for the inbox to change: `waiting NAME`. NAME may
// be a pid.
func cmdWaiting(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1, "waiting NAME")
	pid := pidOf(ts, args[0])
	Poll(ts, "a watch of "+args[0], func() bool { return Watches(pid) })
}

// cmdSignal sends a signal: `signal NAME TERM|KILL|...`. NAME may be a pid.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "signal NAME SIGNAL")
	sig := unix.SignalNum("SIG" + args[1])
	if sig == 0 {
		ts.Fatalf("there is no signal %s", args[1])
	}
	ts.Check(syscall.Kill(pidOf(ts, args[0]), sig))
}

// cmdFinish waits for the end of what was started: `finish NAME [STATUS]`. STATUS is
// KILL, TERM, ... if a signal ends it; any accepts all.
func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1 || len(args) == 2, "finish NAME [STATUS]")
	b, want := started(ts, args[0]), "0"
	if len(args) == 2 {
		want = args[1]
	}
	select {
	case err := <-b.done:
		running.Delete(runningKey(ts, args[0]))
		status := statusOf(ts, err)
		output(ts, b.out.Bytes(), b.stderr.Bytes())
		switch {
		case b.hook:
			decided(ts, b.out.Bytes(), status, want)
		case want != "any" && status != want:
			ts.Fatalf("%s: exit status %s, want %s\n%s", args[0], status, want, b.stderr.Bytes())
		}
	case <-time.After(Patience):
		ts.Fatalf("%s still runs", args[0])
	}
}

// Patience bounds every wait. No test passes because of it.
const Patience = 5 * time.Minute

// Poll waits until done returns true, and fails the script after [Patience].
func Poll(ts *testscript.TestScript, what string, done func() bool) {
	for deadline := time.Now().Add(Patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %s", what)
		}
	}
}

// cmdAwait returns once something is true: `await exists FILE`, `await written FILE`
// (it is not empty), `await gone FILE`, `await dead PID` or `await dead FILE` (which
// lists pids), `await match REGEXP FILE`, `await count FILE TEXT N` (TEXT is there at
// least N times), `await opened FILE NAME`, `await asleep NAME`.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "await exists|written|gone|dead|match|count|opened|asleep ...")
	there := func() bool { _, err := os.Stat(ts.MkAbs(args[1])); return err == nil }
	var done func() bool
	switch args[0] {
	case "exists":
		done = there
	case "written":
		done = func() bool { info, err := os.Stat(ts.MkAbs(args[1])); return err == nil && info.Size() > 0 }
	case "count":
		n, err := strconv.Atoi(args[3])
		ts.Check(err)
		done = func() bool { b, _ := os.ReadFile(ts.MkAbs(args[1])); return strings.Count(string(b), args[2]) >= n }
	case "gone":
		done = func() bool { return !there() }
	case "dead":
		done = func() bool {
			pids := []string{args[1]}
			if _, err := strconv.Atoi(args[1]); err != nil {
				pids = strings.Fields(ts.ReadFile(args[1]))
			}
			return len(pids) > 0 && !slices.ContainsFunc(pids, alive)
		}
	case "opened":
		pid := pidOf(ts, args[2])
		done = func() bool { return opened(pid, args[1]) }
	case "asleep":
		done = restful(pidOf(ts, args[1]))
	case "match":
		re := regexp.MustCompile("(?m)" + args[1])
		done = func() bool { b, _ := os.ReadFile(ts.MkAbs(args[2])); return re.Match(b) }
	default:
		ts.Fatalf("await %s?", args[0])
	}
	Poll(ts, strings.Join(args, " "), done)
}

// restful returns a function that reports whether a process does nothing: none of its
// threads runs in many looks in a row.
func restful(pid int) func() bool {
	const enough = 20
	looks := 0
	return func() bool {
		looks++
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, thread := range threads {
			stat, _ := os.ReadFile(thread)
			if _, state, _ := bytes.Cut(stat, []byte(") ")); !bytes.HasPrefix(state, []byte("S")) {
				looks = 0
			}
		}
		return looks >= enough
	}
}

// opened reports whether a process has a file of that name open.
func opened(pid int, name string) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if path, _ := os.Readlink(fd); filepath.Base(path) == name {
			return true
		}
	}
	return false
}

func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && !Dead(n)
}

// Dead reports whether a process is gone. A zombie is dead, since its new parent has not reaped it yet, unless threads
// of it still end (proc(5), num_threads).
func Dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return unix.Kill(pid, 0) == unix.ESRCH
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return string(f[0]) == "Z" && string(f[17]) == "1"
}

// cmdReap kills processes when the script ends: `reap PID...`.
func cmdReap(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) > 0, "reap PID...")
	for _, pid := range args {
		p, err := os.FindProcess(pidOf(ts, pid)) // a pidfd: never another process with the same pid
		ts.Check(err)
		ts.Defer(func() { _ = p.Kill() }) // it should be gone already
	}
}

// cmdWords sets variables from a file of words: `words FILE NAME...`.
func cmdWords(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "words FILE NAME...")
	words := strings.Fields(ts.ReadFile(args[0]))
	if len(words) != len(args)-1 {
		ts.Fatalf("%s has %d words, want %d", args[0], len(words), len(args)-1)
	}
	for i, name := range args[1:] {
		ts.Setenv(name, words[i])
	}
}
