package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// addOwn adds the verbs of every program: completion, help, man and version.
func (p Program) addOwn(root *cobra.Command, s cli.Streams) {
	about := &cobra.Group{ID: "about", Title: "About " + p.Name}
	root.AddGroup(about)
	root.SetCompletionCommandGroupID(about.ID)
	for _, v := range []cli.Verb{p.version(), p.manual(root)} {
		c := p.verb(v, s)
		c.GroupID = about.ID
		root.AddCommand(c)
	}
	root.SetHelpCommandGroupID(about.ID)
	root.InitDefaultHelpCmd()
	if c, _, err := root.Find([]string{"help"}); err == nil && c != root {
		c.Use, c.Short, c.Long = "help [VERB...]", "show what there is, or the help of a verb", "Show all verbs, or the help of one, as VERB --help does."
		c.DisableFlagsInUseLine = true
		c.RunE = func(_ *cobra.Command, args []string) error {
			at, err := p.find(root, args)
			if err != nil {
				return err
			}
			if at.DisableFlagParsing { // a command beside this one
				return at.RunE(at, []string{"--help"})
			}
			return at.Help()
		}
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		c.Short, c.Args = "print what completes verbs, flags and ids in a shell", cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error { return p.noVerb(c, args) }
	}
}

func (p Program) find(root *cobra.Command, words []string) (*cobra.Command, error) {
	at, rest, err := root.Find(words)
	if err == nil && len(rest) > 0 {
		err = p.noVerb(at, rest)
	}
	return at, err
}

func (p Program) version() cli.Verb {
	return cli.Verb{
		Name:    "version",
		Short:   "show the version and what it was built from",
		Long:    "Show the version, the commit it was built from, and the Go release.",
		Example: p.Name + " version --json",
		Build: func(f *pflag.FlagSet) cli.Action {
			asJSON := f.Bool("json", false, "print JSON, one object a line")
			return func(args []string, s cli.Streams) error {
				if *asJSON {
					return cli.PrintJSON(s.Out, cli.ReadBuild())
				}
				return s.Print(cli.VersionLine(p.Name) + "\n")
			}
		},
	}
}

func (p Program) manual(root *cobra.Command) cli.Verb {
	return cli.Verb{
		Name:  "man",
		Args:  "[VERB...]",
		Short: "print a manual page, or write all of them",
		Long: fmt.Sprintf(`Print the manual page of a verb in roff, or without a VERB that of %s. A verb may have
verbs of its own. With --dir, write the pages of every verb into a directory, where man
finds them if it is one of its own. They say what --help says.`, p.Name),
		Example: fmt.Sprintf("%[1]s man %[2]s | man -l -\n%[1]s man --dir ~/.local/share/man/man1", p.Name, root.Commands()[0].Name()),
		Build: func(f *pflag.FlagSet) cli.Action {
			dir := f.String("dir", "", "write all pages into this `directory`, and make it if it is missing")
			return func(args []string, s cli.Streams) error {
				switch {
				case !f.Changed("dir"):
					c, err := p.find(root, args)
					if err != nil {
						return err
					}
					if documentsItself(c) {
						return c.RunE(c, []string{"man"})
					}
					return s.Print(p.roff(c))
				case *dir == "":
					return cli.Usage(errors.New("--dir is empty: name a directory, or leave the flag out"))
				case len(args) > 0:
					return cli.Usage(errors.New("both a VERB and --dir: with --dir the pages of all verbs are written"))
				}
				return p.writeManuals(root, *dir, s)
			}
		},
	}
}

// documentsItself reports whether c is another heartbeat command with manual pages of its own.
func documentsItself(c *cobra.Command) bool { return c.DisableFlagParsing && c.Long == "" }

func (p Program) writeManuals(root *cobra.Command, dir string, s cli.Streams) error {
	err := os.MkdirAll(dir, 0o755)
	n := 0
	eachCommand(root, func(c *cobra.Command) {
		if err == nil && !documentsItself(c) && (c.IsAvailableCommand() || c == root) {
			n++
			err = os.WriteFile(filepath.Join(dir, manualName(c)+".1"), []byte(p.roff(c)), 0o644)
		}
	})
	for _, b := range p.Beside {
		if err == nil && b.Page == nil {
			err = manualsBeside(b.command(p), dir)
		}
	}
	if err != nil {
		return fmt.Errorf("write the pages: %w: name a directory that you may write to with --dir", err)
	}
	return s.Print(fmt.Sprintf("wrote %d pages to %s\n", n, dir))
}

// manualsBeside has another heartbeat command write its pages, if it is installed.
func manualsBeside(name, dir string) error {
	path, err := cli.Beside(name)
	if err != nil {
		return nil
	}
	if output, err := exec.Command(path, "man", "--dir", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%s man: %w: %s", name, err, strings.TrimSpace(string(output)))
	}
	return nil
}
