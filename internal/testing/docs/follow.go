package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Said is what the README's commands print, in this order, with a client that answers
// "This answers " and the text.
var Said = []string{
	"Every prompt was answered once, in order",
	"go test ./... is this test\n",
	"heartbeat-launch: drained: 2 answered; 1 session,",
	"This answers Name a star.\n",
	"cron: nothing to mail\n",
	"This answers Say hello.\n",
	"This answers Name a fruit.\n",
}

// Follow is a shell that runs the README's commands from its top to its end, as a new user
// of a new machine does: every sh block as it stands, and every cron block as cron runs it.
// It ends with the first command that fails. root is the repository, home an empty folder,
// and claude the client's binary, under any name.
//
// Two commands do something else: "go test", which would run this test, prints a line, and
// claude without arguments, where a person would log in, does nothing.
func Follow(ctx context.Context, root, home, claude string) (*exec.Cmd, error) {
	blocks, _, err := Split(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	script := "set -eEuo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\"' ERR\n"
	for _, b := range blocks {
		switch b.Language {
		case "sh":
			script += b.Text
		case "cron":
			text, err := cron(b.Text, home)
			if err != nil {
				return nil, err
			}
			script += text
		}
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script+"wait\n")
	cmd.Dir, cmd.WaitDelay = root, time.Minute // what it left behind may hold its output
	cmd.Env, err = environment(home, claude)
	return cmd, err
}

// FleetSaid is what the commands of [FollowFleet] print, in this order, with a client that
// answers "This answers " and the text.
var FleetSaid = []string{
	"made stream WORK (messages of work.>)", "This answers Name a star.\n", "cats\n", "nothing waits: the stream is empty\n",
	"\tcats\tanswered\t", "This answers Name three cats.\n", "the agent ended with 143\n",
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// FollowFleet is a shell that runs the commands of "On one machine" in docs/fleet.md, with
// those of bin: the agent of the first block stays while the second one is typed.
func FollowFleet(ctx context.Context, root, home, claude, bin string) (*exec.Cmd, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "fleet.md"))
	if err != nil {
		return nil, err
	}
	_, below, _ := strings.Cut(string(page), "\n## On one machine\n")
	here, _, _ := strings.Cut(below, "\n#")
	blocks := shellBlock.FindAllStringSubmatch(here, -1)
	if len(blocks) != 2 {
		return nil, fmt.Errorf("docs/fleet.md: On one machine has %d blocks of commands instead of 2", len(blocks))
	}
	setup, agent, _ := strings.Cut(strings.TrimSpace(blocks[0][1]), "heartbeat-nats agent")
	// A person reads the reply once it is there, and looks when the agent has settled the
	// message, which comes after the reply.
	answered := `heartbeat-nats send --embed ~/nats --subject work.review --id cats --wait "Name three cats." >/dev/null
until heartbeat-nats status --embed ~/nats | grep -q "nothing waits"; do :; done
`
	second := strings.Replace(blocks[1][1], "heartbeat-nats status", answered+"heartbeat-nats status", 1)
	script := "set -eEuo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\"; cat agent.log' ERR\n" +
		setup + "\nheartbeat-nats agent" + agent + " >agent.log 2>&1 &\n" + second + "kill %1\nwait %1 || echo \"the agent ended with $?\"\n" +
		`kill "$(sed -E 's/.*"pid":([0-9]+).*/\1/' ~/nats/server.json)"`
	cmd := exec.CommandContext(ctx, "bash", "-mc", script)
	cmd.Dir, cmd.WaitDelay = filepath.Join(home, "work"), time.Minute // what it left behind may hold its output
	env, err := environment(home, claude)
	for i, v := range env {
		if path, is := strings.CutPrefix(v, "PATH="); is {
			env[i] = "PATH=" + bin + string(filepath.ListSeparator) + path
		}
	}
	cmd.Env = env
	return cmd, errors.Join(err, os.Mkdir(cmd.Dir, 0o700))
}

// environment is a new user's, with what stands in for others on its PATH.
func environment(home, claude string) ([]string, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	bin, tools, tmp := filepath.Join(home, ".local", "bin"), filepath.Join(home, ".stand-ins"), filepath.Join(home, ".tmp")
	client := filepath.Join(tools, "client", "claude") // a stand-in knows itself by this name
	// What go has in store, since there may be no network, and compiled as the tests are:
	// otherwise all is compiled once more.
	stored, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "CGO_ENABLED").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for its caches: %w", err)
	}
	store := strings.Split(string(stored), "\n")
	err = errors.Join(
		os.MkdirAll(bin, 0o700), os.MkdirAll(tmp, 0o700), os.MkdirAll(filepath.Dir(client), 0o700),
		os.Symlink(claude, client),
		command(filepath.Join(bin, "claude"), `[ $# -gt 0 ] || exit 0; exec `+quoted(client)+` "$@"`),
		command(filepath.Join(tools, "go"), `[ "$1" != test ] || { echo "go $* is this test"; exit 0; }; CGO_ENABLED=`+store[3]+` exec `+quoted(goCommand)+` "$@"`),
	)
	if err != nil {
		return nil, err
	}
	return []string{
		"HOME=" + home, "TMPDIR=" + tmp, "SHELL=/bin/bash", "LOGNAME=me", "TERM=xterm-256color",
		"PATH=" + strings.Join([]string{tools, bin, "/usr/local/bin", "/usr/bin", "/bin"}, string(filepath.ListSeparator)),
		"GOCACHE=" + store[0], "GOMODCACHE=" + store[1], "GOFLAGS=" + strings.TrimSpace(store[2]+" -buildvcs=false"), "GOPROXY=off",
		"GORACE=atexit_sleep_ms=0",
	}, nil
}

func command(path, script string) error {
	return os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700)
}

var (
	cronLine = regexp.MustCompile(`^\*/10 \* \* \* \* ([^%]+)$`) // cron ends a line at %
	cronName = regexp.MustCompile(`^[A-Z]+=`)
)

// cron is a script that runs a crontab's command once, on an entry of its own, with no more
// of an environment than cron gives, and what a test tells the client. Only the home is
// another one.
func cron(table, home string) (string, error) {
	var variables, line string
	for l := range strings.Lines(strings.ReplaceAll(table, "/home/me", home)) {
		l = strings.TrimRight(l, "\n")
		if m := cronLine.FindStringSubmatch(l); m != nil {
			line = m[1]
		} else if cronName.MatchString(l) {
			variables += " " + quoted(l)
		} else {
			return "", fmt.Errorf("cron would not take the line %q", l)
		}
	}
	if line == "" {
		return "", errors.New("the crontab has no command")
	}
	return fmt.Sprintf(`heartbeat send --id from-cron "Name a star." >/dev/null
(cd / && env -i HOME="$HOME" LOGNAME=me SHELL=/bin/sh $(env | sed -nE '/^(ANTHROPIC|CLAUDE|DISABLE)_/p') %s /bin/sh -c %s </dev/null) >"$HOME/mail" 2>&1
heartbeat results from-cron
cat "$HOME/mail"
[ -s "$HOME/mail" ] || echo 'cron: nothing to mail'
`, variables, quoted(line)), nil
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
