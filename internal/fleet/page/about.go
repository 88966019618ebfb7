package page

import (
	"fmt"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

func versionVerb() cli.Verb {
	return cli.Verb{
		Name:    "version",
		Short:   "show the version and what it was built from",
		Long:    "Show the version, the commit it was built from, and the Go release.",
		Example: "heartbeat-nats version --json",
		Build: func() (*pflag.FlagSet, cli.Action) {
			var asJSON bool
			f := cli.NewFlags("version")
			f.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(s.Out, cli.ReadBuild())
				}
				_, err := fmt.Fprintln(s.Out, cli.VersionLine(CommandName))
				return err
			}
		},
	}
}

func manVerb(others []cli.Verb) cli.Verb {
	return cli.Verb{
		Name:  "man",
		Args:  "[VERB]",
		Words: cli.Names(others),
		Short: "print a manual page",
		Long: `Print the manual page of a verb in roff, or without a VERB that of heartbeat-nats.
heartbeat man --dir writes all pages, those of heartbeat-nats among them.`,
		Example: "heartbeat-nats man setup | man -l -",
		Build: func() (*pflag.FlagSet, cli.Action) {
			return cli.NewFlags("man"), func(args []string, s cli.Streams) error {
				page, err := PageNamed(args)
				if err != nil {
					return cli.Usage(err)
				}
				_, err = fmt.Fprint(s.Out, page.Manual())
				return err
			}
		},
	}
}

// PageNamed returns the page of a verb, such as dead show, or without a name that of the
// command.
func PageNamed(words []string) (cli.Page, error) {
	if len(words) == 0 {
		return Page(), nil
	}
	v := cli.Verb{Verbs: All(Actions{})}
	for i, word := range words {
		if i > 0 && v.Verbs == nil {
			return cli.Page{}, fmt.Errorf("%d verbs: one page is printed at a time", len(words))
		}
		sub, found := cli.Find(v.Verbs, word)
		if !found {
			return cli.Page{}, cli.UnknownVerb(word, cli.Names(v.Verbs))
		}
		sub.Parent = v.Path()
		v = sub
	}
	return pageOf(v), nil
}

// HelpName is the verb that shows the help of others.
const HelpName = "help"

// helpVerb shows the overview. `help VERB` is `VERB --help`.
func helpVerb(others []cli.Verb) cli.Verb {
	return cli.Verb{
		Name:    HelpName,
		Args:    "[VERB]",
		Words:   cli.Names(others),
		Short:   "show what there is, or the help of a verb",
		Long:    "Show all verbs, or the help of one, as VERB --help does.",
		Example: "heartbeat-nats help setup",
		Build: func() (*pflag.FlagSet, cli.Action) {
			return cli.NewFlags(HelpName), func(_ []string, s cli.Streams) error {
				_, err := fmt.Fprint(s.Out, Overview())
				return err
			}
		},
	}
}

// Overview is the first screen.
func Overview() string {
	page := Page()
	page.Flags, page.Status = nil, ""
	return page.Help()
}
