package script

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/inbox"
)

// cmdClient starts a process in place of an interactive client. The hooks of the next
// commands are its: `client NAME`.
func cmdClient(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1, "client NAME")
	beside(ts, args[0], &background{cmd: exec.Command("sleep", "600")})
	ts.Setenv("CLAUDE_PID", strconv.Itoa(started(ts, args[0]).cmd.Process.Pid))
	ts.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
}

// cmdLater starts a hook in the background, which may wake the session later: `later
// NAME EVENT SESSION PROMPT [MEMBER=TEXT...] [-- FLAG...]`. waiting, signal and finish
// apply to it too.
func cmdLater(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 4, "later NAME EVENT SESSION PROMPT [MEMBER=TEXT...] [-- FLAG...]")
	stdin, flags := eventInput(ts, args[1:])
	hook := cmp.Or(ts.Getenv("PROGRAM"), "heartbeat-stop")
	b := &background{cmd: command(ts, hook, append([]string{"--inbox", ts.Getenv("INBOX"), "--rewake"}, flags...)...)}
	b.cmd.Stdin = bytes.NewReader(stdin)
	beside(ts, args[0], b)
}

// eventInput returns the client's input for an event, and the flags of its hook.
func eventInput(ts *testscript.TestScript, args []string) (stdin []byte, flags []string) {
	in := input(ts, args[0], args[1], args[2])
	if args[0] == "Stop" {
		in["stop_hook_active"] = false
	}
	for i, arg := range args[3:] {
		if arg == "--" {
			flags = args[3+i+1:]
			break
		}
		name, text, _ := strings.Cut(arg, "=")
		in[name] = text
		if name == "stop_hook_active" {
			in[name] = text == "true"
		}
	}
	stdin, err := json.Marshal(in)
	ts.Check(err)
	return stdin, flags
}

// cmdWaits waits until a hook is recorded as the inbox's waiter: `waits NAME`.
func cmdWaits(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 1, "waits NAME")
	pid := pidOf(ts, args[0])
	Poll(ts, args[0]+" to wait", func() bool {
		v := viewOf(ts)
		defer func() { ts.Check(v.Close()) }()
		w, err := v.Waiter()
		ts.Check(err)
		return w != nil && w.PID == pid && !v.Settling()
	})
}

func viewOf(ts *testscript.TestScript) *inbox.View {
	box, err := inbox.Open(ts.MkAbs(ts.Getenv("INBOX")), inbox.Options{})
	ts.Check(err)
	v, err := box.View()
	ts.Check(err)
	return v
}

// cmdWoken waits for a hook to wake its session: `woken NAME [TEXT [PREAMBLE]]`. TEXT
// may be JSON. Without PREAMBLE the default one is expected; each contains the mark of
// the delivery. PROMPT is then the prompt that the client makes of it.
func cmdWoken(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 1 && len(args) <= 3, "woken NAME [TEXT [PREAMBLE]]")
	stdout, stderr := ended(ts, args[0], 2)
	ts.Setenv("PROMPT", announced(stderr))
	text := strings.Join(args[1:min(2, len(args))], "")
	var decoded string
	if json.Unmarshal([]byte(text), &decoded) == nil {
		text = decoded
	}
	said, whole := strings.CutSuffix(stderr, text+"\n")
	switch {
	case stdout != "":
		ts.Fatalf("stdout is not empty: %q", stdout)
	case len(args) == 1:
		if !ours.MatchString(strings.SplitAfterN(stderr, "\n\n", 2)[0]) {
			ts.Fatalf("it woke with %q", stderr)
		}
	case !whole:
		ts.Fatalf("it woke with %q, want %q", stderr, text)
	case len(args) == 2 && !ours.MatchString(said):
		ts.Fatalf("before the text stands %q", said)
	case len(args) == 3 && (!mark.MatchString(said) || mark.FindStringSubmatch(said)[1] != args[2]):
		ts.Fatalf("before the text stands %q, want %q", said, args[2])
	}
}

// ours matches the default preamble.
var ours = regexp.MustCompile(`^This is the next request .*\(heartbeat, entry [0-9a-f]{12}, delivery [a-z2-7]{8}\).*:\n\n$`)

// mark matches a preamble of the operator's own with the mark of the delivery.
var mark = regexp.MustCompile(`^(.*?) ?\(heartbeat, entry [0-9a-f]{12}, delivery [a-z2-7]{8}\)\n\n$`)

// announced returns the prompt in which the client passes on what woke it. The client
// escapes what would close its own tag.
func announced(stderr string) string {
	return "<task-notification>\n<summary>A background hook of the event Stop</summary>\n</task-notification>\n" +
		"<system-reminder>\nStop hook blocking error from command \"Stop\": " +
		strings.ReplaceAll(stderr, "</system-reminder", "&lt;/system-reminder") + "</system-reminder>"
}

// ended waits for the end of what was started, and checks its exit status.
func ended(ts *testscript.TestScript, name string, want int) (stdout, stderr string) {
	b, status := started(ts, name), 0
	select {
	case err := <-b.done:
		running.Delete(runningKey(ts, name))
		if err != nil {
			status = err.(*exec.ExitError).ExitCode()
		}
	case <-time.After(Patience):
		ts.Fatalf("%s still runs", name)
	}
	output(ts, b.out.Bytes(), b.stderr.Bytes())
	if status != want {
		ts.Fatalf("%s: exit status %d, want %d: %s", name, status, want, b.stderr.Bytes())
	}
	return b.out.String(), b.stderr.String()
}

// cmdTakesUp runs the hook at the prompt with what woke the session: `takesup SESSION
// PROMPT`.
func cmdTakesUp(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "takesup SESSION PROMPT")
	in := input(ts, "UserPromptSubmit", args[0], args[1])
	in["prompt"] = ts.Getenv("PROMPT")
	fire(ts, in, []string{"--rewake"})
}

// cmdBackoff checks the back-off that is in force: `backoff STREAK SHORTEST LONGEST`,
// in seconds, or `! backoff`.
func cmdBackoff(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, false, neg && len(args) == 0 || !neg && len(args) == 3, "backoff STREAK SHORTEST LONGEST, or ! backoff")
	v := viewOf(ts)
	defer func() { ts.Check(v.Close()) }()
	b, err := v.Holds().Backoff()
	ts.Check(err)
	if neg || b == nil {
		if neg != (b == nil) {
			ts.Fatalf("backing off: %+v", b)
		}
		return
	}
	length := time.Duration(0)
	for _, e := range records(ts, ".events.jsonl") {
		if e.Get("event").Str == string(inbox.EventBackingOff) {
			length = e.Get("until").Time().Sub(e.Get("at").Time())
		}
	}
	shortest, err1 := strconv.ParseFloat(args[1], 64)
	longest, err2 := strconv.ParseFloat(args[2], 64)
	if err1 != nil || err2 != nil || length.Seconds() < shortest || length.Seconds() > longest {
		ts.Fatalf("a back-off of %v, want one of %s to %s seconds", length, args[1], args[2])
	}
	if fmt.Sprint(b.Streak) != args[0] {
		ts.Fatalf("the streak is %d, want %s", b.Streak, args[0])
	}
}

// cmdImpostor changes the recorded start of all sessions' processes, as if other
// processes had got their pids: `impostor`.
func cmdImpostor(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 0, "impostor")
	path := ts.MkAbs(".inbox-journal")
	journal, err := os.ReadFile(path)
	ts.Check(err)
	lines := bytes.SplitAfter(journal, []byte("\n"))
	started := regexp.MustCompile(`"process_start":[0-9]`)
	for i, l := range lines {
		sum, body, whole := bytes.Cut(bytes.TrimSuffix(l, []byte("\n")), []byte(" "))
		if !whole || len(sum) != 16 {
			continue
		}
		body = started.ReplaceAllFunc(body, func(b []byte) []byte {
			other := bytes.Clone(b)
			other[len(b)-1] = '1' + (b[len(b)-1]-'0')%9
			return other
		})
		right := sha256.Sum256(body)
		lines[i] = fmt.Appendf(nil, "%.16s %s\n", hex.EncodeToString(right[:]), body)
	}
	ts.Check(os.WriteFile(path, bytes.Join(lines, nil), 0o600))
}

// cmdFails reports N turns in a row that ended in an error, in a session whose process
// is gone: `fails N ERROR`.
func cmdFails(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "fails N ERROR")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		stdin, _ := eventInput(ts, []string{"StopFailure", "s1", "p" + strconv.Itoa(i), "error=" + args[1]})
		cmd := command(ts, "heartbeat-stop", "--inbox", ts.Getenv("INBOX"), "--rewake")
		cmd.Stdin = bytes.NewReader(stdin)
		if got := execute(ts, cmd); got != "0" {
			ts.Fatalf("exit status %s", got)
		}
	}
}
