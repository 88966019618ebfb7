package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const maxLines = 250

func TestReadmeIsShort(t *testing.T) {
	assert.LessOrEqual(t, strings.Count(read(t, "README.md"), "\n"), maxLines)
}

// TestReadme follows the README from its top to its end, as a new user of a new machine
// does, in one shell. Every sh block is run as it stands, and every cron block as cron
// runs it. Only these are stand-ins: claude, and "go test", which would run this test.
func TestReadme(t *testing.T) {
	u := newUser(t)
	blocks, _ := split(t, "README.md")
	script := "set -eEuo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\"' ERR\n"
	for _, b := range blocks {
		switch b.language {
		case "sh":
			script += b.text
		case "cron":
			script += u.cron(b.text)
		}
	}
	out, err := u.run(script + "wait\n")
	require.NoError(t, err, "%s", out)
	t.Log(out)

	for _, want := range []string{
		"go test ./... is this test\n",
		"heartbeat-launch: drained: 2 answered, 0 redelivered, 0 dead-lettered; 1 session,", // the first run
		"cron: nothing to mail\n",
		"ci-prompt: review-1 was answered\n",
		"This answers Is CLAUDE.md clear? Say why.\n",
		"This answers Say hello.\n",
		"This answers Name a fruit.\n",
	} {
		assert.Contains(t, out, want)
	}
	for _, b := range blocks {
		if b.language == "" {
			assertLooksLike(t, b.text, out)
		}
	}
	settings, err := os.ReadFile(filepath.Join(u.home, "agent", ".claude", "settings.json"))
	if err == nil {
		assert.NotContains(t, string(settings), "heartbeat", "it was uninstalled")
	}
}

// user is somebody with an empty home.
type user struct {
	t    *testing.T
	home string
	env  []string
}

func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir()}
	tools := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	goCommand, err := exec.LookPath("go")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(u.home, ".local", "bin"), 0o700))
	require.NoError(t, os.Symlink(self, filepath.Join(u.home, ".local", "bin", "claude")))
	standIn := "#!/bin/sh\nif [ \"$1\" = test ]; then echo \"go $* is this test\"; else exec '" + goCommand + "' \"$@\"; fi\n"
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte(standIn), 0o700))

	// What go has in store, since the machine need not have a network.
	stores, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS").Output()
	require.NoError(t, err)
	store := strings.Split(string(stores), "\n")
	u.env = []string{
		"HOME=" + u.home, "SHELL=/bin/bash", "LOGNAME=me", "TMPDIR=" + t.TempDir(), "GORACE=atexit_sleep_ms=0",
		"PATH=" + strings.Join([]string{tools, filepath.Join(u.home, ".local", "bin"), "/usr/local/bin", "/usr/bin", "/bin"}, ":"),
		"GOCACHE=" + store[0], "GOMODCACHE=" + store[1], "GOFLAGS=" + strings.TrimSpace(store[2]+" -buildvcs=false"), "GOPROXY=off",
	}
	return u
}

func (u *user) run(script string) (string, error) {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = root, u.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var cronLine = regexp.MustCompile(`^\*/10 \* \* \* \* (.*)$`)

// cron is a script that runs a crontab's command once, with no more of an environment
// than cron gives, and an entry that waits for it. Only the home is another one.
func (u *user) cron(table string) string {
	u.t.Helper()
	home := func(text string) string { return strings.ReplaceAll(text, "/home/me", u.home) }
	env, command := "", ""
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		if m := cronLine.FindStringSubmatch(line); m != nil {
			assert.NotContains(u.t, m[1], "%", "cron ends a line there")
			command = home(m[1])
			continue
		}
		require.Regexp(u.t, `^[A-Z]+=`, line)
		env += " " + quoted(home(line))
	}
	require.NotEmpty(u.t, command)
	return fmt.Sprintf(`heartbeat send --inbox queue/inbox.jsonl --id from-cron "Name a star." >/dev/null
(cd / && env -i HOME="$HOME" LOGNAME=me SHELL=/bin/sh%s /bin/sh -c %s </dev/null) >"$HOME/mail" 2>&1
heartbeat results --inbox queue/inbox.jsonl from-cron
cat "$HOME/mail"
[ -s "$HOME/mail" ] || echo 'cron: nothing to mail'
`, env, quoted(command))
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// varies is what is another one in each run, or of another agent.
var varies = []struct{ pattern, name string }{
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
	{`(session \w+) [0-9a-zA-Z-]+`, "$1 ID"},
	{`(in|session,) [0-9.]+m?s`, "$1 DURATION"},
	{`(DURATION:) .*`, "$1 REPLY"},
}

// assertLooksLike holds an example of output to what was printed: each of its lines is
// there, in its order, whatever varies.
func assertLooksLike(t *testing.T, example, out string) {
	t.Helper()
	for _, v := range varies {
		pattern := regexp.MustCompile(v.pattern)
		example, out = pattern.ReplaceAllString(example, v.name), pattern.ReplaceAllString(out, v.name)
	}
	rest := out
	for line := range strings.Lines(example) {
		_, behind, found := strings.Cut(rest, line)
		if !assert.True(t, found, "the README shows %q, which is not in its place in\n%s", line, out) {
			return
		}
		rest = behind
	}
}
