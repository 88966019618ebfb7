package babysitter

import (
	"os/exec"

	"heartbeat/internal/host"
	"heartbeat/internal/host/guardian"
)

// guarded has a guardian stand by who kills the family of the CLI, should this process be
// killed. Without one, as in a program that cannot be a guardian, only the program itself
// dies then.
func guarded(cmd *exec.Cmd) (over func()) {
	mark, err := host.RandomName()
	if err != nil {
		return func() {}
	}
	cmd.Env = guardian.Marked(cmd.Env, mark)
	g, err := guardian.Post(mark, nil)
	if err != nil || g == nil {
		return func() {}
	}
	return g.Dismiss
}
