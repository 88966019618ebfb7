package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

func manVerb(others []cli.Verb) cli.Verb {
	return cli.Verb{
		Name:  "man",
		Args:  "[VERB]",
		Words: cli.Names(others),
		Short: "print a manual page, or write all of them",
		Long: `Print the manual page of a verb, or without a VERB that of the hook, in roff. With
--dir, write the pages of the hook and of every verb into a directory, where man
finds them if it is one of its own. They say what --help says.`,
		Example: `heartbeat man send | man -l -
heartbeat man --dir ~/.local/share/man/man1`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var dir string
			f := cli.NewFlags("man")
			f.StringVar(&dir, "dir", "", "write all pages into this directory, which is made if need be")
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
	p := ownPage()
	switch {
	case len(args) > 1:
		return cli.Usage(fmt.Errorf("%d verbs: one page is printed at a time", len(args)))
	case len(args) == 1:
		v, err := findVerb(args[0])
		if err != nil {
			return cli.Usage(err)
		}
		p = pageOf(v)
	}
	_, err := fmt.Fprint(s.Out, p.Manual())
	return err
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

// allPages are those of the command and of all its verbs.
func allPages() []cli.Page {
	pages := []cli.Page{ownPage()}
	for _, v := range verbs() {
		pages = append(pages, pageOf(v))
	}
	return pages
}

// ownPage is the command's, with the flags it would be run with.
func ownPage() cli.Page { return commandPage() }

func pageOf(v cli.Verb) cli.Page {
	flags, _, _ := v.Built()
	return v.Page(commandName, flags)
}
