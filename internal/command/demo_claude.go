package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/hook"
)

// claudeHeadStart is how long the client has had a prompt when it is killed. By then its
// transcript, which it writes with a delay, has the prompt.
const claudeHeadStart = time.Second

// demoClaude starts sessions of the client on the PATH, in print mode. The hook is wired
// for these sessions alone.
type demoClaude struct {
	bin, dir, wired string
}

func newDemoClaude(d *demo) (demoClient, error) {
	bin, err := exec.LookPath("claude")
	if err != nil {
		return nil, fmt.Errorf("find Claude Code: %w: install it, or run the demo without --claude", err)
	}
	c := &demoClaude{bin: bin, dir: d.dir, wired: filepath.Join(d.dir, "settings.json")}
	wiring := settings.Blocking(d.self, []string{hook.FullVerb, "--inbox", filepath.Join(d.dir, "inbox.jsonl"), "--on-orphan", "retry"}, 0)
	if _, err := settings.InstallFile(c.wired, wiring, settings.RefuseLinks); err != nil {
		return nil, err
	}
	d.say("The agent of this demo is %s, with your account.\n", bin)
	return c, nil
}

func (c *demoClaude) start(string) (*demoSession, error) {
	cmd := exec.Command(c.bin, "-p", "Answer in one short sentence: are you ready?", "--settings", c.wired)
	cmd.Dir, cmd.Env = c.dir, claude.WithoutIdentity(os.Environ())
	s, err := startSession(cmd)
	if err != nil {
		return nil, err
	}
	s.headStart = claudeHeadStart
	return s.await(), nil
}
