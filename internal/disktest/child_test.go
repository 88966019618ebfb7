package disktest_test

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
	"heartbeat/internal/disktest"
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
	c := disktest.Command{Name: "echo", Args: []string{"a", "b"}, Stdin: "in\n", Env: []string{"WORD=err", disktest.EnvFailAt + "=1:EIO"}}
	assert.Equal(t, disktest.Result{Stdout: "args a b\nin\n", Stderr: "err"}, unmeasured(c.Run(t)))
	assert.Equal(t, disktest.Result{ExitCode: 7}, unmeasured(disktest.Child(t, "exit", nil)))
}

func TestCommandStart(t *testing.T) {
	r := disktest.Command{Name: "echo"}.Start(t)
	assert.Equal(t, "args ", r.Line(t))
	_, err := io.WriteString(r.Input, "one\ntwo\n")
	require.NoError(t, err)
	r.CloseInput(t)
	assert.Equal(t, "one", r.Line(t))
	assert.Equal(t, "two", r.Line(t))
	assert.Equal(t, 0, r.Wait(t).ExitCode)

	killed := disktest.Command{Name: "echo"}.Start(t)
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
		{disktest.EnvKillAt + "=1", syscall.SIGKILL, "", ""},
		{disktest.EnvKillAt + "=5", syscall.SIGKILL, "first\n", ""},
		{disktest.EnvKillAt + "=5,torn", syscall.SIGKILL, half, ""},
		{disktest.EnvKillAt + "=6,torn", syscall.SIGKILL, "first\nsecond\n", ""},
		{disktest.EnvKillAt + "=99", 0, "first\nsecond\n", ""},
		{disktest.EnvFailAt + "=5:EIO", 0, "first\n", "input/output error"},
		{disktest.EnvFailAt + "=5:ENOSPC,torn", 0, half, "no space left on device"},
		{disktest.EnvFailFrom + "=3:EROFS", 0, "first\n", "read-only file system"},
		{disktest.EnvFailFrom + "=3:ENOSPC,create,write", 0, "first\n", "write"},
		{disktest.EnvFailAt + "=x:EIO", 0, "", "HEARTBEAT_TEST_FAIL_AT=x:EIO: strconv.Atoi"},
		{disktest.EnvFailAt + "=1:EWHAT", 0, "", `unknown errno "EWHAT"`},
		{disktest.EnvKillAt + "=1,worn", 0, "", "want n or n,torn"},
	} {
		t.Run(test.env, func(t *testing.T) {
			dir := t.TempDir()
			r := disktest.Child(t, "append", []string{dir}, test.env)
			assert.Equal(t, test.wantSignal, r.Signal)
			assert.Equal(t, test.wantLog, read(t, dir, "log"))
			assert.Contains(t, r.Stderr, test.wantStderr)
			assert.Equal(t, test.wantStderr != "", r.ExitCode > 0)
		})
	}
}

func TestReadCount(t *testing.T) {
	dir, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
	r := disktest.Child(t, "append", []string{dir}, disktest.EnvCount+"="+count, disktest.EnvKillAt+"=5")
	require.Equal(t, syscall.SIGKILL, r.Signal)
	ops := disktest.ReadCount(t, count).Ops()
	assert.Equal(t, appendOps[:5], kinds(ops))
	assert.Equal(t, disk.Op{Kind: disk.OpWrite, Path: filepath.Join(dir, "log"), Offset: -1, Data: []byte("second\n")}, ops[4])

	assert.Empty(t, disktest.ReadCount(t, filepath.Join(dir, "missing")).Ops())
}

func unmeasured(r disktest.Result) disktest.Result {
	r.MaxRSS = 0
	return r
}
