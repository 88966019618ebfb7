package command

import (
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

func versionVerb() cli.Verb {
	return cli.Verb{
		Name:    "version",
		Short:   "show the version and what it was built from",
		Long:    "Show the version, the commit it was built from, and the Go release.",
		Example: "heartbeat version --json",
		Build: func() (*pflag.FlagSet, cli.Action) {
			var i cli.InboxFlags
			f := cli.NewFlags("version")
			i.Add(f)
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				return i.Print(s, cli.ReadBuild(), cli.VersionLine(commandName))
			}
		},
	}
}
