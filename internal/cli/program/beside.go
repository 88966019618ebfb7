package program

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"heartbeat/internal/cli"
)

// Beside is another command that runs as a verb: heartbeat-host as heartbeat host.
type Beside struct {
	Name, Short string
	Command     string // the end of the command's name, if it differs from Name
	// Page describes a command that cannot complete or document itself. Any other command does both, and has no Page.
	Page func() cli.Page
}

func (b Beside) command(of Program) string { return of.Name + "-" + cmp.Or(b.Command, b.Name) }

func (p Program) addBeside(root *cobra.Command) {
	if len(p.Beside) == 0 {
		return
	}
	root.AddGroup(&cobra.Group{ID: "beside", Title: "Other commands"})
	for _, b := range p.Beside {
		name := b.command(p)
		c := &cobra.Command{
			Use: b.Name, Short: b.Short, GroupID: "beside", DisableFlagParsing: true, DisableFlagsInUseLine: b.Page != nil, Args: cobra.ArbitraryArgs,
			RunE: func(_ *cobra.Command, args []string) error { return become(name, args) },
			ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return completeBeside(name, args, word)
			},
		}
		if b.Page != nil {
			p.describe(c, b.Page())
		}
		root.AddCommand(c)
	}
}

// describe copies the page of another command for completion and manual.
func (p Program) describe(c *cobra.Command, page cli.Page) {
	c.Long, c.Example = page.Long+"\n\n"+cli.StatusTitle+page.Status, page.Example
	c.Use = c.Name() + " " + page.Usage[0]
	c.Flags().AddFlagSet(page.Flags)
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
	p.complete(c, cli.Verb{})
	// Arguments name files, and a shell is offered values only of flags that are parsed.
	c.ValidArgsFunction, c.DisableFlagParsing = nil, !slices.Contains(os.Args[:min(2, len(os.Args))], cobra.ShellCompRequestCmd)
}

// become replaces this process with another heartbeat command. It returns only on failure.
func become(name string, args []string) error {
	path, err := cli.Beside(name)
	if err != nil {
		return err
	}
	return cli.Become(path, args)
}
