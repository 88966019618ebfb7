package command

import (
	"os"
	"strings"
	"testing"

	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/hook/runs"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the command itself where a script runs it.
func TestMain(m *testing.M) {
	machine.TestOnlyTrustAll = os.Getenv("STRICT") == "" // scripts write state by hand
	programs := script.Programs(hook.Main)
	programs["heartbeat"], programs["heartbeat-stop"] = Main, hook.Main
	programs[guardian.Name] = Main
	script.Main(m, programs)
}

// anyCommand is the verb that comes first, or else the hook.
func anyCommand(args []string, s cli.Streams) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		s.Command = commandName
		return Run(args, s)
	}
	s.Command = hook.CommandName
	return hook.RunFull(args, s, runs.Open)
}
