package command

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

const helpName = "help"

// helpVerb shows the overview, and gives help a place in it. `help VERB` never gets
// here: see [helpLast].
func helpVerb(others []cli.Verb) cli.Verb {
	return cli.Verb{
		Name:  helpName,
		Args:  "[VERB]",
		Words: slices.Concat(cli.Names(others), []string{helpName}, externalNames()),
		Short: "show what there is, or the help of a verb",
		Long: `Show all verbs, or the help of one, as VERB --help does. A command that is called
heartbeat-VERB is asked for its own.`,
		Example: `heartbeat help send
heartbeat help dead-letter requeue`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			return cli.NewFlags(helpName), func(_ []string, s cli.Streams) error {
				_, err := fmt.Fprint(s.Out, overview())
				return err
			}
		},
	}
}
