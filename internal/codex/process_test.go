package codex_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/codex"
)

// The client is found above the shells that stand between.
func TestPID(t *testing.T) {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	named := filepath.Join(t.TempDir(), "codex")
	raw, err := os.ReadFile(sh)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(named, raw, 0o700))
	cmd := exec.Command(named, "-c", `sh -c 'sh -c "echo \$\$; cat; :"; :'; :`)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	inner, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	assert.Equal(t, cmd.Process.Pid, codex.PID(inner))
	assert.Equal(t, cmd.Process.Pid, codex.PID(cmd.Process.Pid))
	for _, other := range []int{os.Getpid(), 1, 0, -1} {
		assert.Zero(t, codex.PID(other))
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"codex": true, "codex-x86_64-un": true, "codex-aarch64-a": true,
		"": false, "claude": false, "codex-linux-san": false, "codex-code-mode": false, "codexes": false,
	} {
		assert.Equal(t, want, codex.IsName(name), name)
	}
}
