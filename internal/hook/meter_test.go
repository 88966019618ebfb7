package hook_test

import (
	"bytes"
	"fmt"
	"heartbeat/internal/meter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func status(total string) string {
	return fmt.Sprintf(`{"session_id":"s","transcript_path":"/dev/null/none.jsonl","cost":{"total_cost_usd":%s},"context_window":{"current_usage":null}}`, total)
}

type outcome struct {
	stdout, stderr string
	code           int
}

func runMeter(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command("heartbeat-stop", append([]string{"meter"}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("CLAUDE_PID=%d", os.Getpid()))
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func spent(t *testing.T, dir string) int64 {
	t.Helper()
	s, err := meter.Load(dir, "s")
	require.NoError(t, err)
	if s == nil {
		return -1
	}
	return s.Spent.Said
}

func TestItCountsAndSaysNothing(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"--inbox", filepath.Join(dir, "inbox.jsonl")}, {"--inbox=" + filepath.Join(dir, "inbox.jsonl")}} {
		assert.Equal(t, outcome{}, runMeter(t, status("0.5"), args...))
		assert.Equal(t, int64(500_000_000), spent(t, dir))
	}
	s, err := meter.Load(dir, "s")
	require.NoError(t, err)
	assert.False(t, s.At.IsZero())
}

// The person's line is shown as it was before, with the same on stdin, its own status
// and its own environment.
func TestItBecomesThePersonsLine(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	assert.Equal(t, outcome{stdout: status("0.5")}, runMeter(t, status("0.5"), "--inbox", inbox, "--then", "cat"))
	assert.Equal(t, outcome{"a\n'b' $x \"\n", "", 0}, runMeter(t, status("1"), "--inbox", inbox, `--then=printf '%s\n' a "'b' \$x \""`))
	assert.Equal(t, outcome{"out", "err", 3}, runMeter(t, status("2"), "--inbox", inbox, "--then", "printf out; printf err >&2; exit 3"))
	assert.Equal(t, int64(2_000_000_000), spent(t, dir))
	assert.Equal(t, 127, runMeter(t, status("3"), "--inbox", inbox, "--then", "/dev/null/none").code)
	assert.Equal(t, 2, runMeter(t, status("4"), "--inbox", inbox, "--then", "if").code, "a syntax error is the shell's")
	assert.Equal(t, int64(4_000_000_000), spent(t, dir))

	out := runMeter(t, status("5"), "--inbox", inbox, "--then", "head -c 100000000 /dev/zero")
	assert.Len(t, out.stdout, 100_000_000)
	assert.Equal(t, outcome{stdout: "x"}, runMeter(t, status("6"), "--inbox", inbox, "--then", "printf x; exec 0<&-"), "it need not read")
}

// One meter may go on as another, of another inbox.
func TestTwoMeters(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	inner := "heartbeat-stop meter --inbox '" + filepath.Join(two, "inbox") + "' --then 'printf shown' # a note"
	assert.Equal(t, outcome{stdout: "shown"}, runMeter(t, status("0.5"), "--inbox", filepath.Join(one, "inbox"), "--then", inner))
	assert.Equal(t, int64(500_000_000), spent(t, one))
	assert.Equal(t, int64(500_000_000), spent(t, two))
}

// Whatever goes wrong with the count, the person's line is shown, and nothing else.
func TestItIsSilentOnErrors(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	huge := `{"session_id":"s","x":"` + strings.Repeat("y", 3<<20) + `"}`
	for name, stdin := range map[string]string{
		"nothing": "", "no object": "null", "cut off": `{"session_id":"s"`, "no session": "{}", "negative": status("-1"), "infinite": status("1e400"), "not a number": status("NaN"),
		"deep": strings.Repeat("[", 500_000), "huge": huge, "zeros": strings.Repeat("\x00", 100_000), "odd name": `{"session_id":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		assert.Equal(t, outcome{stdout: "shown"}, runMeter(t, stdin, "--inbox", inbox, "--then", "printf shown"), name)
	}
	assert.Equal(t, int64(-1), spent(t, dir))
	for name, path := range map[string]string{"no folder": filepath.Join(dir, "none", "inbox"), "not a folder": "/dev/null/inbox"} {
		assert.Equal(t, outcome{stdout: "shown"}, runMeter(t, status("1"), "--inbox", path, "--then", "printf shown"), name)
	}
	for name, make := range map[string]func(string) error{
		"fifo": func(p string) error { return unix.Mkfifo(p, 0o600) },
		"link": func(p string) error { return os.Symlink("/etc/passwd", p) },
	} {
		odd := t.TempDir()
		require.NoError(t, make(filepath.Join(odd, meter.Name("s"))))
		assert.Equal(t, outcome{stdout: "shown"}, runMeter(t, status("1"), "--inbox", filepath.Join(odd, "inbox"), "--then", "printf shown"), name)
	}
}

// More than a pipe holds reaches the person's line too, up to a bound.
func TestALongStatusIsPassedOn(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox")
	long := strings.Replace(status("0.5"), "{", `{"x":"`+strings.Repeat("y", 300_000)+`",`, 1)
	assert.Equal(t, outcome{stdout: long}, runMeter(t, long, "--inbox", inbox, "--then", "cat"))
	assert.Equal(t, int64(500_000_000), spent(t, filepath.Dir(inbox)))
	out := runMeter(t, strings.Repeat("y", 5<<20), "--inbox", inbox, "--then", "wc -c")
	assert.Equal(t, "1048576", strings.TrimSpace(out.stdout))
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"--inbox is missing":              {"--then", "x"},
		"flag needs an argument: --inbox": {"--inbox"},
		"flag needs an argument: --then":  {"--inbox", "x", "--then"},
		"unknown flag: --no":              {"--inbox", "x", "--no"},
		`unexpected argument "y"`:         {"--inbox", "x", "y"},
	} {
		out := runMeter(t, "", args...)
		assert.Equal(t, 1, out.code)
		assert.Contains(t, out.stderr, "heartbeat-stop: "+want)
		assert.Empty(t, out.stdout)
	}
	out := runMeter(t, "", "--help")
	assert.Zero(t, out.code)
	assert.Contains(t, out.stdout, "Usage:\n  heartbeat-stop meter [flags]")
}
