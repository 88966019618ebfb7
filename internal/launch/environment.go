package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
)

// environment is the command's. The variables by which a session around this one would
// make it think that it is its child are left out. So is CI, with which programs do
// without a terminal; withoutCI says that it was set.
func environment(environ, add []string) (env []string, withoutCI bool) {
	env = claude.WithoutIdentity(slices.Clone(environ))
	before := len(env)
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CI=") })
	withoutCI = len(env) < before && !slices.ContainsFunc(add, func(kv string) bool { return strings.HasPrefix(kv, "CI=") })
	for _, kv := range add {
		env = setVariable(env, kv)
	}
	return env, withoutCI
}

// withValues gives each variable of which only the name was given its value in the
// environment.
func withValues(add, environ []string) (all []string, err error) {
	for _, kv := range add {
		if !strings.Contains(kv, "=") {
			i := slices.IndexFunc(environ, func(here string) bool { return strings.HasPrefix(here, kv+"=") })
			if i < 0 {
				return nil, fmt.Errorf("--env %s: it is not set here: set it, or give its value, as in %s=V", kv, kv)
			}
			kv = environ[i]
		}
		all = append(all, kv)
	}
	return all, nil
}

// setVariable replaces what K was by K=V.
func setVariable(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, kv)
}

// inFlight reports whether an entry is being worked on, in the inbox that the
// environment names; nil where it names none.
func inFlight(env []string, dir string) func() bool {
	for _, kv := range env {
		inbox, found := strings.CutPrefix(kv, cli.InboxVariable+"=")
		if !found || inbox == "" {
			continue
		}
		if !filepath.IsAbs(inbox) {
			inbox = filepath.Join(dir, inbox)
		}
		file := filepath.Join(filepath.Dir(inbox), ".in-flight")
		return func() bool {
			_, err := os.Lstat(file)
			return err == nil
		}
	}
	return nil
}
