package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// onPath is a PATH on which the client and the product have their names.
func (r *rig) onPath() string {
	r.t.Helper()
	bin := r.t.TempDir()
	require.NoError(r.t, os.Symlink(r.binary, filepath.Join(bin, "claude")))
	require.NoError(r.t, os.Symlink(r.stop, filepath.Join(bin, "heartbeat-stop")))
	require.NoError(r.t, os.Symlink(r.heartbeat(), filepath.Join(bin, "heartbeat")))
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	require.NoError(r.t, os.Symlink(launch, filepath.Join(bin, "heartbeat-launch")))
	return "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// pipeline is a rig without a hook, whose sessions a pipeline's step starts.
type pipeline struct {
	*rig
	ctx context.Context
	tmp string // where the step keeps its files
	env []string
}

// inPipeline are variables of the step that it must keep from its session.
func inPipeline(ctx context.Context, t *testing.T, how answers) *pipeline {
	t.Helper()
	p := &pipeline{rig: newRig(t, how), ctx: ctx, tmp: t.TempDir()}
	if runtime.GOOS != "linux" {
		t.Skip("the step needs flock")
	}
	p.env = []string{p.onPath(), "TMPDIR=" + p.tmp, NoRetries, "CI=1", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=another", "CLAUDE_CODE_CHILD_SESSION=1"}
	return p
}

const ciPrompt = "../../../scripts/launchers/ci-prompt.sh"

// step starts the step for an entry, whose tag is its id.
func (p *pipeline) step(e entry, flags ...string) *started {
	p.t.Helper()
	args := append([]string{"--inbox", p.inbox, "--id", e.tag, "--project", p.Project}, flags...)
	return p.start(p.ctx, p.env, e.text, ciPrompt, args...)
}

// ran checks how a step ended: its status, its one line on stderr, and that it left
// nothing behind.
func (p *pipeline) ran(s *started, want int, words ...string) (stdout string) {
	p.t.Helper()
	stdout, stderr, status := s.wait()
	assert.Equal(p.t, want, status, stderr)
	assert.Equal(p.t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
	for _, w := range words {
		assert.Contains(p.t, stderr, w)
	}
	assert.Empty(p.t, p.files(), "temporary files")
	p.until(p.ctx, "the session is gone", func() bool { return len(p.processes("--settings")) == 0 })
	return stdout
}

// files are the step's temporary ones with their modes: the client has others in
// the same folder.
func (p *pipeline) files() map[string]string {
	modes := map[string]string{}
	for _, pattern := range []string{"heartbeat-ask-*"} {
		paths, _ := filepath.Glob(filepath.Join(p.tmp, pattern)) // the pattern is well-formed
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				modes[filepath.Base(pattern)] = info.Mode().String()
			}
		}
	}
	return modes
}

// sent finds the line of an entry that a step has sent.
func (r *rig) sent(e entry) entry {
	r.t.Helper()
	raw, err := os.ReadFile(r.inbox)
	require.NoError(r.t, err)
	for l := range strings.Lines(string(raw)) {
		if strings.Contains(l, asJSON(e.tag)) {
			e.id, e.line = e.tag, strings.TrimSuffix(l, "\n")
		}
	}
	require.NotEmpty(r.t, e.id, "%s was not sent", e.tag)
	r.entries = append(r.entries, e)
	return e
}

// processes are the command line and the environment of the workspace's processes
// whose command line has some text.
func (w *Workspace) processes(text string) (all [][2]string) {
	paths, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, path := range paths {
		environ, _ := os.ReadFile(filepath.Join(path, "environ")) // it may have ended
		line, _ := os.ReadFile(filepath.Join(path, "cmdline"))
		if bytes.Contains(environ, []byte("\x00HOME="+w.Home+"\x00")) && bytes.Contains(line, []byte(text)) {
			all = append(all, [2]string{string(line), string(environ)})
		}
	}
	return all
}

// atWork is what the processes of a step and its session show while the model is asked.
type atWork struct {
	shown    [][2]string // processes with the prompt on their command line
	sessions [][2]string
	files    map[string]string
	err      error
}

// A step without our commands says so. What else is wrong with a step is in ci_prompt.txtar.
func TestPipelineStepUsage(t *testing.T) {
	cmd := exec.Command(ciPrompt, "--id", "1")
	cmd.Env = []string{"PATH=" + t.TempDir() + ":/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, 78, status.ExitCode())
	assert.Equal(t, "ci-prompt: heartbeat is not on the PATH\n", string(out))
}

// The step drains what waited before, prints the reply, and leaves what came later. A
// second run asks nobody.
func TestHeartbeatPipelineAnswered(t *testing.T) {
	var p *pipeline
	var seen atWork
	all := some(5, verbatim)
	all[3].text = "[e4] of\nthe \"pipeline\" [e4]"
	p = inPipeline(within(t), t, func(tag string, nth int) model.Reply {
		if tag == "[e4]" {
			seen = atWork{p.processes("[e4] of"), p.processes("--settings"), p.files(), appendLine(p.inbox, all[4].line)}
		}
		return own(tag, nth)
	})
	p.add(all[:3]...)
	for range 2 {
		stdout := p.ran(p.step(all[3]), 0, "[e4] was answered")
		assert.Equal(t, ownReply("[e4]")+"\n", stdout)
		assert.Equal(t, 5, p.turns())
	}
	all[3] = p.sent(all[3])
	p.logged(append(answeredOnce(all[:4]...), fate{entry: all[4]})...)
	assert.Nil(t, p.flying())
	assert.NoFileExists(t, p.projectSettings())

	require.NoError(t, seen.err)
	assert.Empty(t, seen.shown, "the prompt shows in the process list")
	assert.Equal(t, map[string]string{"heartbeat-ask-*": "drwx------"}, seen.files)
	require.Len(t, seen.sessions, 1)
	for _, name := range []string{"CI", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION"} {
		assert.NotContains(t, seen.sessions[0][1], "\x00"+name+"=", "what the step is a part of")
	}
}

// appendLine is add for what runs beside the test.
func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Close())
}

// Steps that run at the same time take turns, and none interrupts another one's entry.
func TestHeartbeatPipelineParallel(t *testing.T) {
	p := inPipeline(within(t), t, own)
	all := some(4, verbatim)
	p.add(all[0])
	var steps []*started
	for _, e := range all[1:] {
		steps = append(steps, p.step(e))
	}
	for i, s := range steps {
		stdout, stderr, status := s.wait()
		assert.Zero(t, status, stderr)
		assert.Equal(t, ownReply(all[i+1].tag)+"\n", stdout)
		assert.Equal(t, 1, p.arrivals(all[i+1].text))
	}
	assert.Len(t, p.results(), 4, p.state())
	assert.Empty(t, p.deadLetters())
}

// An error of the model's API is waited out, and costs no attempt.
func TestHeartbeatPipelineFailed(t *testing.T) {
	p := inPipeline(minutes(t), t, first("[e2]", model.Overloaded()))
	all := some(2, verbatim)
	p.add(all[0])
	stdout := p.ran(p.step(all[1]), 0, "[e2] was answered")
	assert.Equal(t, ownReply("[e2]")+"\n", stdout)
	all[1] = p.sent(all[1])
	fates := fatesAmid(all, 2, "retry", "")
	fates[1].attempt = 1
	p.settled(fates...)
}

// An entry whose session is killed while it is answered is a dead letter when the step
// ends. A second run is a new attempt.
func TestHeartbeatPipelineKilled(t *testing.T) {
	p := inPipeline(within(t), t, first("[e2]", model.Hang()))
	all := some(2, verbatim)
	p.add(all[0])
	step := p.step(all[1])
	p.asked(p.ctx, "[e2]", 1)
	require.NoError(t, syscall.Kill(p.status().Session.PID, syscall.SIGKILL))
	p.ran(step, 3, "became a dead letter: orphaned", "the session was ended by signal 9")
	p.sent(all[1])
	require.Len(t, p.deadLetters(), 1)
	assert.Equal(t, "[e2]", p.deadLetters()[0].ID)
	assert.Len(t, p.results(), 1)

	stdout := p.ran(p.step(all[1]), 0, "[e2] was answered")
	assert.Equal(t, ownReply("[e2]")+"\n", stdout)
	assert.Len(t, p.results(), 2)
	assert.Nil(t, p.flying())
}

// After a session that dies with another's entry comes one that reaches the step's own.
func TestHeartbeatPipelineNotReached(t *testing.T) {
	p := inPipeline(minutes(t), t, first("[e1]", model.Hang()))
	all := some(2, verbatim)
	p.add(all[0])
	step := p.step(all[1])
	p.asked(p.ctx, "[e1]", 1)
	require.NoError(t, syscall.Kill(p.status().Session.PID, syscall.SIGKILL))
	p.ran(step, 0, "[e2] was answered")
	all[1] = p.sent(all[1])
	p.settled(fatesAmid(all, 1, "deadletter", "orphaned")...)
}

// The step does not wait for a session that does not start, and says why.
func TestHeartbeatPipelineNotStarted(t *testing.T) {
	p := inPipeline(minutes(t), t, own)
	p.writeJSON(filepath.Join(p.Home, ".claude.json"), map[string]any{})
	all := some(1, verbatim)
	p.ran(p.step(all[0]), 78, "no session came to [e1] (heartbeat-launch: set-up: ", "1 entry waits")
	all[0] = p.sent(all[0])
	p.logged(fate{entry: all[0]})
}

// An entry that is not answered in time ends with its session. The policy decides what a
// second run finds.
func TestHeartbeatPipelineTimedOut(t *testing.T) {
	p := inPipeline(within(t), t, first("[e2]", model.Hang()))
	all := some(2, verbatim)
	p.add(all[0])
	limit := unhurried(t, 12*time.Second, clients).String() // a session starts before, and gets to it
	stdout := p.ran(p.step(all[1], "--timeout", limit, "--on-orphan", "retry"), 124,
		"[e2] was not answered in time (--timeout "+limit+"): it stays queued: the entry [e2] waits to be delivered again", "1 redelivered")
	assert.Empty(t, stdout)
	p.says("no session", "waits to be delivered again")
	p.ran(p.step(all[1]), 0)
	all[1] = p.sent(all[1])
	fates := fatesAmid(all, 2, "retry", "")
	fates[1].attempt = 1 // the step stopped it, which does not count
	p.settled(fates...)
}

// A step that is cancelled ends its session as well.
func TestHeartbeatPipelineCancelled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(fmt.Sprint(sig), func(t *testing.T) {
			p := inPipeline(within(t), t, first("[e1]", model.Hang()))
			all := some(1, verbatim)
			step := p.step(all[0])
			p.asked(p.ctx, "[e1]", 1)
			session := p.status().Session.PID
			require.NoError(t, step.cmd.Process.Signal(sig))
			_, stderr, status := step.wait()
			assert.Equal(t, 128+int(sig), status, stderr)
			assert.True(t, script.Dead(session))
			assert.Empty(t, p.processes("--settings"))
			assert.Empty(t, p.files())
			require.Len(t, p.deadLetters(), 1)
			assert.Nil(t, p.flying())
		})
	}
}

// A step that is cancelled, or whose time is over, costs nobody else an entry: the one in flight is answered first.
func TestHeartbeatPipelineLeavesAnothers(t *testing.T) {
	goOn := make(chan struct{})
	p := inPipeline(within(t), t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" {
			<-goOn
		}
		return own(tag, nth)
	})
	all := some(2, verbatim)
	p.add(all[0])
	step := p.step(all[1])
	p.asked(p.ctx, "[e1]", 1)
	require.NoError(t, step.cmd.Process.Signal(syscall.SIGTERM))
	p.until(p.ctx, "the launcher waits for the answer", func() bool {
		sign, _ := os.ReadFile(filepath.Join(filepath.Dir(p.inbox), ".launch-lock"))
		return strings.Contains(string(sign), "it ends once the entry in flight is answered")
	})
	close(goOn)
	p.ran(step, 128+int(syscall.SIGTERM), "[e2]: it stays queued")
	all[1] = p.sent(all[1])
	p.logged(append(answeredOnce(all[0]), fate{entry: all[1]})...)
	assert.Empty(t, p.deadLetters())
	assert.Nil(t, p.flying())
}

// If a session works on the inbox, the step starts none, whether asked to or not.
func TestHeartbeatPipelineBesideASession(t *testing.T) {
	ctx := within(t)
	p := inPipeline(ctx, t, own)
	p.install("--mode", "persist", "--idle-interval", "1h")
	s := p.attended(ctx, p.options())
	p.waiting(ctx, 1)
	all := some(2, verbatim)
	for i, flags := range [][]string{{"--no-session"}, nil} {
		stdout, stderr, status := p.step(all[i], flags...).wait()
		assert.Zero(t, status, stderr)
		assert.Equal(t, ownReply(all[i].tag)+"\n", stdout)
	}
	assert.Equal(t, 3, p.turns(), "no other session began")
	p.quit(ctx, s)
}
