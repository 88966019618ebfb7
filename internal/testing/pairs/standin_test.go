package pairs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
)

// What a process of these tests is told in its environment.
const (
	roleVariable = "HEARTBEAT_TEST_ROLE"
	dirVariable  = "HEARTBEAT_TEST_DIR"  // of the rig
	waitVariable = "HEARTBEAT_TEST_WAIT" // the launcher's client answers its first prompt once it is told to
)

// commands is the folder of the commands as they are shipped.
var commands string

// TestMain makes the test binary the client, too: one that a launcher or a host starts, or
// one whose settings a person has wired.
func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	switch os.Getenv(roleVariable) {
	case "claude":
		if slices.Contains(os.Args, "--print") {
			os.Exit(agent.InPrint(os.Args[1:], func(p agent.Printed) string { return answer(dir, p.Text) }))
		}
		os.Exit(agent.InTerminal(os.Args[1:], func(text string) string { return answer(dir, text) }))
	case "session":
		os.Exit(session(dir, os.Args[1], os.Args[2], os.Args[3:]))
	}
	build.Main(m, &commands)
}

// The kinds of sessions whose settings a person has wired.
const (
	printing    = "claude -p"
	interactive = "interactive"
	rewake      = "rewake"
	persisting  = "persist"
)

// session is such a session. It tells what its hooks say on stderr, and each of its Stop
// hooks in a file; id is "" for a new one.
func session(dir, kind, id string, hook []string) int {
	me := strconv.Itoa(os.Getpid())
	entrypoint := "cli"
	a := &agent.Agent{
		Hook: hook, SessionID: id, Answer: func(text string) string { return answer(dir, text) },
		Started: func(event string, p *os.Process) {
			if event == "Stop" {
				note(dir, "stop-"+me, strconv.Itoa(p.Pid))
			}
		},
		Stderr: func(line string) { fmt.Fprintln(os.Stderr, line) },
		Sits: func() {
			note(dir, "sits-"+me, "")
			await(filepath.Join(dir, "quit"))
		},
	}
	if kind == printing {
		a.Sits, entrypoint = nil, "sdk-cli"
	}
	a.Env = append(os.Environ(), "CLAUDE_PID="+me, "CLAUDE_CODE_ENTRYPOINT="+entrypoint, "CLAUDE_PROJECT_DIR="+dir)
	var err error
	if kind == rewake {
		quit := make(chan struct{})
		go func() { await(filepath.Join(dir, "quit")); close(quit) }()
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

// answer is what the model says. It notes who was asked what, and keeps the first who was
// asked about the first entry waiting.
func answer(dir, text string) string {
	tag := tags.FindString(text)
	if tag == "" {
		note(dir, "begun", strconv.Itoa(os.Getpid()))
		if os.Getenv(roleVariable) == "claude" && os.Getenv(waitVariable) != "" {
			await(filepath.Join(dir, "begin"))
		}
		return "ready"
	}
	note(dir, "asked", tag+" "+strconv.Itoa(os.Getpid()))
	if tag == "[e1]" {
		held, err := os.OpenFile(filepath.Join(dir, "held"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_ = held.Close() // it is empty
			await(filepath.Join(dir, "go"))
		}
	}
	return "answer " + tag
}

// note adds a line to a file of the rig.
func note(dir, name, line string) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func await(path string) {
	for ; ; time.Sleep(poll) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

// poll is how often it is looked whether something is so.
const poll = 3 * time.Millisecond

// lines are those of a file, none if it is not there.
func lines(path string) (all []string) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	return all
}
