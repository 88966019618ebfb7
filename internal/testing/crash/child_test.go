package crash_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// echo says its arguments and what is left of the harness in its environment,
// then copies its input.
func echo() int {
	fmt.Println("args", strings.Join(os.Args[1:], " "))
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "HEARTBEAT_TEST_") {
			fmt.Println("left", e)
		}
	}
	b, err := io.ReadAll(os.Stdin)
	fmt.Printf("%s", b)
	fmt.Fprint(os.Stderr, os.Getenv("WORD"))
	return status(err)
}

func TestCommand(t *testing.T) {
	t.Setenv("HEARTBEAT_TEST_KILL_AT", "1") // is for this process, not for its children
	c := crash.Command{Name: "echo", Args: []string{"a", "b"}, Stdin: "in\n", Env: []string{"WORD=err", crash.EnvFailAt + "=1:EIO"}}
	assert.Equal(t, crash.Result{Stdout: "args a b\nin\n", Stderr: "err"}, unmeasured(c.Run(t)))
	assert.Equal(t, crash.Result{ExitCode: 7}, unmeasured(crash.Child(t, "exit", nil)))
}

func TestCommandStart(t *testing.T) {
	r := crash.Command{Name: "echo"}.Start(t)
	assert.Equal(t, "args ", r.Line(t))
	_, err := io.WriteString(r.Input, "one\ntwo\n")
	require.NoError(t, err)
	r.CloseInput(t)
	assert.Equal(t, "one", r.Line(t))
	assert.Equal(t, "two", r.Line(t))
	assert.Equal(t, 0, r.Wait(t).ExitCode)

	killed := crash.Command{Name: "echo"}.Start(t)
	killed.Line(t)
	result := killed.Kill(t)
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.Equal(t, -1, result.ExitCode)
}

func TestChildEnvironment(t *testing.T) {
	const half = "first\nsec"
	for _, test := range []struct {
		env        string
		wantSignal syscall.Signal
		wantLog    string
		wantStderr string
	}{
		{"", 0, "first\nsecond\n", ""},
		{crash.EnvKillAt + "=1", syscall.SIGKILL, "", ""},
		{crash.EnvKillAt + "=5", syscall.SIGKILL, "first\n", ""},
		{crash.EnvKillAt + "=5,torn", syscall.SIGKILL, half, ""},
		{crash.EnvKillAt + "=6,torn", syscall.SIGKILL, "first\nsecond\n", ""},
		{crash.EnvKillAt + "=99", 0, "first\nsecond\n", ""},
		{crash.EnvFailAt + "=5:EIO", 0, "first\n", "input/output error"},
		{crash.EnvFailAt + "=5:ENOSPC,torn", 0, half, "no space left on device"},
		{crash.EnvFailFrom + "=3:EROFS", 0, "first\n", "read-only file system"},
		{crash.EnvFailFrom + "=3:ENOSPC,create,write", 0, "first\n", "write"},
		{crash.EnvFailAt + "=x:EIO", 0, "", "HEARTBEAT_TEST_FAIL_AT=x:EIO: strconv.Atoi"},
		{crash.EnvFailAt + "=1:EWHAT", 0, "", `unknown errno "EWHAT"`},
		{crash.EnvKillAt + "=1,worn", 0, "", "want n or n,torn"},
	} {
		t.Run(test.env, func(t *testing.T) {
			dir := t.TempDir()
			r := crash.Child(t, "append", []string{dir}, test.env)
			assert.Equal(t, test.wantSignal, r.Signal)
			assert.Equal(t, test.wantLog, read(t, dir, "log"))
			assert.Contains(t, r.Stderr, test.wantStderr)
			assert.Equal(t, test.wantStderr != "", r.ExitCode > 0)
		})
	}
}

func TestReadCount(t *testing.T) {
	dir, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
	r := crash.Child(t, "append", []string{dir}, crash.EnvCount+"="+count, crash.EnvKillAt+"=5")
	require.Equal(t, syscall.SIGKILL, r.Signal)
	ops := crash.ReadCount(t, count).Ops()
	assert.Equal(t, appendOps[:5], kinds(ops))
	assert.Equal(t, disk.Op{Kind: disk.OpWrite, Path: filepath.Join(dir, "log"), Offset: -1, Data: []byte("second\n")}, ops[4])

	assert.Empty(t, crash.ReadCount(t, filepath.Join(dir, "missing")).Ops())
}

func unmeasured(r crash.Result) crash.Result {
	r.MaxRSS = 0
	return r
}
