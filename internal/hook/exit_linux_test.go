package hook_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hook"
	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/long"
)

// limitVariable makes this binary limit itself and then execute its arguments.
const limitVariable = "TEST_LIMIT"

func init() {
	limit := os.Getenv(limitVariable)
	if limit == "" {
		return
	}
	runtime.LockOSThread() // a filter belongs to a thread and to what the thread executes
	if err := limited(limit); err != nil {
		fatal(err)
	}
	fatal(syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
}

// plainUser has no other process: the system counts all processes of a user.
const plainUser = 54321

func limited(limit string) error {
	var kind string
	var a, b uint64
	if _, err := fmt.Sscanf(limit, "%s %d %d", &kind, &a, &b); err != nil {
		return err
	}
	switch kind {
	case "memory":
		return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: a, Max: a})
	case "processes":
		if err := syscall.Setuid(plainUser); err != nil {
			return err
		}
		return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: a, Max: a})
	}
	return denied(uint32(a), syscall.Errno(b))
}

// denied makes one system call fail from now on.
func denied(number uint32, errno syscall.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // load the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// limits are the limits to try. A normal round tries few of them.
func limits() (all []string) {
	for mb := 6; mb < 160; mb += long.Rounds(22, 1) {
		all = append(all, fmt.Sprintf("memory %d 0", mb<<20))
	}
	if os.Getuid() == 0 {
		for range long.Rounds(1, 10) {
			for n := 1; n <= 6; n++ {
				all = append(all, fmt.Sprintf("processes %d 0", n))
			}
		}
	}
	for i, number := range []int{
		unix.SYS_MMAP, unix.SYS_CLONE, 58 /* vfork on amd64 */, unix.SYS_FUTEX, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_MADVISE,
		unix.SYS_SIGALTSTACK, unix.SYS_SCHED_GETAFFINITY, unix.SYS_FCNTL, unix.SYS_EPOLL_CREATE1, unix.SYS_OPENAT,
	} {
		for j, errno := range []syscall.Errno{unix.EAGAIN, unix.ENOMEM, unix.EACCES, unix.EPERM, unix.EIO, unix.ENOSYS} {
			if long.Wanted() || (i+j)%6 == 0 {
				all = append(all, fmt.Sprintf("denied %d %d", number, errno))
			}
		}
	}
	return all
}

// Whatever kills Go's runtime, before or after the program's first instruction, the status is not
// the one that makes the client ask the model again.
func TestTheHookDiesWithoutAWord(t *testing.T) {
	dir, remove, err := build.Commands("cmd/heartbeat-stop", "cmd/heartbeat")
	require.NoError(t, err)
	defer remove()
	script, err := os.ReadFile("../../plugin/scripts/heartbeat.sh")
	require.NoError(t, err)
	plugin := filepath.Join(dir, "heartbeat.sh")
	require.NoError(t, os.WriteFile(plugin, script, 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	hooks := [][]string{
		{filepath.Join(dir, hook.CommandName)},
		{filepath.Join(dir, hook.CommandName), "--rewake"},
		{filepath.Join(dir, hook.FullCommand), hook.FullVerb},
		{plugin, "hook", "note"},
	}
	runs, ofRuntime := 0, 0
	for _, command := range hooks {
		queue := filepath.Join(t.TempDir(), "inbox.jsonl")
		require.NoError(t, os.WriteFile(queue, nil, 0o644))
		t.Setenv("HEARTBEAT_INBOX", queue) // where the plugin's script finds it
		for _, limit := range limits() {
			if command[0] == plugin && strings.HasPrefix(limit, fmt.Sprintf("denied %d ", unix.SYS_FCNTL)) {
				continue // a shell that cannot open its script runs nothing of it
			}
			said, status := runLimited(t, limit, append(command, "--inbox", queue)...)
			require.NotEqual(t, hook.ExitWake, status, "%s under %s: %s", command, limit, said)
			runs++
			if status != 0 && strings.Contains(said, "runtime") {
				ofRuntime++
			}
		}
	}
	assert.Greater(t, ofRuntime, runs/4, "of %d runs", runs)
}

// TestTheHookDiesSoOnEverySystem inspects programs for systems that do not run here.
func TestTheHookDiesSoOnEverySystem(t *testing.T) {
	long.Only(t, "compiles for other systems")
	for _, on := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}} {
		program := filepath.Join(t.TempDir(), "program")
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", program, "heartbeat/cmd/heartbeat-stop")
		cmd.Env = append(os.Environ(), "GOOS="+on[0], "GOARCH="+on[1], "CGO_ENABLED=0")
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		code, err := exec.Command("go", "tool", "objdump", "-s", `^runtime\.exit(_trampoline)?\.abi0$`, program).Output()
		require.NoError(t, err)
		assert.Contains(t, string(code), "internal/hook/exit.s", on)
	}
}

// runLimited returns a command's stderr and status, -1 after a signal.
func runLimited(t *testing.T, limit string, command ...string) (said string, status int) {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", command...)
	cmd.Env = append(os.Environ(), limitVariable+"="+limit, "CLAUDE_CODE_ENTRYPOINT=cli", fmt.Sprintf("CLAUDE_PID=%d", os.Getpid()))
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"SessionEnd","session_id":"s","reason":"other"}`)
	cmd.Stderr = &stderr
	err := cmd.Run()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		require.NoError(t, err)
	}
	return stderr.String(), cmd.ProcessState.ExitCode()
}
