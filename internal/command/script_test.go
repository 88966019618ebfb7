package command_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

// TestScripts runs the scripts in testdata/script. Each says in its first
// comment what a user sees; INBOX is the inbox that the commands are about.
//
//	turn SESSION PROMPT ACTIVE REPLY [FLAG...]   a Stop, as the client tells of it
//	event NAME SESSION PROMPT [MEMBER=TEXT...]   any other event
//	delivered TEXT, approved                     what the hook decided
//	status N COMMAND...                          a command and its exact status
//	queue LINE..., append FILE BYTES             what a producer writes
//	lines FILE N, json FILE LINE PATH VALUE      what is in the files
//	snapshot NAME, unchanged NAME                nothing was touched
//	start NAME SESSION PROMPT ACTIVE REPLY ...   a hook beside the script, then
//	waiting NAME, signal NAME TERM, finish NAME  what happens to it
//	run NAME COMMAND...                          any other command beside the script
//	await exists FILE, await dead PID, ...       no sleeping: a bounded wait
//	client NAME, later NAME EVENT ..., woken ... a session that is woken: see there
//
// PROMPT may be `-`: a client that has no prompt_id. With TRANSCRIPT set, turn
// writes that file as the client does; with MUTE=feedback, what the hook delivers
// never gets there, and with MUTE=all, nothing does; STAMP is what the client's clock shows.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"turn": cmdTurn, "event": cmdEvent, "says": cmdSays, "status": cmdStatus,
			"delivered": cmdDelivered, "approved": cmdApproved,
			"queue": cmdQueue, "append": cmdAppend, "write": cmdWrite, "times": cmdTimes,
			"lines": cmdLines, "json": cmdJSON, "same": cmdSame, "keeps": cmdKeeps, "texts": cmdTexts,
			"snapshot": cmdSnapshot, "unchanged": cmdUnchanged, "words": cmdWords, "reap": cmdReap,
			"start": cmdStart, "run": cmdRun, "waiting": cmdWaiting, "signal": cmdSignal, "finish": cmdFinish,
			"await": cmdAwait, "asuser": cmdAsUser, "fill": cmdFill,
			"client": cmdClient, "later": cmdLater, "waits": cmdWaits, "woken": cmdWoken, "takesup": cmdTakesUp,
			"backoff": cmdBackoff, "impostor": cmdImpostor, "fails": cmdFails,
		},
	})
}

func setUp(env *testscript.Env) error {
	launchers, err := filepath.Abs("testdata/launcher")
	if err != nil {
		return err
	}
	env.Setenv("INBOX", "inbox.jsonl")
	env.Setenv("LAUNCHER", launchers)
	env.Setenv("GORACE", os.Getenv("GORACE"))
	if os.Geteuid() != 0 {
		return nil
	}
	// A script may go on as a plain user, who has to reach its files.
	dir := env.WorkDir
	bin, err := exec.LookPath("heartbeat-stop")
	for _, path := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(bin))} {
		err = errors.Join(err, os.Chmod(path, 0o755))
	}
	return err
}

func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "userns":
		err := exec.Command("unshare", "-r", "sh", "-c", "echo 0 > /proc/sys/user/max_inotify_instances").Run()
		return err == nil, nil
	case "mounts":
		err := exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt").Run()
		return err == nil, nil
	case "proc":
		_, err := os.Stat("/proc/self/fdinfo")
		return err == nil, nil
	}
	return false, errors.New("unknown condition " + name)
}

// environment is what a command of the script gets: a TestScript only tells of
// the variables one asks it for.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "WORK", "GOCOVERDIR", "GORACE", "HEARTBEAT_INBOX", "CLAUDE_PID", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE", "STRICT", "HEARTBEAT_LAUNCHED",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// command is the hook, as the client starts it.
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

// execute runs a command to its end, and leaves its output to the script.
func execute(ts *testscript.TestScript, cmd *exec.Cmd) (status int) {
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

// statusOf is the exit status, or 128+n for an end by signal n. It never is 2.
func statusOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	}
	status := exitStatus(exit)
	if status == 2 {
		ts.Fatalf("exit status 2: the client would feed stderr to the model")
	}
	return status
}

// oneDecision reports whether a hook's stdout is what the client takes: nothing,
// or one JSON object.
func oneDecision(stdout []byte) bool {
	return len(stdout) == 0 || gjson.ValidBytes(stdout) && gjson.ParseBytes(stdout).IsObject()
}
