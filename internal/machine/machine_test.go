package machine_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
)

const child = "HEARTBEAT_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(child); task != "" {
		if err := prepare(task); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent lets go
		return
	}
	os.Exit(m.Run())
}

func TestBootID(t *testing.T) {
	id := machine.BootID()
	assert.Regexp(t, `^[0-9a-fA-F-]{36}$`, id)
	assert.Equal(t, id, machine.BootID())
	machine.TestOnlyBootID = "another"
	defer func() { machine.TestOnlyBootID = "" }()
	assert.Equal(t, "another", machine.BootID())
	assert.True(t, machine.OtherBoot(id))

	machine.TestOnlyBootID = machine.TestOnlyUnread
	assert.NotEqual(t, "", machine.BootID())
	assert.NotEqual(t, machine.BootID(), machine.BootID(), "each is another process's")
	assert.Empty(t, machine.KnownBoot(machine.BootID()))
	assert.False(t, machine.OtherBoot(id), "that is not known")
	pid := os.Getpid()
	for _, boot := range []string{id, machine.BootID(), ""} {
		assert.Equal(t, machine.Alive, machine.LifeOf(boot, machine.PIDNamespace(), pid, machine.ProcessStart(pid)), boot)
		assert.Equal(t, machine.Gone, machine.LifeOf(boot, machine.PIDNamespace(), pid, machine.ProcessStart(pid)-1), boot)
	}
}

func TestSinceBootGoesForward(t *testing.T) {
	last := machine.SinceBoot()
	assert.Positive(t, last)
	for range 1000 {
		now := machine.SinceBoot()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestAwakeIsBehindSinceBoot(t *testing.T) {
	before := machine.Awake()
	assert.Positive(t, before)
	assert.LessOrEqual(t, before, machine.SinceBoot(), "it stood still while the machine slept")
	assert.LessOrEqual(t, before, machine.Awake())
}

func TestRandomNames(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		name, err := machine.RandomName()
		require.NoError(t, err)
		require.Regexp(t, regexp.MustCompile(`^[a-z2-7]{26}$`), name)
		require.False(t, seen[name])
		seen[name] = true
	}
}

// prepare is what a child does before it waits for its end.
func prepare(task string) error {
	what, arg, _ := strings.Cut(task, " ")
	switch what {
	case "lock": // a file, as long as this process lives
		fd, err := unix.Open(arg, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		return unix.Flock(fd, unix.LOCK_EX)
	case "name": // its main thread, which is the process's name
		return os.WriteFile("/proc/"+strconv.Itoa(os.Getpid())+"/comm", []byte(arg), 0)
	}
	return nil
}

// start starts a child that lives until its input is closed.
func start(t *testing.T) (cmd *exec.Cmd, input io.WriteCloser) {
	t.Helper()
	return startFor(t, "wait")
}

// startFor starts a child that did its task by the time that startFor returns.
func startFor(t *testing.T, task string) (cmd *exec.Cmd, input io.WriteCloser) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+task, "GORACE=atexit_sleep_ms=0")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
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
			died := machine.WatchProcess(cmd.Process.Pid).Died()
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
	<-machine.WatchProcess(cmd.Process.Pid).Died()
}

func TestProcessStart(t *testing.T) {
	own := machine.ProcessStart(os.Getpid())
	assert.Positive(t, own)
	assert.Equal(t, own, machine.ProcessStart(os.Getpid()))
	for _, nobody := range []int{0, -1, 1 << 30} {
		assert.Zero(t, machine.ProcessStart(nobody), nobody)
	}
	cmd, input := start(t)
	started := machine.ProcessStart(cmd.Process.Pid)
	assert.GreaterOrEqual(t, started, own)
	assert.Equal(t, started, machine.ProcessStart(cmd.Process.Pid))
	died := machine.WatchProcess(cmd.Process.Pid).Died()
	require.NoError(t, input.Close())
	<-died
	assert.Zero(t, machine.ProcessStart(cmd.Process.Pid), "nobody has waited for it yet")
	require.NoError(t, cmd.Wait())
	assert.Zero(t, machine.ProcessStart(cmd.Process.Pid))
}

func TestLifeOf(t *testing.T) {
	defer func(was string) { machine.TestOnlyBootID = was }(machine.TestOnlyBootID)
	machine.TestOnlyBootID = machine.BootID() // nowhere has it several
	pid, start := os.Getpid(), machine.ProcessStart(os.Getpid())
	for name, c := range map[string]struct {
		boot, namespace string
		pid             int
		start           int64
		want            machine.Life
	}{
		"this one":            {machine.BootID(), machine.PIDNamespace(), pid, start, machine.Alive},
		"one of its number":   {machine.BootID(), machine.PIDNamespace(), pid, start - 1, machine.Gone},
		"of another boot":     {"another", machine.PIDNamespace(), pid, start, machine.Rebooted},
		"of another room":     {machine.BootID(), "another", pid, start, machine.Unknown},
		"without a number":    {machine.BootID(), machine.PIDNamespace(), 0, start, machine.Unknown},
		"without a beginning": {"", machine.PIDNamespace(), pid, 0, machine.Unknown},
	} {
		assert.Equal(t, c.want, machine.LifeOf(c.boot, c.namespace, c.pid, c.start), name)
	}
}
