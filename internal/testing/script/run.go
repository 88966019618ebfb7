package script

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/babysitter"
	"heartbeat/internal/testing/long"
)

// Main is the end of a TestMain: it makes the test binary one of the programs if a
// script runs it by that name, and runs the tests otherwise.
func Main(m testscript.TestingM, programs map[string]func()) {
	if os.Getenv("GORACE") == "" {
		// The race detector makes each process sleep for a second at its end.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // without it the tests only take longer
	}
	testscript.Main(waiting{m}, programs)
}

// Run is m.Run for tests whose programs mostly wait: more of them run at a time than
// there are processors, and none ignores a signal.
func Run(m testscript.TestingM) int { return waiting{m}.Run() }

type waiting struct{ testscript.TestingM }

func (m waiting) Run() int {
	// What -parallel says counts: it is read after this.
	_ = flag.Set("test.parallel", strconv.Itoa(max(12, 2*runtime.GOMAXPROCS(0))))
	// Signals are ignored under nohup and in the background of a script, and some of the
	// tests wait for a signal's effect.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) { // here it stays without effect, since nobody reads it
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	return m.TestingM.Run()
}

// Params runs the scripts in testdata/script, with setUp for each.
func Params(setUp func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			command, sdk, _ := babysitter.Find() // the condition babysitter says whether it was found
			env.Setenv("BABYSITTER", command)
			env.Setenv("SDK", sdk)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".tmp", "state"))
			return setUp(env)
		},
		Condition: condition,
		Cmds:      Commands(),
	}
}

// Command is the type of a script's command.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// Commands returns the commands that all scripts have.
func Commands() map[string]Command {
	return map[string]Command{
		"turn": cmdTurn, "event": cmdEvent, "says": cmdSays, "request": cmdRequest, "status": cmdStatus,
		"delivered": cmdDelivered, "approved": cmdApproved,
		"queue": cmdQueue, "append": cmdAppend, "write": cmdWrite, "times": cmdTimes,
		"lines": cmdLines, "json": cmdJSON, "same": cmdSame, "keeps": cmdKeeps, "texts": cmdTexts,
		"snapshot": cmdSnapshot, "unchanged": cmdUnchanged, "words": cmdWords, "reap": cmdReap,
		"start": cmdStart, "run": cmdRun, "waiting": cmdWaiting, "signal": cmdSignal, "finish": cmdFinish,
		"await": cmdAwait, "asuser": cmdAsUser, "fill": cmdFill,
		"client": cmdClient, "later": cmdLater, "waits": cmdWaits, "woken": cmdWoken, "takesup": cmdTakesUp,
		"backoff": cmdBackoff, "impostor": cmdImpostor, "fails": cmdFails,
	}
}

// condition decides the conditions of all scripts: [long] (the exhaustive rounds), [root],
// [userns] (may make user namespaces), [mounts] (may mount in one), [proc] (has /proc),
// [babysitter] (has babysitter's command).
func condition(name string) (bool, error) {
	switch name {
	case "long":
		return long.Wanted(), nil
	case "root":
		return os.Geteuid() == 0, nil
	case "userns":
		err := exec.Command("unshare", "-r", "sh", "-c", "echo 0 > /proc/sys/user/max_inotify_instances").Run()
		return err == nil, nil
	case "mounts":
		err := exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt && mount --bind /dev/null /dev/ptmx").Run()
		return err == nil, nil
	case "proc":
		_, err := os.Stat("/proc/self/fdinfo")
		return err == nil, nil
	case "babysitter":
		_, _, found := babysitter.Find()
		return found, nil
	}
	return false, errors.New("unknown condition " + name)
}

// environment returns what a program that a script starts gets. It lists the names,
// since a TestScript only returns variables by name.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "WORK", "GOCOVERDIR", "GORACE", "HEARTBEAT_INBOX", "CLAUDE_PID", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE", "STRICT", "HEARTBEAT_LAUNCHED", "XDG_RUNTIME_DIR", "CI", "KEPT",
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "NATS_URL", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// command returns a program that the script's PATH has, to be started.
func command(ts *testscript.TestScript, name string, args ...string) *exec.Cmd {
	path := name
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				path = filepath.Join(dir, name)
				break
			}
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	return cmd
}

// execute runs a command to its end and makes its output the script's.
func execute(ts *testscript.TestScript, cmd *exec.Cmd) (status string) {
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	status = statusOf(ts, cmd.Run())
	output(ts, out.Bytes(), stderr.Bytes())
	return status
}

func output(ts *testscript.TestScript, stdout, stderr []byte) {
	_, err := ts.Stdout().Write(stdout)
	ts.Check(err)
	_, err = ts.Stderr().Write(stderr)
	ts.Check(err)
}

// statusOf returns a program's exit status, or the name of the signal that ended it:
// "143" and "TERM" are not the same. Status 2 fails the script, since no command of
// ours may end with it: the client would feed stderr to the model.
func statusOf(ts *testscript.TestScript, err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case exit.ExitCode() == 2:
		ts.Fatalf("exit status 2: the client would feed stderr to the model")
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return strings.TrimPrefix(unix.SignalName(w.Signal()), "SIG")
	}
	return strconv.Itoa(exit.ExitCode())
}

// cmdStatus runs a command and checks its exit status: `status N COMMAND...`.
// N is KILL, TERM, ... if a signal ends it.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "status N COMMAND...")
	if got := statusOf(ts, ts.Exec(args[1], args[2:]...)); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// cmdAsUser runs a command as a plain user: `asuser STATUS COMMAND...`.
func cmdAsUser(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 2, "asuser STATUS COMMAND...")
	cmd := command(ts, args[1], args[2:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if got := execute(ts, cmd); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

const nobody = 65534

func plain(ts *testscript.TestScript, neg, ok bool, usage string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

// equals compares with a text, or with the JSON of a value.
func equals(r gjson.Result, want string) bool {
	if r.Exists() && (r.String() == want || r.Raw == want) {
		return true
	}
	return r.Type == gjson.String && gjson.Valid(want) && gjson.Parse(want).Type == gjson.String &&
		gjson.Parse(want).String() == r.String()
}

// oneDecision reports whether a hook's stdout is something that the client accepts:
// nothing, or one JSON object.
func oneDecision(stdout []byte) bool {
	return len(stdout) == 0 || gjson.ValidBytes(stdout) && gjson.ParseBytes(stdout).IsObject()
}

// Forever does not return. A program without cgo in which nothing ever happens again would
// be ended by Go itself.
func Forever() {
	for {
		time.Sleep(time.Hour)
	}
}
