package doctor

import (
	"context"
	"strings"
	"time"

	"heartbeat/internal/claude"
)

const versionLimit = 10 * time.Second

// client is the Claude Code that a session started from here would run.
type client struct {
	path    string // "" when there is none
	release claude.Release
	known   bool
	err     error
}

func readClient(in Input) client {
	path, there := in.lookPath("claude")
	if !there {
		return client{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionLimit)
	defer cancel()
	c := client{path: path}
	text, err := in.Version(ctx, path)
	if err == nil {
		c.release, err = claude.ParseRelease(text)
	}
	c.known, c.err = err == nil, err
	return c
}

// checkClient compares the client's release with what heartbeat needs.
func checkClient(e *examination) []Check {
	const fix = "claude update"
	c := e.client
	if c.path == "" {
		return []Check{fail("client", "install Claude Code, or put it on the PATH", "there is no claude on the PATH")}
	}
	if c.err != nil {
		return []Check{warn("client", "see what `"+quote(c.path, "--version")+"` says", "the release of %s is not known: %v", c.path, c.err)}
	}
	lacks := strings.Join(c.release.Lacks(), "; ")
	switch {
	case c.release.Before(claude.ExecForm) && e.execWired():
		return []Check{fail("client", fix, "%s is %s, which ignores the args of a hook, so the hook starts without its inbox; it lacks %s", c.path, c.release, lacks)}
	case lacks != "":
		return []Check{warn("client", fix, "%s is %s; it lacks %s", c.path, c.release, lacks)}
	case claude.Measured.Before(c.release):
		return []Check{ok("client", "%s is %s, newer than %s, on which its behaviour was measured", c.path, c.release, claude.Measured)}
	}
	return []Check{ok("client", "%s is %s", c.path, c.release)}
}

// execWired reports whether a hook depends on args. Any hook counts if it is not known
// which inbox is meant.
func (e *examination) execWired() bool {
	for _, w := range e.wires {
		if len(w.Args) > 0 && e.relate(w) != other {
			return true
		}
	}
	return false
}
