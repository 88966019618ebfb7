// Package program builds a command with verbs from their declarations. cobra finds the verb,
// parses, completes and documents. The help looks like that of the hook and the launcher, which
// have no verbs.
package program

import (
	"errors"
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
	// Bare is printed when no verb is given; "" prints the help.
	Bare   string
	Groups []Group
	// Beside are other commands that run as verbs.
	Beside []Beside
	// IDs lists the ids that a verb's arguments may name: see [cli.Verb.IDs].
	IDs func(kind string, flags *pflag.FlagSet) []Hint
	// Meant returns the verb meant by an unknown word; "" leaves the suggestion to cobra.
	Meant func(word string) string

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
		if len(args) > 0 && b.Name == args[0] { // neither does another command
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

// chosen returns the verb that the arguments begin with, or "".
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
	root.SetFlagErrorFunc(flagError)
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
		p.addBeside(root, s)
		p.addOwn(root, s)
	}
	hideEarlyFlags(root)
	return root
}

// verb builds the command of one verb.
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
		flags, act = v.Build()
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

// runBare runs the command without a verb.
func (p Program) runBare(c *cobra.Command, args []string, s cli.Streams) error {
	if version, _ := c.Flags().GetBool("version"); version {
		return s.Print(cli.VersionLine(p.Name) + "\n")
	}
	if len(args) > 0 {
		return p.noVerb(c, args)
	}
	var given []string
	c.Flags().Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	if len(given) > 0 {
		return cli.Usage(fmt.Errorf("--%s is a flag of verbs, and there is no verb: name one, as in %s", given[0], c.Commands()[0].CommandPath()))
	}
	if p.Bare != "" {
		return s.Print(p.Bare)
	}
	return c.Help()
}

// noVerb returns the error for an unknown verb: the one probably meant, or the list of verbs.
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
	if p.Meant != nil && !c.HasParent() {
		if meant := p.Meant(args[0]); meant != "" {
			return cli.Usage(fmt.Errorf("unknown verb %q: %s", args[0], meant))
		}
	}
	if len(known) == 0 {
		return cli.Usage(fmt.Errorf("unknown verb %q: %s has none", args[0], c.CommandPath()))
	}
	return cli.Usage(cli.UnknownVerb(args[0], known))
}

// flagError names the flag that was probably meant, or the sibling verbs that have the flag.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && c.HasParent() {
		var others []string
		for _, other := range c.Parent().Commands() {
			if c.Parent().HasParent() && other.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
				others = append(others, other.Name())
			}
		}
		if others != nil {
			return cli.Usage(fmt.Errorf("--%s is not for %s: it is for %s", unknown.GetSpecifiedName(), c.Name(), strings.Join(others, " and ")))
		}
	}
	all := c.Flags()
	if !c.HasParent() { // without a verb, a flag of any verb may be meant
		all = pflag.NewFlagSet("", pflag.ContinueOnError)
		eachCommand(c, func(sub *cobra.Command) {
			sub.Flags().VisitAll(func(f *pflag.Flag) {
				if all.Lookup(f.Name) == nil {
					all.Var(f.Value, f.Name, f.Usage)
				}
			})
		})
	}
	return cli.FlagError(err, all)
}

// hideEarlyFlags lets flags of a verb stand before it, as in heartbeat --json status: the parent
// gets hidden copies, and cobra passes them on.
func hideEarlyFlags(c *cobra.Command) {
	for _, sub := range c.Commands() {
		hideEarlyFlags(sub)
	}
	for _, sub := range c.Commands() {
		sub.Flags().VisitAll(func(f *pflag.Flag) {
			if c.Flags().Lookup(f.Name) == nil && f.Shorthand == "" {
				early := *f
				early.Hidden = true
				c.Flags().AddFlag(&early)
			}
		})
	}
}

// eachCommand visits c and everything below it.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

// page returns the help page of a command.
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
