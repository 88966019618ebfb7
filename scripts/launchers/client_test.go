package launchers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"heartbeat/internal/agent"
)

// client is a stand-in for Claude Code in a terminal: it runs the hook that
// --settings wires, and stays at its prompt once the stop is approved, until
// somebody ends it.
func client() int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGHUP)
	failed := make(chan error)
	go func() {
		if err := session(os.Args[1:]); err != nil {
			failed <- err
		}
	}()
	select {
	case <-ended:
		return 128 + int(syscall.SIGTERM)
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

func session(args []string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return errors.New("the client has no terminal")
	}
	if len(args) < 3 || args[0] != "--settings" {
		return fmt.Errorf("the client was called with %q", args)
	}
	command, err := wired(args[1])
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	a := &agent.Agent{
		Hook: command, Answer: answer,
		Env: append(os.Environ(), "CLAUDE_PID="+strconv.Itoa(os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR="+dir),
	}
	return a.Run(context.Background(), args[2])
}

// wired is the command of the Stop hook in a settings file.
func wired(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Command string
				Args    []string
			}
		}
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return nil, err
	}
	for _, group := range settings.Hooks["Stop"] {
		for _, h := range group.Hooks {
			return append([]string{h.Command}, h.Args...), nil
		}
	}
	return nil, errors.New(path + " wires no Stop hook")
}

var dies = regexp.MustCompile(`dies unless (\S+)`)

// answer keeps a list of what it was asked, and obeys an entry that wants its
// session to die, unless a file is there, which is made then, to hang, or to send
// another one.
func answer(text string) string {
	asked, err := os.OpenFile("asked", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err.Error()
	}
	defer asked.Close()
	fmt.Fprintln(asked, text)
	if m := dies.FindStringSubmatch(text); m != nil {
		if _, err := os.Lstat(m[1]); err != nil {
			_ = os.WriteFile(m[1], nil, 0o600)             // best effort: the test sees it
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing of it remains
		}
	}
	switch {
	case strings.Contains(text, "hangs"):
		select {}
	case strings.Contains(text, "sends another"):
		if out, err := exec.Command("heartbeat-stop", "send", "another").CombinedOutput(); err != nil {
			return string(out)
		}
	}
	if strings.Contains(text, "APPROVE or REJECT") {
		return verdict(text) + "\n" + text
	}
	return "did " + text
}

func verdict(text string) string {
	if strings.Contains(text, "something to REJECT") {
		return "REJECT"
	}
	return "APPROVE"
}
