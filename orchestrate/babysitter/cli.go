// Package babysitter runs the babysitter CLI, and the commands that tasks ask for. It is the only package of
// heartbeat that writes to a run.
//
// The output of the CLI is unreliable. Process code prints before and after the answer. The CLI may print nothing
// at all, or answer and keep running. It exits with 1 after some successes and with 0 for a failed run. So the
// answer is whatever in the output has the shape of one. Without an answer the exit status counts, and then the
// error output. If these leave open whether a result was posted, the run's journal decides.
//
// Two writers at once damage a run's journal. So every call that writes holds a lock of heartbeat's own.
package babysitter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"
)

// CLI says how to run the babysitter CLI. The zero value runs the one on the PATH. Several goroutines may call its
// methods.
type CLI struct {
	// Command is the program and its leading arguments, as [effect.ParseCommand] returns them, such as npx -y -p
	// @a5c-ai/babysitter-sdk@0.0.187 babysitter. Empty means babysitter.
	Command []string
	// Note, unless nil, gets a sentence for a person about a call that succeeded in an unusual way.
	Note func(format string, args ...any)

	maxWait  time.Duration // see wait; 0 means half a minute
	patience float64       // multiplies every timeout; 0 means 1
}

func (c *CLI) note(format string, args ...any) {
	if c.Note != nil {
		c.Note(format, args...)
	}
}

// wait is how long a call waits for other processes that work on the run: for heartbeat's own lock, and again for the
// CLI's. The CLI itself gives up after ten seconds.
func (c *CLI) wait() time.Duration { return cmp.Or(c.maxWait, 30*time.Second) }

// Version asks the CLI for its version, such as 0.0.187. A version other than [effect.MeasuredVersion] is noted,
// but is no error: a call fails only if its own answer has an unexpected shape.
func (c *CLI) Version(ctx context.Context) (string, error) {
	quiet := *c // a slow disk is not worth a note
	quiet.Note = nil
	answer, err := quiet.callTwice(ctx, request{doing: "ask the babysitter CLI for its version", command: "version", timeout: versionTimeout, answer: findVersion})
	if err != nil {
		return "", err
	}
	version := answer.Str
	known := "nothing is known of it"
	if version == "0.0.174" {
		known = "with it tasks were delivered three times, and then the run failed"
	}
	if version != effect.MeasuredVersion {
		c.note("the babysitter CLI (%s) is version %s, and heartbeat was measured with %s: %s; if runs go wrong, install that version: %s",
			c.commandLine(), version, effect.MeasuredVersion, known, effect.Install)
	}
	return version, nil
}

// findVersion returns the last line that reads as a version. Package runners print other lines before it.
func findVersion(stdout []byte) (found gjson.Result, ok bool) {
	for line := range strings.Lines(string(stdout)) {
		var major, minor, patch int
		line = strings.TrimSpace(line)
		if n, _ := fmt.Sscanf(line, "%d.%d.%d", &major, &minor, &patch); n == 3 && !strings.ContainsAny(line, " \t") {
			found, ok = gjson.Result{Type: gjson.String, Str: line}, true
		}
	}
	return found, ok
}

// telltales are variables that make the CLI believe that it belongs to another harness, session or folder. A process
// that was started in such a session inherits them, although they have nothing to do with the run.
var telltales = []string{
	"BABYSITTER_EXTENSION_PATH", "BABYSITTER_GLOBAL_STATE_DIR", "BABYSITTER_RUNS_DIR", "BABYSITTER_SESSION_ID", "BABYSITTER_STATE_DIR",
	"CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT",
	"CODEX_HOME", "CODEX_PLUGIN_ROOT", "CODEX_SESSION_ID", "CODEX_THREAD_ID",
	"COPILOT_ENV_FILE", "COPILOT_GITHUB_TOKEN", "COPILOT_HOME", "COPILOT_PLUGIN_ROOT",
	"CURSOR_PLUGIN_ROOT", "CURSOR_PROJECT_DIR", "CURSOR_VERSION",
	"GEMINI_CWD", "GEMINI_EXTENSION_PATH", "GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID",
	"OMP_PLUGIN_ROOT", "OMP_SESSION_ID",
	"OPENCODE_CONFIG", "OPENCODE_PLUGIN_ROOT", "OPENCODE_SESSION_ID",
	"PI_PLUGIN_ROOT", "PI_SESSION_ID",
	// VITEST makes the CLI load process modules in another way. NODE_CHANNEL_FD makes node talk to its parent over
	// a descriptor that it did not get.
	"VITEST", "NODE_CHANNEL_FD",
}

// States that an iteration leaves a run in.
const (
	Waiting   = "waiting"   // for the results of NextActions
	Completed = "completed" // do not iterate again: that runs the process once more
	Failed    = "failed"    // the run's journal has the error
	// Executed: hooks of the project carried out tasks themselves, which a plain installation of the measured
	// version never does. Iterate again.
	Executed = "executed"
)

// Iteration is what run:iterate answers.
type Iteration struct {
	Status string // Waiting, Completed, Failed or Executed
	// NextActions are the effects whose results the run waits for, in the order in which the process requested
	// them. There is at least one if Status is Waiting, else none.
	NextActions []Action
}

// Action is an effect that a process requested.
type Action struct {
	Effect string `json:"effect"`
	Kind   string `json:"kind"` // node, agent, skill, shell, breakpoint, sleep, orchestrator_task, or the process's own
	// Until is when a sleep is over; zero for other effects. Never post the result of a sleep before that.
	Until time.Time `json:"until,omitzero"`
	// Task is the digest of a command's task.json as the process asked for it. The caller sets it.
	Task string `json:"task,omitempty"`
}

// Iterate runs the process of a run up to the effects that it waits for, or to its end. While results are missing,
// another call returns the same. Iterate writes to the run, and so waits for other writers.
func (c *CLI) Iterate(ctx context.Context, of *runs.Run) (it Iteration, err error) {
	r := run{of.Dir(), of.ID()}
	err = c.underLock(ctx, r, func() error {
		answer, err := c.callTwice(ctx, request{
			doing: "iterate the run " + r.dir, command: "run:iterate", args: []string{r.dir, "--json"}, dir: Project(r.dir), timeout: iterateTimeout,
			answer: answerWhere(r.isIteration),
		})
		it = iterationOf(answer)
		return err
	})
	return it, err
}

// isIteration reports whether an object is the answer about r, and not other output of process code.
func (r run) isIteration(a gjson.Result) bool {
	switch a.Get("status").Str {
	case Waiting:
		if len(a.Get("nextActions").Array()) == 0 {
			return false
		}
	case Executed, Completed, Failed:
	default:
		return false
	}
	return a.Get("reason").Exists() && a.Get("metadata.runId").String() == r.id
}

func iterationOf(a gjson.Result) Iteration {
	it := Iteration{Status: a.Get("status").Str}
	if it.Status != Waiting {
		return it
	}
	for _, n := range a.Get("nextActions").Array() {
		it.NextActions = append(it.NextActions, Action{
			Effect: n.Get("effectId").String(), Kind: n.Get("kind").String(), Until: instant(n.Get("schedulerHints.sleepUntilEpochMs")),
		})
	}
	return it
}

// instant returns a number of milliseconds since 1970 as a time, or zero for any other value.
func instant(v gjson.Result) (t time.Time) {
	const most = 1e14 // int64 overflows far beyond
	if ms := v.Num; v.Type == gjson.Number && ms > 0 && ms < most {
		return time.UnixMilli(int64(ms))
	}
	return t
}
