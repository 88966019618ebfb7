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

// environment is the command's. What a session around this one would have it
// take itself for is left out, and CI as well, which has programs do without a
// terminal; without names that where it was set.
func environment(environ, add []string, keep bool) (env []string, without string) {
	env = slices.Clone(environ)
	if !keep {
		env = claude.WithoutIdentity(env)
		here := len(env)
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CI=") })
		if len(env) < here {
			without = "CI"
		}
	}
	for _, kv := range add {
		env = setVariable(env, kv)
	}
	return env, without
}

// withValues has each variable that only its name was given of take its value from
// the environment.
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

// setVariable has K=V take the place of what K was.
func setVariable(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, kv)
}

// inFlight tells whether an entry is being worked on, where the environment names
// an inbox; nil where it does not.
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
