package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"heartbeat/internal/words"
)

// Turn is what a check gets as JSON on its standard input and in its environment.
type Turn struct {
	Name     string                     `json:"check"`
	EntryID  string                     `json:"entry_id"`
	ID       string                     `json:"id,omitempty"`
	Prompt   string                     `json:"prompt"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	Reply    string                     `json:"reply"`
	Session  string                     `json:"session_id,omitempty"`
	Attempt  int                        `json:"attempt"`
	Try      int                        `json:"try"` // counted from 1
}

// Verdict is the result of a check.
type Verdict int

// The verdicts.
const (
	Passed Verdict = iota + 1
	Failed         // the work is not done
	Unable         // the check itself could not be run
)

// Outcome is the result of the checks of one turn.
type Outcome struct {
	Verdict
	Name    string        // of the check that decided, or of all if all passed
	Why     string        // in words, unless all passed
	Took    time.Duration // of all of them together
	Tail    string        // the end of what the deciding check printed
	Lacking bool          // the wiring has no such check, so that it is useless to try again
}

// String returns the result in words, with the last line that was printed.
func (o Outcome) String() string {
	said := Title(o.Name) + map[Verdict]string{Passed: " passed", Failed: " failed: ", Unable: " could not be run: "}[o.Verdict] + words.Line(o.Why)
	if last := o.Tail[strings.LastIndexByte(o.Tail, '\n')+1:]; last != "" {
		said += ": " + words.Brief(last)
	}
	return said
}

// Title returns what a person calls the check of that name.
func Title(name string) string {
	if name == Default {
		return "check"
	}
	return "check " + name
}

const (
	MaxTail = 4 << 10 // how many bytes of a check's output are kept
	// maxVariable is the longest text in a check's environment, in bytes. Standard input has the whole text.
	maxVariable = 32 << 10
	tryLater    = 75 // the status with which a command says that it cannot do its work now
	// bySignal is what a shell adds to the signal that ended its command. A sum beyond lastSignal is a program's own status.
	bySignal, lastSignal = 128, 64
)

// Run runs the checks of these names in order in the folder dir, up to the first that does not pass. Once ctx is done
// it ends the check that runs.
func (s *Set) Run(ctx context.Context, names []string, t Turn, dir string) Outcome {
	began := time.Now()
	last := Outcome{Verdict: Passed}
	for _, name := range names {
		t.Name = name
		line := s.line(name)
		if line == "" {
			last = Outcome{Verdict: Unable, Why: Unknown(name, s.Names()).Error(), Lacking: true}
		} else {
			last = run(ctx, line, s.Timeout, t, dir)
		}
		if last.Name = name; last.Verdict != Passed {
			break
		}
	}
	if last.Verdict == Passed {
		last.Name = strings.Join(names, ",")
	}
	last.Took = time.Since(began)
	return last
}

func run(ctx context.Context, line string, limit time.Duration, t Turn, dir string) Outcome {
	input, err := json.Marshal(t)
	if err != nil {
		return Outcome{Verdict: Unable, Why: err.Error()}
	}
	if limit <= 0 {
		limit = DefaultTimeout
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(timed, "/bin/sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Kill the whole group, with what the command left in the background.
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	tail := &words.Tail{Most: 2 * MaxTail} // readable removes some of it
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, bytes.NewReader(append(input, '\n')), tail, tail
	cmd.Env = append(os.Environ(), // for a command that reads no JSON
		"HEARTBEAT_CHECK="+t.Name, "HEARTBEAT_ENTRY_ID="+t.EntryID, "HEARTBEAT_ID="+variable(t.ID),
		"HEARTBEAT_PROMPT="+variable(t.Prompt), "HEARTBEAT_REPLY="+variable(t.Reply),
		"HEARTBEAT_ATTEMPT="+strconv.Itoa(t.Attempt), "HEARTBEAT_TRY="+strconv.Itoa(t.Try))
	if err := cmd.Start(); err != nil {
		return Outcome{Verdict: Unable, Why: fmt.Sprintf("it could not be started in %s: %v", dir, err)}
	}
	gone := guard(cmd.Process.Pid)
	err = cmd.Wait()
	_ = kill()
	gone()
	o := Outcome{Verdict: Unable, Tail: readable(tail)}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		o.Why = "it was ended with its hook"
	case timed.Err() != nil:
		o.Why = fmt.Sprintf("it took longer than %s (--check-timeout)", words.Took(limit))
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // a leftover process holds its output open
		o.Verdict = Passed
	case !errors.As(err, &ended):
		o.Why = err.Error()
	case ended.ExitCode() < 0, ended.ExitCode() > bySignal && ended.ExitCode() <= bySignal+lastSignal:
		o.Why = "a signal ended it (" + strings.TrimPrefix(ended.Error(), "signal: ") + ")"
	case ended.ExitCode() == tryLater:
		o.Why = "exit status 75: it asks to be run again later"
	default:
		o.Verdict, o.Why = Failed, fmt.Sprintf("exit status %d", ended.ExitCode())
	}
	return o
}

// guard has a process group killed when this process ends, even by a kill: a shell in the group reads a pipe that only
// this process holds open. After the group was killed, the returned function waits for that shell.
func guard(group int) (gone func()) {
	cmd := exec.Command("/bin/sh", "-c", "read -r nothing; kill -KILL 0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	held, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return func() {} // the check matters more
	}
	return func() { _, _ = cmd.Wait(), held.Close() }
}

// variable returns a text in the form that the environment can hold.
func variable(text string) string {
	if len(text) > maxVariable {
		text = text[:maxVariable]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// readable returns the end of what a check printed, as lines fit for a terminal and a model.
func readable(kept *words.Tail) string {
	text := words.Plain(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(kept.String()))
	text = text[max(0, len(text)-MaxTail):]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return strings.TrimSpace(text)
}
