package program

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"heartbeat/internal/cli"
)

// Beside is another of our commands, such as heartbeat-host, which runs as the verb host.
type Beside struct {
	Name, Short string
	// Command is what the command's name ends with, where that is not Name.
	Command string
	// Page is what there is to say of a command that has no verbs and cannot complete or
	// document itself; nil: it is asked.
	Page func() cli.Page
}

// command is the name of the command, as it is installed.
func (b Beside) command(of Program) string { return of.Name + "-" + cmp.Or(b.Command, b.Name) }

// addBeside adds the other commands.
func (p Program) addBeside(root *cobra.Command, s cli.Streams) {
	if len(p.Beside) == 0 {
		return
	}
	root.AddGroup(&cobra.Group{ID: "beside", Title: "Other commands"})
	for _, b := range p.Beside {
		name := b.command(p)
		c := &cobra.Command{
			Use: b.Name, Short: b.Short, GroupID: "beside", DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
			RunE: func(_ *cobra.Command, args []string) error { return become(name, args) },
			ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return askBeside(name, args, word)
			},
		}
		if b.Page != nil {
			p.describe(c, b.Page())
		}
		root.AddCommand(c)
	}
}

// describe takes over what the page of a command says, for completion and manual.
func (p Program) describe(c *cobra.Command, page cli.Page) {
	c.Long, c.Example = page.Long+"\n\n"+cli.StatusTitle+page.Status, page.Example
	c.Use = c.Name() + " " + page.Usage[0]
	c.DisableFlagsInUseLine = true
	c.Flags().AddFlagSet(page.Flags)
	c.ValidArgsFunction = nil
	for _, list := range []struct {
		title string
		items []cli.Item
	}{{"Environment", page.Environment}, {page.FilesIntro, page.Files}} {
		if len(list.items) > 0 {
			c.Long += "\n\n" + list.title + "\n"
		}
		for _, i := range list.items {
			c.Long += fmt.Sprintf("\n  %s: %s", i.Name, i.What)
		}
	}
	p.complete(c, cli.Verb{TakesFiles: true})
}

// become replaces this process with another of our commands. It returns only if that fails.
func become(name string, args []string) error {
	path, err := cli.Beside(name)
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, slices.Concat([]string{path}, args), os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
