package client

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// pane is a shell in tmux, which tells how its terminal is set.
type pane struct {
	*rig
	socket string
}

func (r *rig) pane() *pane {
	r.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		r.t.Skip("there is no tmux")
	}
	p := &pane{r, filepath.Join(filepath.Dir(r.Home), "tmux")}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", r.Project, "exec env 'PS1=prompt> ' bash --norc -i")
	r.t.Cleanup(func() { p.tmux("kill-server") })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	cmd.Env = p.environ([]string{NoRetries})
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%q: %s", args, out)
	return string(out)
}

func (p *pane) types(keys string) { p.tmux("send-keys", "-l", keys) }

func (p *pane) enters(line string) { p.types(line); p.tmux("send-keys", "Enter") }

func (p *pane) shows(ctx context.Context, text string) {
	p.t.Helper()
	p.until(ctx, "the pane shows "+text, func() bool { return strings.Contains(p.tmux("capture-pane", "-p"), text) })
}

// set is how the terminal is set.
func (p *pane) set() string {
	settings, err := exec.Command("stty", "-g", "-F", strings.TrimSpace(p.tmux("display", "-p", "#{pane_tty}"))).Output()
	require.NoError(p.t, err)
	return string(settings) + p.tmux("display", "-p", "other screen #{alternate_on} cursor #{cursor_flag} mouse #{mouse_any_flag} #{mouse_sgr_flag} keypad #{keypad_flag} "+
		"#{keypad_cursor_flag} insert #{insert_flag} wrap #{wrap_flag} region #{scroll_region_upper} #{scroll_region_lower}")
}

// Whatever is killed, the terminal is left as it was, and what a person types meanwhile is
// not run by the shell.
func TestTerminalIsThePersons(t *testing.T) {
	launch, err := buildLaunch()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		kill  func(*pane)
		types bool
	}{
		"the client is killed":   {func(p *pane) { p.killClient() }, true},
		"the launcher is killed": {func(p *pane) { p.signalLauncher(syscall.SIGKILL) }, false}, // what comes then is the shell's
		"it is terminated":       {func(p *pane) { p.signalLauncher(syscall.SIGTERM) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			p := newRig(t, first("[e1]", model.Hang())).add(some(1)...).pane()
			p.shows(ctx, "prompt>")
			p.enters("clear; echo rea''dy")
			p.shows(ctx, "ready")
			before := p.set()
			p.enters(strings.Join([]string{launch, "--inbox", p.inbox, "--hook", p.stop, "--max-restarts", "0", "--start-timeout", "5m", "--", p.binary, "'" + prompt(1) + "'"}, " "))
			p.asked(ctx, "[e1]", 1)
			p.shows(ctx, "Stop hook")
			assert.NotEqual(t, before, p.set(), "the client sets nothing")
			p.types("please remove the old things; ")
			p.shows(ctx, "please remove")
			c.kill(p)
			if c.types {
				p.types("touch EXECUTED; ")
				p.enters("touch EXECUTED")
			}
			p.shows(ctx, "prompt>")
			p.until(ctx, "the terminal is as it was", func() bool { return p.set() == before })
			p.enters("clear; echo do''ne")
			p.shows(ctx, "done")
			_, err := os.Lstat(filepath.Join(p.Project, "EXECUTED"))
			assert.ErrorIs(t, err, os.ErrNotExist)
			assert.Equal(t, before, p.set())
		})
	}
}

// signalLauncher signals the launcher that works on the inbox.
func (p *pane) signalLauncher(sig syscall.Signal) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(p.inbox), ".launch-lock"))
	require.NoError(p.t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(p.t, err)
	require.NoError(p.t, syscall.Kill(pid, sig))
}
