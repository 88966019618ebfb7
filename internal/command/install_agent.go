package command

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
)

// agentHooks is where a client's hooks are wired, and how.
type agentHooks struct {
	path   func(scope settings.Scope, project, home string) (string, error)
	wiring func(program string, args []string, idle time.Duration) settings.Wiring
	beside func(o *installFlags, path, verb string, s cli.Streams) (beside, error)
	// lacks says why a flag means nothing for the client.
	lacks map[string]string
	// then is what is left to do once it is wired.
	then string
}

const (
	firstAgent = "claude"
	noDollars  = "Codex does not say what it costs; tokens are counted"
)

// agents are the clients that install knows, by what --agent calls them.
var agents = map[string]agentHooks{
	firstAgent: {
		path: func(scope settings.Scope, project, home string) (string, error) {
			return settings.Path(scope, project, home, os.Getenv("CLAUDE_CONFIG_DIR"))
		},
		wiring: settings.Blocking,
		beside: (*installFlags).projectTools,
	},
	"codex": {
		path: func(scope settings.Scope, project, home string) (string, error) {
			return settings.LinesPath(scope, project, home, os.Getenv("CODEX_HOME"))
		},
		wiring: settings.Lines,
		beside: (*installFlags).hookConfig,
		lacks: map[string]string{
			"rewake":               "Codex runs no hooks in the background",
			"max-cost-per-entry":   noDollars,
			"max-cost-per-session": noDollars,
			"max-cost-per-day":     noDollars,
			"max-tokens-per-entry": "Codex cannot be stopped between two requests",
		},
		then: "Codex runs no hook that nobody has trusted, and under exec says nothing of it: start codex in the project once, and trust the folder and the hooks",
	},
}

func (o *installFlags) addAgent(f *pflag.FlagSet) {
	o.agent = firstAgent
	f.Var(cli.Choice(&o.agent, slices.Sorted(maps.Keys(agents))...), "agent", "the client whose hooks these are")
}

// hooks is what is known of the client.
func (o *installFlags) hooks() agentHooks {
	if o.agent == "" {
		return agents[firstAgent]
	}
	return agents[o.agent]
}

// checkAgent refuses flags that mean nothing for the client.
func (o *installFlags) checkAgent(f *pflag.FlagSet) error {
	lacks := o.hooks().lacks
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		if f.Lookup(name) != nil && f.Changed(name) {
			return cli.Usage(fmt.Errorf("--%s means nothing with --agent %s: %s", name, o.agent, lacks[name]))
		}
	}
	return nil
}
