// Package page is the help of heartbeat-watch and its flags. heartbeat shows and
// completes them, and links nothing else of it.
package page

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/colour"
)

// CommandName is the command.
const CommandName = "heartbeat-watch"

// Flags are those of the command.
type Flags struct {
	Help, Manual, Version bool
	Inbox                 string
	Once, JSON            bool
	Stall                 cli.Span
	Notify                string
	Color                 string
	set                   *pflag.FlagSet
}

// Set declares the flags. It returns the same set whenever it is called.
func (o *Flags) Set() *pflag.FlagSet {
	if o.set != nil {
		return o.set
	}
	f := cli.NewFlags(CommandName)
	cli.AddInbox(f, &o.Inbox)
	f.BoolVar(&o.Once, "once", false, "show everything once, and end: for a pipe, a script or a timer")
	f.BoolVar(&o.JSON, "json", false, "with --once, print JSON, one object an inbox")
	f.Var(&o.Stall, "stall", "with --once and --notify, tell also that an entry waits or is in flight and nothing has happened for so long (0: never)")
	f.StringVar(&o.Notify, "notify", "", "with --once, the `command` that tells a person what needs one, for /bin/sh")
	o.Color = colour.Auto
	f.Var(cli.Choice(&o.Color, colour.Auto, colour.Always, colour.Never), "color", "colour: auto (on a terminal, without NO_COLOR), always or never")
	f.BoolVar(&o.Version, "version", false, "show the version")
	f.BoolVar(&o.Manual, "man", false, "print the manual page")
	f.BoolVarP(&o.Help, "help", "h", false, "show this help")
	o.set = f
	return f
}

// Check refuses what cannot be meant.
func (o *Flags) Check() error {
	f := o.Set()
	switch {
	case o.JSON && !o.Once:
		return errors.New("--json is for --once: programs do not read a live view")
	case f.Changed("notify") && !o.Once, f.Changed("stall") && !o.Once:
		return errors.New("--notify and --stall are for --once, as a timer calls it: a live view tells nobody who does not look at it")
	case f.Changed("notify"):
		return cli.CheckNotify(o.Notify)
	case f.Changed("stall"):
		return errors.New("--stall is about what --notify tells: name the command")
	}
	return nil
}

// StallAfter is the value of --stall.
func (o *Flags) StallAfter() time.Duration { return time.Duration(o.Stall) }

// Page is the command's help and manual page.
func Page() cli.Page {
	return cli.Page{
		Command: CommandName,
		Short:   "watch inboxes in a terminal: what waits, what is in flight, why nothing moves",
		Long: `heartbeat-watch shows one inbox or many in a terminal and keeps the view up to date:
how many entries wait and since when, what is in flight, how many dead letters there
are, and why nothing moves or what a person is asked. An inbox opens to its entries,
and an entry to what happened to it and to its reply.

It searches each DIR, and the folders below it, for inboxes: a folder with heartbeat's
state, or with a file inbox.jsonl. A path to a file names that inbox. Without DIR it
takes --inbox, or else searches the folder that it is started in.

Looking changes nothing and takes no lock. Keys pause and resume delivery, cancel an
entry, put a dead letter back, and approve or reject what a run asks; each asks back
first, and then runs the verb of heartbeat that does it. The key ? lists them.

With --once it prints the view once. With --notify as well it runs that command once
for each thing that needs a person and was not told yet, as heartbeat notify does for
one inbox: started by a timer, this is what finds that nothing moves, which a dead
process cannot tell. scripts/launchers/systemd has such a timer.`,
		Usage: []string{"[flags] [DIR...]"},
		Example: `heartbeat watch
heartbeat watch /var/lib/heartbeat
heartbeat watch --once --json /var/lib/heartbeat | jq -r 'select(.queued > 0).inbox'
heartbeat watch --once --stall 20m --notify /usr/local/bin/tell-me /var/lib/heartbeat`,
		Flags: (&Flags{}).Set(),
		Status: `0 quit, or shown; 1 wrong usage, no terminal, an inbox that cannot be looked at with
--once, or a person who could not be told; 128+n signal n ended it.`,
		Environment: []cli.Item{
			{Name: cli.InboxVariable, What: "the inbox, where neither DIR nor --inbox names one"},
			{Name: "NO_COLOR", What: "if it is set, nothing is painted"},
		},
		SeeAlso: []string{"heartbeat", "heartbeat-status", "heartbeat-notify"},
	}
}
