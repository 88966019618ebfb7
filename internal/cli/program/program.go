// Package program builds a command with verbs from their declarations. cobra finds the verb, parses, completes and
// documents. The help looks like that of the hook and the launcher, which have no verbs.
package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Program is a command with verbs.
type Program struct {
	Name, Short, Long, Example string

	Bare   string // printed when no verb is given; "" prints the help
	Groups []Group
	Beside []Beside // other commands that run as verbs
	// IDs lists the ids that a verb's arguments may name: see [cli.Verb.IDs].
	IDs func(kind string, flags *pflag.FlagSet) []Hint

	all bool // no verb is chosen, so all of them get their flags
}

func init() { cobra.EnableCommandSorting = false }

// Group holds verbs for one purpose, which the title names: Send and read.
type Group struct {
	Title string
	Verbs []cli.Verb
}

// Hint is an id that a shell offers, with a description.
type Hint struct{ ID, What string }

// Run runs the verb that the arguments name and returns the exit status.
func (p Program) Run(args []string, s cli.Streams) (status int) {
	defer s.Caught(&status)
	if len(args) == 1 && args[0] == "--version" { // needs no verbs
		return s.Show(cli.VersionLine(p.Name) + "\n")
	}
	for _, b := range p.Beside {
		if len(args) > 0 && b.Name == args[0] { // another command needs none either
			return cli.Conclude(become(b.command(p), args[1:]), p.Name+" "+args[0], s)
		}
	}
	var failed error // for errors inside functions that cannot return one to cobra
	root := p.command(s, p.chosen(args), &failed)
	root.SetArgs(args)
	at, err := root.ExecuteC()
	if err == nil {
		err = failed
	}
	return cli.Conclude(err, at.CommandPath(), s)
}

func (p Program) chosen(args []string) string {
	for _, g := range p.Groups {
		if len(args) > 0 && slices.ContainsFunc(g.Verbs, func(v cli.Verb) bool { return v.Name == args[0] }) {
			return args[0]
		}
	}
	return ""
}

// command builds the tree of all verbs. If a verb is chosen, only that one gets its flags: the
// flags of all verbs would double the run time of a short verb.
func (p Program) command(s cli.Streams, chosen string, failed *error) *cobra.Command {
	p.all = chosen == ""
	root := &cobra.Command{
		Use: p.Name, Short: p.Short, Long: p.Long, Example: p.Example,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return p.runBare(c, args, s) },
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.Flags().BoolP("help", "h", false, "show this help")
	root.Flags().Bool("version", false, "show the version")
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if c.HasSubCommands() && c.Flags().NArg() > 0 { // as in heartbeat sned --help
			*failed = p.noVerb(c, c.Flags().Args())
			return
		}
		*failed = s.Print(p.page(c).Help())
	})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.FlagError(err) })
	for i, g := range p.Groups {
		id := fmt.Sprint(i)
		root.AddGroup(&cobra.Group{ID: id, Title: g.Title})
		for _, v := range g.Verbs {
			c := &cobra.Command{Use: v.Name, Short: v.Short, Run: func(*cobra.Command, []string) {}}
			if chosen == "" || v.Name == chosen {
				c = p.verb(v, s)
			}
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	if chosen == "" {
		p.addBeside(root)
		p.addOwn(root, s)
	}
	return root
}

func (p Program) verb(v cli.Verb, s cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: strings.TrimSpace(v.Name + " [flags] " + v.Args), Short: v.Short, Long: v.Long, Example: v.Example, DisableFlagsInUseLine: true}
	if v.Verbs != nil {
		c.Use = strings.TrimSpace(v.Name + " " + v.Args + " [flags]")
	}
	for _, sub := range v.Verbs {
		c.AddCommand(p.verb(sub, s))
	}
	flags := cli.NewFlags(v.Name)
	act := cli.Action(func([]string, cli.Streams) error { return p.noVerb(c, nil) })
	if v.Build != nil {
		act = v.Build(flags)
	} else {
		c.FParseErrWhitelist.UnknownFlags = true // the error about the missing verb says more
	}
	flags.BoolP("help", "h", false, "show this help") // declared last, so that it is listed last
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(flags)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.HasSubCommands() && len(args) > 0 {
			return p.noVerb(c, args)
		}
		if v.Args == "" {
			if err := cli.NoArgs(args); err != nil {
				return err
			}
		}
		if at := c.ArgsLenAtDash(); at >= 0 { // the verb's own flag set must know about the dash too
			if err := flags.Parse(slices.Insert(slices.Clone(args), at, "--")); err != nil {
				return err
			}
		}
		return act(args, s)
	}
	if p.all && v.Build != nil { // cobra keeps flag completions for ever, and a server runs many verbs
		p.complete(c, v)
	}
	return c
}

func (p Program) runBare(c *cobra.Command, args []string, s cli.Streams) error {
	if version, _ := c.Flags().GetBool("version"); version {
		return s.Print(cli.VersionLine(p.Name) + "\n")
	}
	if len(args) > 0 {
		return p.noVerb(c, args)
	}
	if p.Bare != "" {
		return s.Print(p.Bare)
	}
	return c.Help()
}

// noVerb returns the error for an unknown or missing verb, with the verbs that were probably meant, or all of them.
func (p Program) noVerb(c *cobra.Command, args []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if len(args) == 0 {
		return cli.Usage(fmt.Errorf("say what to do: %s", strings.Join(known, ", ")))
	}
	c.SuggestionsMinimumDistance = 2
	hint := "it is one of " + strings.Join(known, ", ")
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	} else if len(known) == 0 {
		hint = c.CommandPath() + " has none"
	}
	return cli.Usage(fmt.Errorf("unknown verb %q: %s", args[0], hint))
}

func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

func (p Program) page(c *cobra.Command) cli.Page {
	long, status := cli.CutStatus(c.Long)
	page := cli.Page{
		Command: c.Root().Name(), Long: long, Example: c.Example, Flags: c.LocalNonPersistentFlags(), Status: status,
		Usage: []string{strings.TrimPrefix(c.UseLine(), c.Root().Name()+" ")},
	}
	if !c.HasParent() {
		page.Usage = []string{"VERB [flags]", "help VERB", "--version"}
	}
	groups := slices.Clone(c.Groups())
	if c.HasSubCommands() && len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Verbs"}}
	}
	for _, g := range groups {
		shown := cli.Group{Title: g.Title}
		for _, sub := range c.Commands() {
			if sub.GroupID == g.ID && sub.IsAvailableCommand() {
				shown.Items = append(shown.Items, cli.Item{Name: sub.Name(), What: sub.Short})
			}
		}
		page.Verbs = append(page.Verbs, shown)
	}
	return page
}
