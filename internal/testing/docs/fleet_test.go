package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// The commands of "On one machine" work as they stand, with a stand-in for the client: the
// agent of the first block stays while the second one is typed.
func TestAgentsOnOneMachine(t *testing.T) {
	blocks := shellBlock.FindAllStringSubmatch(section(t, "docs/fleet.md", "## On one machine"), -1)
	require.Len(t, blocks, 2)
	first, second := blocks[0][1], blocks[1][1]
	setup, agent, found := strings.Cut(strings.TrimSpace(first), "heartbeat-nats agent")
	require.True(t, found)
	agent = "heartbeat-nats agent" + agent
	// A person reads the reply once it is there, and looks when the agent has settled the
	// message, which comes after the reply.
	answered := `heartbeat-nats send --embed ~/nats --subject work.review --id cats --wait "Name three cats." >/dev/null
until heartbeat-nats status --embed ~/nats | grep -q "nothing waits"; do :; done
`
	second = strings.Replace(second, "heartbeat-nats status", answered+"heartbeat-nats status", 1)
	script := "set -eEuo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\"; cat agent.log' ERR\n" +
		setup + "\n" + agent + " >agent.log 2>&1 &\n" + second + "kill %1\nwait %1 || echo \"the agent ended with $?\"\n" +
		`kill "$(sed -E 's/.*"pid":([0-9]+).*/\1/' ~/nats/server.json)"`

	self, err := os.Executable()
	require.NoError(t, err)
	home := t.TempDir()
	env, err := environment(home, self)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-mc", script)
	cmd.WaitDelay = time.Minute // what it left behind may hold its output
	cmd.Dir = filepath.Join(home, "work")
	require.NoError(t, os.Mkdir(cmd.Dir, 0o700))
	for i, v := range env {
		if path, is := strings.CutPrefix(v, "PATH="); is {
			env[i] = "PATH=" + bin + string(filepath.ListSeparator) + path
		}
	}
	cmd.Env = env
	combined, err := cmd.CombinedOutput()
	out := string(combined)
	require.NoError(t, err, out)
	rest := out
	for _, want := range []string{
		"made stream WORK (messages of work.>)", "This answers Name a star.\n", "cats\n", "nothing waits: the stream is empty\n",
		"\tcats\tanswered\t", "This answers Name three cats.\n", "the agent ended with 143\n",
	} {
		_, rest, found = strings.Cut(rest, want)
		assert.True(t, found, "%q is not in its place in\n%s", want, out)
	}
}
