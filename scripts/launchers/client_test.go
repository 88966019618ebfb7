package launchers_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/script"
)

// client is a stand-in for Claude Code in a terminal.
func client() int { return agent.InTerminal(os.Args[1:], answer) }

var dies = regexp.MustCompile(`dies unless (\S+)`)

// answer appends each text to the file "asked". An entry may tell it to die, unless a file
// exists that it then makes, to hang, or to send another entry. The model's API fails once
// where there is a file "outage".
func answer(text string) string {
	if os.Remove("outage") == nil {
		return agent.Failing + "server_error: API Error: 529 overloaded"
	}
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
		script.Forever()
	case strings.Contains(text, "sends another"):
		if out, err := exec.Command("heartbeat", "send", "another").CombinedOutput(); err != nil {
			return string(out)
		}
	}
	return "did " + text
}
