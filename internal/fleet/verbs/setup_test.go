package verbs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/testing/fleet"
)

// run runs the command.
func run(t *testing.T, args ...string) (status int, out, complaints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = Run(args, cli.Streams{Command: commandName, Out: &stdout, Err: &stderr})
	return status, stdout.String(), stderr.String()
}

func TestSetup(t *testing.T) {
	s := fleet.Start(t)
	_, js := s.Connect(t)
	status, out, said := run(t, "setup", "--server", s.URL(), "--dry-run")
	require.Zero(t, status, said)
	assert.Equal(t, 6, strings.Count(out, "would make "), out)
	_, err := setup.Open(fleet.Context(t), js, "WORK")
	require.Error(t, err)

	status, out, said = run(t, "setup", "--server", s.URL())
	require.Zero(t, status, said)
	assert.Contains(t, out, "made stream WORK (messages of work.>)\n")
	_, err = setup.Open(fleet.Context(t), js, "WORK")
	require.NoError(t, err)

	status, out, said = run(t, "setup", "--server", s.URL(), "--ack-wait", "30s", "--json")
	require.Zero(t, status, said)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 6)
	var step setup.Step
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &step))
	assert.Equal(t, setup.Change, step.Action)
	assert.Equal(t, []string{"AckWait is 1m0s and becomes 30s"}, step.Differs)

	status, _, said = run(t, "setup", "--server", s.URL(), "--for", "work.a")
	require.Zero(t, status)
	assert.Contains(t, said, "other messages wait until there is a consumer for them")

	for _, bad := range [][]string{
		{"--ack-wait", "2s"}, {"--max-deliver", "0"}, {"--subjects", ""}, {"--stream", "a.b"}, {"more"},
		{"--replicas", "9"}, {"--embed", "x"}, {"--for", "else.a"},
	} {
		status, out, said := run(t, append([]string{"setup", "--server", s.URL()}, bad...)...)
		assert.Equal(t, cli.ExitError, status, "%q", bad)
		assert.Empty(t, out)
		assert.Regexp(t, "^heartbeat-nats: ", said)
	}
}

func TestSetupOnThisMachine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	status, out, said := run(t, "setup", "--embed", dir)
	require.Zero(t, status, said)
	t.Cleanup(func() { endServer(t, dir) })
	assert.Contains(t, said, "started the server of "+dir)
	assert.Contains(t, out, "made stream WORK")
	status, out, said = run(t, "setup", "--embed", dir)
	require.Zero(t, status, said)
	assert.Equal(t, 6, strings.Count("\n"+out, "\nkept "), out)
}

// endServer has the server of a directory end, and returns once it has.
func endServer(t *testing.T, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "server.json"))
	require.NoError(t, err)
	var a struct{ PID int }
	require.NoError(t, json.Unmarshal(text, &a))
	require.NoError(t, syscall.Kill(a.PID, syscall.SIGTERM))
	lock, err := disk.AcquireLock(fleet.Context(t), filepath.Join(dir, ".server-lock"), 0)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

// A server in the foreground says where it is, and ends with 0 when it is told to.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	self, err := os.Executable()
	require.NoError(t, err)
	server := exec.Command(self, "serve", "--dir", dir)
	server.Args[0] = commandName
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.Regexp(t, `^serves at 127\.0\.0\.1:\d+\n$`, line)
	status, _, said := run(t, "setup", "--embed", dir)
	require.Zero(t, status, said)
	assert.Empty(t, said)
	status, _, said = run(t, "serve", "--dir", dir)
	assert.Equal(t, cli.ExitError, status)
	assert.Contains(t, said, fmt.Sprintf("serve: process %d serves %s already", server.Process.Pid, dir))
	endServer(t, dir)
	require.NoError(t, server.Wait())
}

func TestTheCommandItself(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}} {
		status, out, _ := run(t, args...)
		assert.Zero(t, status)
		assert.Contains(t, out, "  setup ")
	}
	_, help, _ := run(t, "help", "setup")
	_, same, _ := run(t, "setup", "--help")
	assert.Equal(t, same, help)
	for _, args := range [][]string{{"--version"}, {"version", "--json"}, {"man"}, {"man", "setup"}} {
		status, out, said := run(t, args...)
		assert.Zero(t, status, said)
		assert.NotEmpty(t, out)
	}
	for args, want := range map[string]string{"setpu": "did you mean setup?", "--vresion": "unknown flag: --vresion", "man none": "unknown verb"} {
		status, _, said := run(t, strings.Fields(args)...)
		assert.Equal(t, cli.ExitError, status)
		assert.Contains(t, said, want)
	}
}
