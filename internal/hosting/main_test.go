package hosting

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
)

// ran is how a command went.
type ran struct {
	status   int
	out, err string
}

// call runs the command with these arguments and this stdin.
func call(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	in, err := os.CreateTemp(t.TempDir(), "stdin")
	require.NoError(t, err)
	_, err = in.WriteString(stdin)
	require.NoError(t, err)
	_, err = in.Seek(0, 0)
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	var out, stderr bytes.Buffer
	status := Run(args, cli.Streams{Command: command, In: in, Out: &out, Err: &stderr})
	return ran{status, out.String(), stderr.String()}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"strat":                       `unknown verb "strat": did you mean start?`,
		"--frob":                      "unknown flag: --frob",
		"list --jsno":                 "unknown flag: --jsno",
		"status":                      "name a session: heartbeat-host list shows them",
		"status a b":                  `unexpected argument "b"`,
		"start x":                     `unexpected argument "x"`,
		"start --stall-action wait":   `invalid argument "wait" for "--stall-action" flag: it is one of report, cancel`,
		"start --memory-max much":     `invalid argument "much" for "--memory-max" flag: it takes a number of bytes, such as 1048576, 512K, 100M or 4G`,
		"start --max-attempts 0":      "--max-attempts is 0: it must be 1 or more",
		"attach a --from 0":           "--from is 0: messages are numbered from 1",
		"drain-dlq --once --every 1s": "--every is about several passes: leave it or --once out",
		"send a b c":                  `unexpected argument "b"`,
		"gc --older-than soon":        `invalid argument "soon" for "--older-than" flag: it takes seconds or a duration, such as 300, 0.5, 5m or 30d`,
	} {
		got := call(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitError, got.status, args)
		assert.Empty(t, got.out, args)
		assert.Regexp(t, "^heartbeat-host: "+regexp.QuoteMeta(want)+` \(see heartbeat-host (\S+ )?--help\)\n$`, got.err)
	}
}

func TestHelp(t *testing.T) {
	assert.Equal(t, call(t, ""), call(t, "", "help"))
	assert.Equal(t, call(t, ""), call(t, "", "--help"))
	assert.Equal(t, call(t, "", "start", "--help"), call(t, "", "help", "start"))
	assert.Equal(t, call(t, "", "--version"), call(t, "", "version"))
	assert.Contains(t, call(t, "", "man", "cancel").out, ".SH NAME\nheartbeat\\-host\\-cancel \\- end a session")
	assert.Contains(t, call(t, "", "man").out, `.TH "HEARTBEAT\-HOST" 1`)
}
