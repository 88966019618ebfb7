package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// hooks are those that scripts started and did not finish yet.
var hooks sync.Map // of "script's directory/name"

// background is a hook that runs beside its script.
type background struct {
	cmd         *exec.Cmd
	out, stderr bytes.Buffer
	done        chan error
}

func hookKey(ts *testscript.TestScript, name string) string { return ts.Getenv("WORK") + "/" + name }

// cmdStart starts a Stop hook: `start NAME SESSION PROMPT ACTIVE REPLY [FLAG...]`.
// HOOK may name a variant of the command.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 5, "start NAME SESSION PROMPT ACTIVE REPLY [FLAG...]")
	stdin, err := json.Marshal(stopInput(ts, args[1:]))
	ts.Check(err)
	b := &background{done: make(chan error, 1)}
	b.cmd = command(ts, cmp.Or(ts.Getenv("HOOK"), "heartbeat-stop"), append([]string{"--inbox", ts.Getenv("INBOX")}, args[5:]...)...)
	b.cmd.Stdin, b.cmd.Stdout, b.cmd.Stderr = bytes.NewReader(stdin), &b.out, &b.stderr
	ts.Check(b.cmd.Start())
	go func() { b.done <- b.cmd.Wait() }()
	if _, twice := hooks.LoadOrStore(hookKey(ts, args[0]), b); twice {
		ts.Fatalf("%s is started already", args[0])
	}
	ts.Defer(func() {
		if _, unfinished := hooks.LoadAndDelete(hookKey(ts, args[0])); unfinished {
			_ = b.cmd.Process.Kill() // best effort: the script failed before finish
			<-b.done
		}
	})
}

func started(ts *testscript.TestScript, name string) *background {
	b, ok := hooks.Load(hookKey(ts, name))
	if !ok {
		ts.Fatalf("%s is not started", name)
	}
	return b.(*background)
}

// pidOf is the process of a hook that was started, or the number itself.
func pidOf(ts *testscript.TestScript, name string) int {
	if pid, err := strconv.Atoi(name); err == nil {
		return pid
	}
	return started(ts, name).cmd.Process.Pid
}

// cmdWaiting returns once a hook waits for the inbox to change: `waiting NAME`.
// NAME may be a process id.
func cmdWaiting(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1, "waiting NAME")
	pid := pidOf(ts, args[0])
	poll(ts, "a watch of "+args[0], func() bool { return watches(pid) })
}

// watches reports whether a process follows a directory by the kernel's events.
func watches(pid int) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	for _, fd := range fds {
		if b, _ := os.ReadFile(fd); bytes.Contains(b, []byte("inotify wd:")) {
			return true
		}
	}
	return false
}

// cmdSignal signals a hook: `signal NAME TERM|KILL|INT|HUP|STOP|CONT`. NAME may be
// a process id.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "signal NAME SIGNAL")
	s := map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}[args[1]]
	ts.Check(syscall.Kill(pidOf(ts, args[0]), s))
}

// cmdFinish waits for a hook's end: `finish NAME [STATUS]`.
func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1 || len(args) == 2, "finish NAME [STATUS]")
	b, want := started(ts, args[0]), 0
	if len(args) == 2 {
		var err error
		want, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	select {
	case err := <-b.done:
		hooks.Delete(hookKey(ts, args[0]))
		status := statusOf(ts, err)
		output(ts, b.out.Bytes(), b.stderr.Bytes())
		decided(ts, b.out.Bytes(), status, want)
	case <-time.After(patience):
		ts.Fatalf("%s still runs", args[0])
	}
}

// patience bounds every wait. No test passes because of it.
const patience = 30 * time.Second

func poll(ts *testscript.TestScript, what string, done func() bool) {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %s", what)
		}
	}
}

// cmdAwait returns once something is so: `await exists FILE`, `await gone FILE`,
// `await dead PID`, `await match REGEXP FILE`, `await opened FILE HOOK`.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "await exists|gone|dead|match|opened ...")
	there := func() bool { _, err := os.Stat(ts.MkAbs(args[1])); return err == nil }
	var done func() bool
	switch args[0] {
	case "exists":
		done = there
	case "gone":
		done = func() bool { return !there() }
	case "dead":
		done = func() bool { return dead(args[1]) }
	case "opened":
		pid := pidOf(ts, args[2])
		done = func() bool { return opened(pid, args[1]) }
	case "match":
		re := regexp.MustCompile("(?m)" + args[1])
		done = func() bool { b, _ := os.ReadFile(ts.MkAbs(args[2])); return re.Match(b) }
	default:
		ts.Fatalf("await %s?", args[0])
	}
	poll(ts, strings.Join(args, " "), done)
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

// dead reports whether a process is gone, or only waits to be reaped.
func dead(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(state, []byte("Z"))
}

// cmdReap ends processes with the script, however that ends: `reap PID...`.
func cmdReap(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) > 0, "reap PID...")
	for _, pid := range args {
		p, err := os.FindProcess(pidOf(ts, pid)) // holds on to this very process
		ts.Check(err)
		ts.Defer(func() { _ = p.Kill() }) // it should be gone
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
