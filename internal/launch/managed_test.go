package launch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/script"
)

// claudeStandIn is a stand-in for Claude Code that does what a text tells it to. It notes its
// arguments, and what it was asked.
func claudeStandIn() {
	note("arguments", strings.Join(os.Args[1:], " "))
	noteSettings()
	os.Exit(agent.InTerminal(os.Args[1:], func(text string) string {
		if said, woken := strings.CutSuffix(text, "</system-reminder>"); woken { // the entry is the last line within
			said = strings.TrimSpace(said)
			text = said[strings.LastIndex(said, "\n")+1:]
		}
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
		case "limited": // once, as long as that file is not there
			file, message, _ := strings.Cut(what, " ")
			if _, err := os.Lstat(file); err != nil {
				note(file, "limited")
				return agent.Failing + "rate_limit: " + message
			}
		case "outlast": // the time of --until
			time.Sleep(time.Until(until()) + time.Millisecond)
		case "remove":
			_ = os.Remove(what) // the script sees it
		case "hang":
			note(what, "hangs")
			script.Forever()
		case "take": // so long, and the next word
			long, _, _ := strings.Cut(what, " ")
			if d, err := time.ParseDuration(long); err == nil {
				time.Sleep(d)
			}
		case "await":
			note(what, "waits")
			for os.Remove(what+".go") != nil {
				time.Sleep(time.Millisecond)
			}
		case "typed":
			line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // none is an answer too
			return line
		case "asks":
			return asks(what)
		case "within":
			var said strings.Builder
			cmd := exec.Command("heartbeat", strings.Fields(what)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, &said
			_ = cmd.Run() // it says why not
			return said.String()
		case "quit":
			os.Exit(0)
		case "show":
			return what + "=" + os.Getenv(what)
		}
		return "did " + text
	}))
}

// asks draws a question as the client does, tells the hook of it, and returns what a person
// types, if one does.
func asks(question string) string {
	fmt.Printf("\x1b[2J\x1b[H%s\r\n\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel · Tab to amend\r\n", question)
	flying, err := os.ReadFile(".in-flight")
	var d struct {
		Session string `json:"session_id"`
	}
	if err == nil {
		err = json.Unmarshal(flying, &d)
	}
	if err != nil {
		return err.Error()
	}
	hook := exec.Command("heartbeat-stop", "--inbox", "inbox.jsonl", "--launched")
	hook.Stdin = strings.NewReader(`{"hook_event_name":"Notification","notification_type":"permission_prompt","message":"may I?","session_id":"` + d.Session + `"}`)
	if out, err := hook.CombinedOutput(); err != nil {
		return string(out)
	}
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // none is an answer too
	fmt.Print("\x1b[2J\x1b[H* Working… (esc to interrupt)\r\n")
	return "answered " + line
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

// until is the time after which the hook hands out nothing more.
func until() time.Time {
	text, err := os.ReadFile("settings")
	_, rest, found := strings.Cut(string(text), "--until")
	at := regexp.MustCompile(`20[-0-9T:+Z]+`).FindString(rest)
	t, parseErr := time.Parse(time.RFC3339, at)
	if err = errors.Join(err, parseErr); err != nil || !found {
		note("asked", fmt.Sprintf("no --until: %v", err))
	}
	return t
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
	script.Forever()
}

// commandsOnPath builds our commands and puts them on PATH.
func commandsOnPath() (remove func(), err error) {
	dir, remove, err := build.Commands()
	if err != nil {
		return nil, err
	}
	return remove, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
