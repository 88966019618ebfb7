package babysitter

import (
	"os/exec"

	"heartbeat/internal/host"
	"heartbeat/internal/host/guardian"
)

// guarded starts a guardian that kills the CLI's process group if this process is killed.
// Without a guardian, as in a program that cannot be one, only the CLI itself dies then.
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
