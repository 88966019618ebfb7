package hook_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"heartbeat/internal/cli"
	"heartbeat/internal/command"
	"heartbeat/internal/hook"
	"heartbeat/internal/hook/runs"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the command itself where a script runs it.
func TestMain(m *testing.M) {
	machine.TestOnlyTrustAll = os.Getenv("STRICT") == "" // scripts write state by hand
	crash.EveryNth = long.Rounds(40, 1)
	script.Main(m, map[string]func(){"heartbeat": command.Main, "heartbeat-stop": hook.Main})
}

func fatal(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", strings.Join(os.Args, " "), err)
	os.Exit(1)
}

// anyCommand runs the verb that comes first, or else the hook.
func anyCommand(args []string, s cli.Streams) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		s.Command = "heartbeat"
		return command.Run(args, s)
	}
	s.Command = hook.CommandName
	return hook.RunFull(args, s, runs.Open)
}
