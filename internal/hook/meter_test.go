package hook_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// Settings that were installed by earlier releases run it: the person's line is shown as it was before, with the same on stdin, its own status
// and its own environment.
func TestItBecomesThePersonsLine(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	assert.Equal(t, outcome{stdout: status("0.5")}, runMeter(t, status("0.5"), "--inbox", inbox, "--then", "cat"))
	assert.Equal(t, outcome{"a\n'b' $x \"\n", "", 0}, runMeter(t, status("1"), "--inbox", inbox, `--then=printf '%s\n' a "'b' \$x \""`))
	assert.Equal(t, outcome{"out", "err", 3}, runMeter(t, status("2"), "--inbox", inbox, "--then", "printf out; printf err >&2; exit 3"))
	assert.Equal(t, 127, runMeter(t, status("3"), "--inbox", inbox, "--then", "/dev/null/none").code)
	assert.Equal(t, 2, runMeter(t, status("4"), "--inbox", inbox, "--then", "if").code, "a syntax error is the shell's")

	out := runMeter(t, status("5"), "--inbox", inbox, "--then", "head -c 100000000 /dev/zero")
	assert.Len(t, out.stdout, 100_000_000)
	assert.Equal(t, outcome{stdout: "x"}, runMeter(t, status("6"), "--inbox", inbox, "--then", "printf x; exec 0<&-"), "it need not read")
}

// One may go on as another, of another inbox.
func TestTwoMeters(t *testing.T) {
	inner := "heartbeat-stop meter --inbox /y/inbox --then 'printf shown' # a note"
	assert.Equal(t, outcome{stdout: "shown"}, runMeter(t, status("0.5"), "--inbox", "/x/inbox", "--then", inner))
	assert.Equal(t, outcome{}, runMeter(t, status("0.5"), "--inbox", "/x/inbox"))
}
