package main

import (
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

func versionVerb() verb {
	return verb{
		name:    "version",
		short:   "show the version and what it was built from",
		long:    "Show the version, the commit it was built from, and the Go release.",
		example: "heartbeat-stop version --json",
		build: func() (*pflag.FlagSet, action) {
			var i inboxFlags
			f := newFlags("version")
			i.add(f)
			return f, func(args []string, s streams) error {
				if err := noArgs(args); err != nil {
					return err
				}
				return i.print(s, cli.ReadBuild(), cli.VersionLine(commandName))
			}
		},
	}
}
