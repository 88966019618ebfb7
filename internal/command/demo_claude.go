package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/hook"
)

// claudeGrace is how long a client that was asked to end may take.
const claudeGrace = 5 * time.Second

// drainWithClaude runs the client in print mode, with the hook wired for this
// one session.
func (d *demo) drainWithClaude(ctx context.Context, box *inbox.Inbox) error {
	bin, err := exec.LookPath("claude")
	if err != nil {
		return fmt.Errorf("find Claude Code: %w: install it, or run the demo without --claude", err)
	}
	wired := filepath.Join(d.dir, "settings.json")
	if _, err := settings.InstallFile(wired, settings.Blocking(d.self, []string{hook.FullVerb, "--inbox", box.Path()}, 0), settings.RefuseLinks); err != nil {
		return err
	}
	d.say("\n%s works through the inbox ...\n", bin)
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, "-p", "Answer in one short sentence: are you ready?", "--settings", wired)
	cmd.Dir, cmd.Env = d.dir, claude.WithoutIdentity(os.Environ())
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = claudeGrace
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w: %s", bin, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}
