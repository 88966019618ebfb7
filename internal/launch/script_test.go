package launch_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/babysitter"
)

// patience bounds every wait for something that takes a moment.
const patience = 30 * time.Second

// TestScripts runs the scripts in testdata/script, with stdin at its end:
//
//	status N COMMAND...           a command and its exact status
//	start NAME COMMAND...         one beside the script, then
//	signal NAME TERM              what happens to it
//	finish NAME N                 its end and exact status
//	await exists|gone FILE        a bounded wait for a file
//	await dead FILE               the same for the processes whose numbers it holds
//	await lines FILE TEXT N       the same for so many lines with a text
//	reap NAME                     the end of one that was killed
//	await guarded FILE            the same for the guardian of the session whose mark it holds
//	await nobody FILE             and for the end of all with that mark, and of their guardian
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			screens, err := filepath.Abs("../../testdata/screens")
			env.Setenv("SCREENS", screens)
			babysitter, sdk, _ := babysitter.Find() // see the condition
			env.Setenv("BABYSITTER", babysitter)
			env.Setenv("SDK", sdk)
			return err
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "babysitter":
				_, _, ok := babysitter.Find()
				return ok, nil
			case "mounts":
				return exec.Command("unshare", "-rm", "mount", "--bind", "/dev/null", "/dev/ptmx").Run() == nil, nil
			case "root":
				return os.Geteuid() == 0, nil
			case "userns":
				return exec.Command("unshare", "-r", "sh", "-c", "echo 0 > /proc/sys/user/max_inotify_instances").Run() == nil, nil
			}
			return false, errors.New("unknown condition " + name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": cmdStatus, "start": cmdStart, "signal": cmdSignal, "finish": cmdFinish, "await": cmdAwait,
			"reap": cmdReap,
		},
	})
}

// beside is a command that runs beside the script.
type beside struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func command(ts *testscript.TestScript, args []string) *beside {
	path := args[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil && !strings.Contains(path, "/") {
			path = filepath.Join(dir, path)
		}
	}
	b := &beside{Cmd: exec.Command(path, args[1:]...)}
	b.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "WORK", "GORACE", "GOCOVERDIR", "CI", "CLAUDECODE", "CLAUDE_PID", "HEARTBEAT_INBOX", "KEPT", "NOTIFY_SOCKET", "WATCHDOG_USEC"} {
		if v := ts.Getenv(name); v != "" {
			b.Env = append(b.Env, name+"="+v)
		}
	}
	b.Stdout, b.Stderr = &b.out, &b.err
	return b
}

func (b *beside) finish(ts *testscript.TestScript, want string) {
	err := b.Wait()
	_, _ = ts.Stdout().Write(b.out.Bytes()) // into memory
	_, _ = ts.Stderr().Write(b.err.Bytes())
	if got := strconv.Itoa(statusOf(ts, err)); got != want {
		ts.Fatalf("exit status %s, want %s\n%s", got, want, b.err.String())
	}
}

func statusOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case exit.Sys().(syscall.WaitStatus).Signaled():
		ts.Fatalf("the launcher itself died: %v", err)
	}
	return exit.ExitCode()
}

func cmdStatus(ts *testscript.TestScript, _ bool, args []string) {
	b := command(ts, args[1:])
	ts.Check(b.Start())
	b.finish(ts, args[0])
}

func cmdStart(ts *testscript.TestScript, _ bool, args []string) {
	b := command(ts, args[1:])
	ts.Check(b.Start())
	ts.Defer(func() { _ = b.Process.Kill() }) // it has ended, unless the script failed
	running(ts)[args[0]] = b
}

// processes are those of each script; scripts run side by side.
var (
	processes   = map[*testscript.TestScript]map[string]*beside{}
	processesMu sync.Mutex
)

func running(ts *testscript.TestScript) map[string]*beside {
	processesMu.Lock()
	defer processesMu.Unlock()
	if processes[ts] == nil {
		processes[ts] = map[string]*beside{}
	}
	return processes[ts]
}

func cmdSignal(ts *testscript.TestScript, _ bool, args []string) {
	sig := unix.SignalNum("SIG" + args[1])
	if sig == 0 {
		ts.Fatalf("no signal %s", args[1])
	}
	ts.Check(running(ts)[args[0]].Process.Signal(sig))
}

func cmdFinish(ts *testscript.TestScript, _ bool, args []string) {
	running(ts)[args[0]].finish(ts, args[1])
}

func cmdReap(ts *testscript.TestScript, _ bool, args []string) {
	_ = running(ts)[args[0]].Wait() // it was killed
}

func cmdAwait(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[1])
	is := map[string]func() bool{
		"exists": func() bool { info, err := os.Stat(path); return err == nil && info.Size() > 0 },
		"gone":   func() bool { _, err := os.Stat(path); return err != nil },
		"lines": func() bool {
			text, _ := os.ReadFile(path) // it may come yet
			return len(args) == 4 && strconv.Itoa(strings.Count(string(text), args[2])) >= args[3]
		},
		"dead": func() bool {
			lines := strings.Fields(ts.ReadFile(args[1]))
			return len(lines) > 0 && !slices.ContainsFunc(lines, func(line string) bool {
				pid, err := strconv.Atoi(line)
				ts.Check(err)
				return !dead(pid)
			})
		},
		"guarded": func() bool { return guardianOf(mark(ts, args[1])) != 0 },
		"nobody": func() bool {
			mark := mark(ts, args[1])
			return guardianOf(mark) == 0 && len(processesWith("environ", mark)) == 0
		},
	}[args[0]]
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			ts.Fatalf("in vain: await %s", strings.Join(args, " "))
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}

// dead counts a zombie as one: whoever it fell to has not waited for it yet.
func dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return unix.Kill(pid, 0) == unix.ESRCH
	}
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}
