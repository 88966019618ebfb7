package launch

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
)

// claudeStandIn is a stand-in for Claude Code that does what a text tells it to. It notes its
// arguments, and what it was asked.
func claudeStandIn() {
	note("arguments", strings.Join(os.Args[1:], " "))
	noteSettings()
	os.Exit(agent.InTerminal(os.Args[1:], func(text string) string {
		note("asked", text)
		verb, what, _ := strings.Cut(text, " ")
		switch verb {
		case "die-once":
			if _, err := os.Lstat(what); err == nil {
				break
			}
			note(what, "died")
			fallthrough
		case "die":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing of it remains
		case "remove":
			_ = os.Remove(what) // the script sees it
		case "hang":
			note(what, "hangs")
			select {}
		case "typed":
			line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // none is an answer too
			return line
		case "quit":
			os.Exit(0)
		case "show":
			return what + "=" + os.Getenv(what)
		}
		return "did " + text
	}))
}

// noteSettings copies the settings, which are gone once the launcher has ended.
func noteSettings() {
	for i, arg := range os.Args[:len(os.Args)-1] {
		if arg != "--settings" {
			continue
		}
		text, err := os.ReadFile(os.Args[i+1])
		if err == nil {
			err = os.WriteFile("settings", text, 0o600)
		}
		if err != nil {
			note("asked", err.Error())
		}
	}
}

// note adds a line to a file.
func note(name, line string) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		_ = f.Close() // written or not
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// dialog is a client that shows what is in a file, and waits.
func dialog() {
	shown, err := os.ReadFile(os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(shown)
	select {}
}

// commandsOnPath builds our commands and puts them on PATH.
func commandsOnPath() (remove func(), err error) {
	dir, remove, err := build.Commands()
	if err != nil {
		return nil, err
	}
	return remove, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
