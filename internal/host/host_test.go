package host_test

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/host"
)

const child = "HEARTBEAT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent lets go
		return
	}
	os.Exit(m.Run())
}

func TestBootID(t *testing.T) {
	id := host.BootID()
	assert.Regexp(t, `^[0-9a-fA-F-]{36}$`, id)
	assert.Equal(t, id, host.BootID())
	host.TestOnlyBootID = "another"
	defer func() { host.TestOnlyBootID = "" }()
	assert.Equal(t, "another", host.BootID())
}

func TestSinceBootGoesForward(t *testing.T) {
	last := host.SinceBoot()
	assert.Positive(t, last)
	for range 1000 {
		now := host.SinceBoot()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestRandomNames(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		name, err := host.RandomName()
		require.NoError(t, err)
		require.Regexp(t, regexp.MustCompile(`^[a-z2-7]{26}$`), name)
		require.False(t, seen[name])
		seen[name] = true
	}
}

// start starts a child that lives until its input is closed.
func start(t *testing.T) (cmd *exec.Cmd, input io.WriteCloser) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1", "GORACE=atexit_sleep_ms=0")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, input
}

// The test hangs where a death is not noticed.
func TestDied(t *testing.T) {
	for name, end := range map[string]func(cmd *exec.Cmd, input io.Closer) error{
		"exit": func(_ *exec.Cmd, input io.Closer) error { return input.Close() },
		"kill": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			cmd, input := start(t)
			died := host.WatchProcess(cmd.Process.Pid).Died()
			select {
			case <-died:
				t.Fatal("it lives")
			default:
			}
			require.NoError(t, end(cmd, input))
			<-died         // also of a child that nobody has waited for yet
			_ = cmd.Wait() // a kill is an error
		})
	}
}

func TestDiedBefore(t *testing.T) {
	cmd, input := start(t)
	require.NoError(t, input.Close())
	require.NoError(t, cmd.Wait())
	<-host.WatchProcess(cmd.Process.Pid).Died()
}
