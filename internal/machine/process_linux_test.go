package machine_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
)

// A process may call itself what it likes.
func TestProcessStartOfAnyName(t *testing.T) {
	for _, name := range []string{"a b", "a) R 1 (b", "()", ") ) )", "9 9 9 9", "\n"} {
		cmd, input := startFor(t, "name "+name)
		later, other := start(t)
		started := machine.ProcessStart(cmd.Process.Pid)
		assert.GreaterOrEqual(t, started, machine.ProcessStart(os.Getpid()), "%q", name)
		assert.LessOrEqual(t, started, machine.ProcessStart(later.Process.Pid), "%q", name)
		require.NoError(t, other.Close())
		require.NoError(t, later.Wait())
		require.NoError(t, input.Close())
		require.NoError(t, cmd.Wait())
	}
}

// init ends the first thread of a child that is to go on without it.
func init() {
	if os.Getenv(child) != "headless" {
		return
	}
	go func() {
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent lets go
		os.Exit(0)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // does not return
}

// A process lives as long as one of its threads, also if the first one is a zombie: it is
// one while another calls execve.
func TestLivesWithoutItsFirstThread(t *testing.T) {
	cmd, input := startFor(t, "headless")
	for dead := false; !dead; {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		require.NoError(t, err)
		dead = bytes.Contains(stat, []byte(") Z "))
	}
	assert.Positive(t, machine.ProcessStart(cmd.Process.Pid))
	assert.True(t, slices.ContainsFunc(machine.List(), func(e machine.Entry) bool { return e.PID == cmd.Process.Pid }))
	require.NoError(t, input.Close())
	require.NoError(t, cmd.Wait())
	assert.Zero(t, machine.ProcessStart(cmd.Process.Pid))
}

func TestLockHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	assert.Zero(t, machine.LockHolder(path), "there is no such file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Zero(t, machine.LockHolder(path))

	cmd, input := startFor(t, "lock "+path)
	assert.Equal(t, cmd.Process.Pid, machine.LockHolder(path))
	assert.Equal(t, cmd.Process.Pid, machine.LockHolder(path), "looking takes nothing away")
	other := path + "2"
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	assert.Zero(t, machine.LockHolder(other))
	require.NoError(t, input.Close())
	require.NoError(t, cmd.Wait())
	assert.Zero(t, machine.LockHolder(path))

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	assert.Equal(t, os.Getpid(), machine.LockHolder(path))
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
	assert.Zero(t, machine.LockHolder(path))

	require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}))
	assert.Zero(t, machine.LockHolder(path), "that is another kind of lock")
}

// Without a free descriptor a process that lives is not taken for dead, and one that ended still is.
func TestLifeWithoutDescriptors(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	ended, own := cmd.Process.Pid, machine.ProcessStart(os.Getpid())
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	start := machine.ProcessStart(os.Getpid())
	life := machine.LifeOf(machine.BootID(), machine.PIDNamespace(), os.Getpid(), own)
	over, gone := machine.Ended(os.Getpid()), machine.Ended(ended)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	assert.Zero(t, start, "nothing is readable")
	assert.Equal(t, machine.Alive, life)
	assert.False(t, over)
	assert.True(t, gone)
}

// A service in a container may read another boot's ID than a shell there. Neither takes the other's processes for dead.
// Without such a mount the process is another boot's: a machine that starts alike gives out the same numbers.
func TestLifeInAContainer(t *testing.T) {
	if with := os.Getenv("IN_A_CONTAINER"); with != "" {
		pid, start := os.Getpid(), machine.ProcessStart(os.Getpid())
		want := map[string]machine.Life{"own": machine.Alive, "kernel": machine.Rebooted}[with]
		assert.Equal(t, want, machine.LifeOf("another", machine.PIDNamespace(), pid, start))
		assert.Equal(t, machine.Rebooted, machine.LifeOf("another", machine.PIDNamespace(), pid, start-1))
		assert.Equal(t, machine.Rebooted, machine.LifeOf("another", "another", pid, start))
		return
	}
	alone := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-ec"}
	own := filepath.Join(t.TempDir(), "boot_id")
	require.NoError(t, os.WriteFile(own, []byte("its own\n"), 0o600))
	mount := "mount --bind " + own + " /proc/sys/kernel/random/boot_id\n"
	if out, err := exec.Command("unshare", append(alone, mount)...).CombinedOutput(); err != nil {
		t.Skipf("no container can be made here: %s", out)
	}
	for with, script := range map[string]string{"own": mount, "kernel": ""} {
		cmd := exec.Command("unshare", append(alone, script+`exec "$0" -test.run='^TestLifeInAContainer$' -test.count=1`, os.Args[0])...)
		cmd.Env = append(os.Environ(), "IN_A_CONTAINER="+with)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s: %s", with, out)
	}
}

// The kernel lists a lock by another device than stat(2) says where a file system has several, as btrfs and some
// overlays do.
func TestLockHolderOfAnOverlay(t *testing.T) {
	const mounts = `mount -t tmpfs none "$TMPDIR" && cd "$TMPDIR" && mkdir up work root &&
		mount -t overlay -o "lowerdir=/usr,upperdir=up,workdir=work" none root`
	alone := []string{"--user", "--map-root-user", "--mount", "sh", "-c"}
	dir := "TMPDIR=" + t.TempDir()
	try := exec.Command("unshare", append(alone, mounts)...)
	try.Env = append(os.Environ(), dir)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("no overlay can be made here: %s", out)
	}
	cmd := exec.Command("unshare", append(alone, mounts+` && TMPDIR=$TMPDIR/root exec "$0" "$@"`, os.Args[0], "-test.run=^TestLockHolder$", "-test.count=1")...)
	cmd.Env = append(os.Environ(), dir)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}
