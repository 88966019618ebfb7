package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	fleet "heartbeat/internal/fleet/page"
	"heartbeat/internal/hook"
	hosting "heartbeat/internal/hosting/verbs"
	"heartbeat/internal/launch"
	mcp "heartbeat/internal/mcp/page"
	"heartbeat/internal/orphans"
	watching "heartbeat/internal/watching/page"
)

func completionVerb() cli.Verb {
	return cli.Verb{
		Name:  "completion",
		Args:  "bash|zsh|fish",
		Words: []string{"bash", "zsh", "fish"},
		Short: "print a completion script for a shell",
		Long: `Print a script that completes verbs, flags and what follows them in a shell, of
heartbeat, heartbeat-host, heartbeat-launch, heartbeat-mcp, heartbeat-nats,
heartbeat-stop and heartbeat-watch. For the ids of entries, of dead letters and of
hosted sessions it asks the heartbeat on the PATH, about the inbox that the line or
HEARTBEAT_INBOX names; all else is in the script. Where a shell looks for a file by
the name of the command, give it one for each: a link will do.`,
		Example: `source <(heartbeat completion bash)
heartbeat completion zsh > "${fpath[1]}/_heartbeat"
heartbeat completion fish > ~/.config/fish/completions/heartbeat.fish`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			f := cli.NewFlags("completion")
			return f, func(args []string, s cli.Streams) error {
				if len(args) != 1 || completionScript(args[0]) == nil {
					return cli.Usage(fmt.Errorf("it takes one of bash, zsh, fish"))
				}
				_, err := fmt.Fprint(s.Out, completionScript(args[0])(allCompleted(verbs())))
				return err
			}
		},
	}
}

// completionScript is what makes the script for a shell, nil for an unknown one.
func completionScript(shell string) func([]completed) string {
	switch shell {
	case "bash":
		return bashCompletion
	case "zsh":
		return zshCompletion
	case "fish":
		return fishCompletion
	}
	return nil
}

// completed describes a command, or one of its verbs, to the completion scripts.
type completed struct {
	key     string // how it is typed: heartbeat dead-letter list
	verbs   []cli.Item
	words   []string // what its first argument may be
	ids     string   // what its arguments name: see cli.Verb
	command bool     // its arguments are a command with arguments of its own
	flags   []*pflag.Flag
	// early are the flags of its verbs, which may stand before the verb. Those in
	// hidden are understood there and not offered.
	early, hidden []*pflag.Flag
}

// allCompleted returns all commands, heartbeat with these verbs, and all verbs.
func allCompleted(list []cli.Verb) []completed {
	own := completed{key: commandName, flags: listFlags((&ownFlags{}).set())}
	for _, name := range externalNames() {
		own.verbs = append(own.verbs, cli.Item{Name: name, What: ourExternals[name]})
	}
	all := own.with(list)
	first := &all[0]
	for _, f := range first.early {
		if f.Name != "inbox" {
			first.hidden = append(first.hidden, f)
		}
	}
	hookFlags, launchFlags := listFlags(hook.Page().Flags), listFlags(launch.Page().Flags)
	all = append(all, completed{key: hosting.CommandName, flags: listFlags(hosting.Page().Flags)}.with(hosting.All(hosting.Actions{}))...)
	all = append(all, completed{key: fleet.CommandName, flags: listFlags(fleet.Page().Flags)}.with(fleet.All(fleet.Actions{}))...)
	all = append(all, completed{key: mcp.CommandName, flags: listFlags(mcp.Page().Flags)}.with(mcp.All(mcp.Actions{}))...)
	all = append(all, completed{key: watching.CommandName, flags: listFlags(watching.Page().Flags)})
	all = append(all, completed{key: hook.CommandName, flags: hookFlags}.with([]cli.Verb{orphans.Verb(hook.CommandName)})...)
	return append(all, completed{key: launch.CommandName, flags: launchFlags, command: true})
}

// with returns c with these verbs, followed by the verbs themselves.
func (c completed) with(list []cli.Verb) []completed {
	var below []completed
	for _, v := range list {
		c.verbs = append(c.verbs, cli.Item{Name: v.Name, What: v.Short})
		flags, _, _ := v.Built()
		sub := completed{key: c.key + " " + v.Name, words: v.Words, ids: v.IDs, flags: listFlags(flags)}
		all := sub.with(v.Verbs)
		for _, f := range slices.Concat(all[0].flags, all[0].early) {
			same := func(g *pflag.Flag) bool { return g.Name == f.Name }
			if !slices.ContainsFunc(c.flags, same) && !slices.ContainsFunc(c.early, same) {
				c.early = append(c.early, f)
			}
		}
		below = append(below, all...)
	}
	return append([]completed{c}, below...)
}

// offered returns the flags that the scripts offer.
func (c completed) offered() []*pflag.Flag {
	return slices.DeleteFunc(slices.Concat(c.flags, c.early), func(f *pflag.Flag) bool { return slices.Contains(c.hidden, f) })
}

// known returns the flags that may stand in the line.
func (c completed) known() []*pflag.Flag { return slices.Concat(c.flags, c.early) }

// verbNames returns the names of its verbs.
func (c completed) verbNames() (names []string) {
	for _, v := range c.verbs {
		names = append(names, v.Name)
	}
	return names
}

func listFlags(set *pflag.FlagSet) (flags []*pflag.Flag) {
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f)
		}
	})
	return flags
}

func takesValue(f *pflag.Flag) bool { return f.NoOptDefVal == "" }

// takesFile reports whether the value is a file, by the name that the help gives it.
func takesFile(f *pflag.Flag) bool {
	switch name, _ := pflag.UnquoteUsage(f); name {
	case "path", "file", "directory", "module", "command":
		return true
	}
	return false
}

// flagUsage is the flag's text without the quotes around the name of its value.
func flagUsage(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	return text
}

// quote makes one word of s, in each of the three shells. Fish alone would take
// a backslash for an escape: none of our texts has one.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
