package command

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

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

func manVerb(others []cli.Verb) cli.Verb {
	return cli.Verb{
		Name:  "man",
		Args:  "[VERB]",
		Words: append(cli.Names(others), externalNames()...),
		Short: "print a manual page, or write all of them",
		Long: `Print the manual page of a verb in roff, or without a VERB that of heartbeat. A
verb may have verbs of its own (dead-letter requeue), and host, launch, mcp, nats,
stop and watch are the pages of heartbeat-host and so on. With --dir, write the pages
of all commands and of every verb into a directory, where man finds them if it is one of its own. They
say what --help says.`,
		Example: `heartbeat man send | man -l -
heartbeat man --dir ~/.local/share/man/man1`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var dir string
			f := cli.NewFlags("man")
			f.StringVar(&dir, "dir", "", "write all pages into this `directory`, and make it if it is missing")
			return f, func(args []string, s cli.Streams) error {
				if !f.Changed("dir") {
					return printManual(args, s)
				}
				if dir == "" {
					return cli.Usage(errors.New("--dir is empty: name a directory, or leave the flag out"))
				}
				if len(args) > 0 {
					return cli.Usage(errors.New("both a VERB and --dir: with --dir the pages of all verbs are written"))
				}
				return writeManuals(dir, s)
			}
		},
	}
}

func printManual(args []string, s cli.Streams) error {
	p, err := pageNamed(args)
	if err != nil {
		return cli.Usage(err)
	}
	_, err = fmt.Fprint(s.Out, p.Manual())
	return err
}

// pageNamed is the page of a verb, such as send or dead-letter requeue, of another
// command of ours, or without a name that of heartbeat.
func pageNamed(words []string) (cli.Page, error) {
	if len(words) == 0 {
		return commandPage(), nil
	}
	name := words[0]
	if ourExternals[name] != "" {
		name = commandName + "-" + name
	}
	if page, found := otherPages()[name]; found && len(words) == 1 {
		return page, nil
	}
	if name == hosting.CommandName {
		return hosting.PageNamed(words[1:])
	}
	if name == fleet.CommandName {
		return fleet.PageNamed(words[1:])
	}
	if name == mcp.CommandName {
		return mcp.PageNamed(words[1:])
	}
	v := cli.Verb{Verbs: verbs()}
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

func writeManuals(dir string, s cli.Streams) error {
	pages := allPages()
	err := os.MkdirAll(dir, 0o755)
	for _, p := range pages {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, p.ManualName()+".1"), []byte(p.Manual()), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("man: write the pages: %w: name a directory that you may write to with --dir", err)
	}
	_, err = fmt.Fprintf(s.Out, "wrote %d pages to %s\n", len(pages), dir)
	return err
}

// allPages are those of our commands and of all their verbs.
func allPages() []cli.Page {
	others := otherPages()
	pages := append([]cli.Page{commandPage()}, pagesOf(verbs())...)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		pages = append(pages, others[name])
	}
	pages = append(pages, hosting.VerbPages()...)
	pages = append(pages, fleet.VerbPages()...)
	pages = append(pages, mcp.VerbPages()...)
	return append(pages, pageOfHook(orphans.Verb(hook.CommandName)))
}

func pagesOf(list []cli.Verb) (pages []cli.Page) {
	for _, v := range list {
		pages = append(pages, pageOf(v))
		for i := range v.Verbs {
			v.Verbs[i].Parent = v.Path()
		}
		pages = append(pages, pagesOf(v.Verbs)...)
	}
	return pages
}

// otherPages are those of the commands beside heartbeat, by their names.
func otherPages() map[string]cli.Page {
	return map[string]cli.Page{
		fleet.CommandName: fleet.Page(), hook.CommandName: hook.Page(), hosting.CommandName: hosting.Page(),
		launch.CommandName: launch.Page(), mcp.CommandName: mcp.Page(), watching.CommandName: watching.Page(),
	}
}

func pageOf(v cli.Verb) cli.Page {
	flags, _, _ := v.Built()
	return v.Page(commandName, flags)
}

func pageOfHook(v cli.Verb) cli.Page {
	flags, _, _ := v.Built()
	return v.Page(hook.CommandName, flags)
}
