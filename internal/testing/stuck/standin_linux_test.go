package stuck

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/script"
)

// What a process of these tests is told in its environment.
const (
	roleVariable = "HEARTBEAT_TEST_ROLE"
	dirVariable  = "HEARTBEAT_TEST_DIR" // of the rig
)

// commands is the folder of the commands as they are shipped.
var commands string

// TestMain makes the test binary the client, too, and what holds a lock.
func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	switch os.Getenv(roleVariable) {
	case "claude":
		if slices.Contains(os.Args, "--print") {
			os.Exit(agent.InPrint(os.Args[1:], func(p agent.Printed) string { return act(dir, p.Text) }))
		}
		os.Exit(agent.InTerminal(os.Args[1:], func(text string) string { return act(dir, text) }))
	case "session":
		os.Exit(session(dir, os.Args[1:]))
	case "lock":
		if _, err := disk.AcquireLock(context.Background(), os.Args[1], script.Patience); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	build.Main(m, &commands)
}

// session is one whose settings a person has wired with the hook in args.
func session(dir string, hook []string) int {
	quit := make(chan struct{})
	go func() {
		for ; !there(dir, "quit"); time.Sleep(poll) {
		}
		close(quit)
	}()
	a := &agent.Agent{
		Hook: hook, Answer: func(text string) string { return act(dir, text) }, Sits: func() { note(dir, "sits", ""); <-quit },
		SessionID: "5e55104e-0000-4000-8000-" + fmt.Sprintf("%012d", os.Getpid()),
		Stderr:    func(line string) { fmt.Fprintln(os.Stderr, line) },
		Env:       append(os.Environ(), "CLAUDE_PID="+strconv.Itoa(os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR="+dir),
	}
	a.Transcript = filepath.Join(dir, "transcripts", a.SessionID+".jsonl")
	var err error
	if slices.Contains(hook, "--rewake") {
		err = a.RunWoken(context.Background(), "begin", quit)
	} else {
		err = a.Run(context.Background(), "begin")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var tags = regexp.MustCompile(`\[e\d\]`)

// act is what the model and the client do with a text: what the rig said last.
//
//	answer           it answers
//	hang             nothing, until the rig says something else
//	ask KIND: TEXT   a person is asked first; then it hangs
//	fail NAME: TEXT  the turn ends in that error
//	die              the client is killed
//	spend N          it answers, and that takes N tokens
//	tool             a tool is asked for, which runs until the rig says something else
func act(dir, text string) string {
	tag := tags.FindString(text)
	if tag == "" {
		note(dir, "begun", strconv.Itoa(os.Getpid()))
		return "ready"
	}
	note(dir, "asked", tag+" "+strconv.Itoa(os.Getpid()))
	for ; ; time.Sleep(poll) {
		what, rest, _ := strings.Cut(said(dir), " ")
		switch what {
		case "hang":
			continue
		case "ask":
			if there(dir, "has-asked") {
				continue
			}
			note(dir, "has-asked", rest)
			return agent.Asking + rest
		case "fail":
			return agent.Failing + rest
		case "die":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			script.Forever()
		case "spend":
			spends(dir, rest, []any{})
		case "tool":
			if !there(dir, "runs") {
				spends(dir, "1", []any{map[string]any{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": map[string]any{"command": "make"}}})
				note(dir, "runs", tag)
			}
			continue
		}
		return "answer " + tag
	}
}

// said is what the rig said last.
func said(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "act"))
	return cmp.Or(strings.TrimSpace(string(text)), "answer")
}

// spends adds an answer of the model to the session's transcript, which is the only one.
func spends(dir, tokens string, content []any) {
	all, _ := filepath.Glob(filepath.Join(dir, "transcripts", "*.jsonl"))
	n, _ := strconv.Atoi(tokens)
	line, err := json.Marshal(map[string]any{
		"type": "assistant", "uuid": "u" + strconv.Itoa(os.Getpid()), "timestamp": time.Now().UTC(),
		"message": map[string]any{"id": "m" + strconv.Itoa(os.Getpid()), "role": "assistant", "model": "claude-opus-5-5", "usage": map[string]int{"input_tokens": n}, "content": content},
	})
	if err != nil || len(all) == 0 {
		fmt.Fprintln(os.Stderr, "no transcript", err)
		os.Exit(1)
	}
	note(dir, filepath.Join("transcripts", filepath.Base(all[len(all)-1])), string(line))
}

func there(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// note adds a line to a file of the rig.
func note(dir, name, line string) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		_ = f.Close() // the line is written
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// poll is how often it is looked whether something is so.
const poll = 3 * time.Millisecond
