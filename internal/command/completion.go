package command

import (
	"cmp"
	"fmt"
	"heartbeat/internal/cli"
	"strings"

	"github.com/spf13/pflag"
)

func completionVerb() cli.Verb {
	return cli.Verb{
		Name:  "completion",
		Args:  "bash|zsh|fish",
		Words: []string{"bash", "zsh", "fish"},
		Short: "print a completion script for a shell",
		Long: `Print a script that completes verbs, flags and what follows them in a shell. For
the ids of entries and of dead letters it asks the heartbeat on the PATH,
about the inbox that the line or HEARTBEAT_INBOX names; all else is in the script.`,
		Example: `source <(heartbeat completion bash)
heartbeat completion zsh > "${fpath[1]}/_heartbeat"
heartbeat completion fish > ~/.config/fish/completions/heartbeat.fish`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			f := cli.NewFlags("completion")
			return f, func(args []string, s cli.Streams) error {
				if len(args) != 1 || completionScript(args[0]) == nil {
					return cli.Usage(fmt.Errorf("it takes one of bash, zsh, fish"))
				}
				_, err := fmt.Fprint(s.Out, completionScript(args[0])(withWords(verbs())))
				return err
			}
		},
	}
}

// completionScript is what makes the script for a shell, nil for an unknown one.
func completionScript(shell string) func([]cli.Verb) string {
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

// completed are the flags of the verb that a script offers.
func completed(v cli.Verb) []*pflag.Flag {
	set, _, _ := v.Built()
	for _, sub := range v.Verbs {
		more, _, _ := sub.Built()
		set.AddFlagSet(more)
	}
	return listFlags(set)
}

// withWords are the verbs, with the names of their own verbs as the first word.
func withWords(list []cli.Verb) (all []cli.Verb) {
	for _, v := range list {
		for _, sub := range v.Verbs {
			v.Words = append(v.Words, sub.Name)
			v.IDs = cmp.Or(v.IDs, sub.IDs)
		}
		all = append(all, v)
	}
	return all
}

// completedBeforeVerb are the flags of heartbeat itself.
func completedBeforeVerb() []*pflag.Flag { return listFlags((&ownFlags{}).set()) }

func listFlags(set *pflag.FlagSet) (flags []*pflag.Flag) {
	set.VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	return flags
}

func takesValue(f *pflag.Flag) bool { return f.Value.Type() != "bool" }

// quote makes one word of s, in each of the three shells. Fish alone would take
// a backslash for an escape: none of our texts has one.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
