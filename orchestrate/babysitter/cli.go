package babysitter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/orchestrate/babysitter/invocation"
)

// CLI says how to run the babysitter CLI. The zero value runs the babysitter on the PATH.
// Its methods may be called from several goroutines.
type CLI struct {
	// Command and its leading arguments, as [invocation.Parse] returns them, such as
	// npx -y -p @a5c-ai/babysitter-sdk@0.0.187 babysitter; empty is babysitter.
	Command []string
	// Env is added to heartbeat's own environment, as NAME=VALUE. Variables by which the
	// CLI would take itself for a part of another session are left out of both.
	Env []string
	// Dir is the working directory of the CLI, and so of process code. If it is empty, it
	// is the project (P for a run in P/.a5c/runs), or heartbeat's own directory for a run
	// that does not lie in a project.
	Dir string
	// Wait is how long a call waits for other processes that work on the run: for
	// heartbeat's own lock, and again for the CLI's. 0 is half a minute. The CLI itself
	// gives up after ten seconds.
	Wait time.Duration
	// Note is called with a sentence for a person about a call that succeeded in an
	// unusual way. It may be nil.
	Note func(format string, args ...any)
	// Patience is a factor for every timeout, for a slow machine. 0 is 1.
	Patience float64
}

func (c *CLI) note(format string, args ...any) {
	if c.Note != nil {
		c.Note(format, args...)
	}
}

func (c *CLI) wait() time.Duration {
	if c.Wait > 0 {
		return c.Wait
	}
	return 30 * time.Second
}

// Version asks the CLI for its version, such as 0.0.187. A version other than
// [invocation.MeasuredVersion] is noted, but no error: if an answer of the CLI has another
// shape than expected, the call that needs the answer fails.
func (c *CLI) Version(ctx context.Context) (string, error) {
	asking := request{doing: "ask the babysitter CLI for its version", command: "version", timeout: versionTimeout}
	version, err := c.askVersion(ctx, asking)
	if errors.Is(err, ErrTimeout) { // node may have been read from a slow disk
		asking.timeout *= longer
		version, err = c.askVersion(ctx, asking)
	}
	if err != nil {
		return "", err
	}
	if version != invocation.MeasuredVersion {
		c.note("the babysitter CLI (%s) is version %s, and heartbeat was measured with %s: %s; if runs go wrong, install that version: %s",
			c.shown(), version, invocation.MeasuredVersion, known(version), invocation.Install)
	}
	return version, nil
}

func (c *CLI) askVersion(ctx context.Context, asking request) (string, error) {
	out, err := c.ask(ctx, asking)
	if err != nil {
		return "", err
	}
	version, ok := findVersion(out.stdout)
	if !ok {
		return "", c.explain(asking, out)
	}
	return version, nil
}

// findVersion is the last line that reads as a version: package runners print other lines
// before it.
func findVersion(stdout []byte) (string, bool) {
	found := ""
	for line := range strings.Lines(string(stdout)) {
		var major, minor, patch int
		line = strings.TrimSpace(line)
		if n, _ := fmt.Sscanf(line, "%d.%d.%d", &major, &minor, &patch); n == 3 && !strings.ContainsAny(line, " \t") {
			found = line
		}
	}
	return found, found != ""
}
