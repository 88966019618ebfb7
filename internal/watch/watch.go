// Package watch is the verb watch: it shows inboxes in a terminal and keeps the view up to date. A [Lookout] gathers
// the facts, a [Board] holds what is shown and handles keys, and [Draw] draws it.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/see"
)

type options struct {
	inbox      string
	once, json bool
	stall      cli.Span
	notify     string
	color      string
	status     func(context.Context, *inbox.Inbox) (any, error) // the JSON of an inbox
}

// Verb returns the verb watch. Its JSON is that of status.
func Verb(status func(context.Context, *inbox.Inbox) (any, error)) cli.Verb {
	return cli.Verb{
		Name:  "watch",
		Args:  "[DIR...]",
		Short: "watch inboxes in a terminal: what waits, what is in flight, why nothing moves",
		Long: `Show one inbox or many in a terminal and keep the view up to date: how many entries
wait and since when, what is in flight, how many dead letters there are, and why
nothing moves or what a person is asked. An inbox opens to its entries, and an entry
to what happened to it and to its reply.

It searches each DIR, and the folders below it, for inboxes: a folder with heartbeat's
state, or with a file inbox.jsonl. A path to a file names that inbox. Without DIR it
takes --inbox, or else searches the folder that it is started in; below a project that
has an inbox, it takes the project's.

Looking changes nothing and takes no lock. Keys pause and resume delivery, cancel an
entry, put a dead letter back, and approve or reject what a run asks; each asks back
first, and then does what the verb of heartbeat does. The key ? lists them.

With --once it prints the view once. With --notify as well it runs that command once
for each thing that needs a person and was not told yet, as heartbeat notify does for
one inbox: started by a timer, this is what finds that nothing moves, which a dead
process cannot tell. scripts/launchers/systemd has such a timer.

Exit status: 0 quit, or shown; 1 wrong usage, no terminal, an inbox that cannot be looked
at with --once, or a person who could not be told; 128+n signal n ended it.`,
		Example: `heartbeat watch
heartbeat watch /var/lib/heartbeat
heartbeat watch --once --json /var/lib/heartbeat | jq -r 'select(.queued > 0).inbox'
heartbeat watch --once --stall 20m --notify /usr/local/bin/tell-me /var/lib/heartbeat`,
		Build: func(f *pflag.FlagSet) cli.Action {
			o := &options{status: status}
			cli.AddNamedInbox(f, &o.inbox)
			f.BoolVar(&o.once, "once", false, "show everything once, and end: for a pipe, a script or a timer")
			f.BoolVar(&o.json, "json", false, "with --once, print JSON, one object an inbox")
			f.Var(&o.stall, "stall", "with --once and --notify, also tell if an entry waits or is in flight and nothing has happened for this long (0: never)")
			cli.AddNotify(f, &o.notify, "with --once, the `command` that tells a person what needs one, for /bin/sh")
			program.AddColor(f, &o.color)
			return func(dirs []string, s cli.Streams) error {
				if err := o.check(f); err != nil {
					return cli.Usage(err)
				}
				roots := o.roots(dirs, f.Changed("inbox"))
				var err error
				if o.once {
					err = once(o, roots, s)
				} else {
					err = live(o, New(roots...))
				}
				if by, is := errors.AsType[cli.EndedBy](err); is {
					return cli.Silent(by.Status())
				}
				return err
			}
		},
	}
}

func (o *options) check(f *pflag.FlagSet) error {
	switch {
	case o.json && !o.once:
		return errors.New("--json is for --once: programs do not read a live view")
	case f.Changed("notify") && !o.once, f.Changed("stall") && !o.once:
		return errors.New("--notify and --stall are for --once, as a timer calls it: a live view tells nobody who does not look at it")
	case f.Changed("stall") && o.notify == "":
		return errors.New("--stall is about what --notify tells: name the command")
	}
	return nil
}

func (o *options) roots(dirs []string, named bool) []string {
	switch {
	case len(dirs) > 0 && !named:
		return dirs
	case o.inbox != "":
		return append([]string{o.inbox}, dirs...)
	}
	if path := cli.FindInbox(); path != "" {
		here, _ := os.Stat(".") // FindInbox has read it
		if project, err := os.Stat(filepath.Dir(filepath.Dir(path))); err == nil && !os.SameFile(here, project) {
			return []string{path}
		}
	}
	return []string{"."}
}

// once prints one view, and tells a person about what needs one.
func once(o *options, roots []string, s cli.Streams) error {
	taken := signals.Catch()
	defer taken.Stop()
	ctx, cancel := taken.Context()
	defer cancel()
	l := New(roots...)
	l.Find(time.Now())
	s.Warn(l.Notes)
	show := o.table
	if o.json {
		show = o.objects
	}
	err, unshown := show(ctx, l, s), error(nil)
	for _, why := range l.Failed {
		unshown = errors.Join(unshown, errors.New(why))
	}
	if o.notify != "" {
		unshown = errors.Join(unshown, notifyEach(ctx, o, l.Paths, s))
	}
	if unshown == nil || !errors.Is(err, unreadable) { // which prints nothing, and has the same status
		unshown = errors.Join(err, unshown)
	}
	if sig, _ := taken.Signal(); sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return unshown
}

// unreadable means that the view says of an inbox that it cannot be read, and why.
var unreadable = cli.Silent(cli.ExitError)

func (o *options) objects(ctx context.Context, l *Lookout, s cli.Streams) error {
	all, err := see.InEach(l.Paths, func(box *inbox.Inbox) (any, error) { return o.status(ctx, box) })
	for _, status := range all {
		if status == nil { // the inbox could not be opened
			continue
		}
		if bad := cli.PrintJSON(s.Out, status); bad != nil {
			return fmt.Errorf("print the view: %w", bad)
		}
	}
	return err
}

func (o *options) table(ctx context.Context, l *Lookout, s cli.Streams) (err error) {
	p := Picture{At: time.Now(), Inboxes: make([]Inbox, len(l.Paths))}
	see.Each(len(l.Paths), func(i int) { // where the lock is held, this waits to see whether it is kept
		p.Inboxes[i].look(l.Paths[i], time.Now(), func(box *inbox.Inbox) see.Facts { return see.Look(ctx, box) })
	})
	if len(p.Inboxes) == 0 {
		s.Note("no inbox was found")
		return nil
	}
	if slices.ContainsFunc(p.Inboxes, func(now Inbox) bool { return now.Unreadable != nil }) {
		err = unreadable
	}
	out := layout.For(s.Out, o.color)
	name := names(p)
	if !out.ForPeople() {
		name = func(path string) string { return path }
	}
	t := inboxTable(p, name, func(at time.Time) string { return out.When(p.At, at) }, true)
	if bad := out.Table(t); bad != nil {
		return fmt.Errorf("print the view: %w", bad)
	}
	return err
}

func notifyEach(ctx context.Context, o *options, paths []string, s cli.Streams) (err error) {
	for _, path := range paths {
		args := []string{"notify", "--inbox", path, "--notify", o.notify}
		if o.stall > 0 {
			args = append(args, "--stall", time.Duration(o.stall).String())
		}
		told, failed := runVerb(ctx, args)
		for line := range strings.Lines(told) {
			if _, text, is := strings.Cut(line, "\t"); is { // the kind comes first
				s.Note("told about %s: %s", path, strings.TrimSpace(text))
			} else { // why nobody was told
				s.Note("%s: %s", path, strings.TrimSpace(line))
			}
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("tell about %s: %w", path, failed))
		}
	}
	return err
}
