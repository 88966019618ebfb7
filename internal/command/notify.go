package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

type notifyFlags struct {
	cli.InboxFlags
	options notify.Options
	test    bool
}

var notifyVerb = cli.Verb{
	Name:  "notify",
	Short: "tell a person, by a command, what needs one",
	Long: `Run a command once for each thing that needs a person and was not told yet: a
question (for a permission, or of a run), an inbox that cannot be worked on, sessions
that fail one after the other, a limit that was reached, a pause, a dead letter, and,
if asked for, that nothing moves (--stall) or nothing waits any more (--notify-drained).
Without --notify it shows what would be told, and runs nothing.

The command is run by /bin/sh in the root folder, with one JSON object on stdin (see
docs/json.md), and with HEARTBEAT_WHAT, HEARTBEAT_TEXT (a sentence), HEARTBEAT_TYPE_THIS
(a command line to look into it), HEARTBEAT_INBOX and HEARTBEAT_ENTRY in its environment.
It has 30 seconds. If it fails, whoever looks next tries the same again, for about an
hour, and the log has a line. At most ten messages of a kind go out in ten minutes, and
one that stands for the rest of them. scripts/notify has commands that are ready: for
mail, ntfy and webhooks, Slack, a desktop.

Hook, launcher and host take --notify as well, and tell by themselves. This verb is for
trying the command (--test), and for a timer, which finds what a dead process cannot
tell: nothing moves.

Exit status: 0 told, or nothing is to be told now; 1 the command failed, or the inbox
cannot be read; 128+n signal n ended it.`,
	Example: `heartbeat notify --test --notify /usr/local/bin/tell-me
heartbeat notify --stall 20m --notify 'mail -s heartbeat me'
heartbeat notify --stall 20m`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o notifyFlags
		o.Add(f)
		cli.AddNotify(f, &o.options.Command, "the `command` to run, for /bin/sh")
		f.Var((*cli.Span)(&o.options.Stall), "stall", "also tell if an entry waits or is in flight and nothing has happened for this long (0: never)")
		f.BoolVar(&o.options.Drained, "notify-drained", false, "also tell when nothing waits any more")
		cli.AddAlias(f, "notify-drained", "drained")
		f.BoolVar(&o.test, "test", false, "run the command once with an example, and show what it says if it fails")
		f.BoolVar(&o.options.Linger, "linger", false, "stay until what has to wait was told, a quarter of an hour at most")
		f.Lookup("linger").Hidden = true
		return onInbox("", o.open, func([]string) error {
			if o.test && o.options.Command == "" {
				return errors.New("--test tries the command of --notify: name one")
			}
			return nil
		}, o.run)
	},
}

func (o *notifyFlags) open(s cli.Streams) (*inbox.Inbox, error) {
	if o.options.Command == "" {
		return o.OpenRead(s)
	}
	return o.Open()
}

func (o *notifyFlags) run(box *inbox.Inbox, _ []string, s cli.Streams) error {
	ctx, cancel := program.UntilSignal(0)
	defer cancel()
	switch {
	case o.test:
		tried, err := notify.Try(ctx, box, o.options)
		if err != nil {
			return fmt.Errorf("notify: %w", err)
		}
		return o.Print(s, tried, "the command took the example: "+tried.Text)
	case o.options.Command == "":
		all, err := notify.Pending(ctx, box, o.options)
		if err != nil {
			return fmt.Errorf("notify: %w", err)
		}
		if len(all) == 0 && !o.JSON {
			s.Note("there is nothing to tell about %s", words.Line(box.Path()))
		}
		return o.show(all, s)
	}
	return o.tell(ctx, box, s)
}

func (o *notifyFlags) tell(ctx context.Context, box *inbox.Inbox, s cli.Streams) error {
	report, err := notify.Tell(ctx, box, o.options)
	if shown := o.show(report.Told, s); shown != nil {
		return shown
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("notify: %w", err)
	case report.Busy:
		s.Note("another process is about to tell the same: there was nothing to do")
	case report.Waiting > 0:
		s.Note("%s until %s", words.Count(int(report.Waiting), "message waits", "messages wait"), words.Stamp(report.Next))
	}
	return nil
}

func (o *notifyFlags) show(all []notify.Occasion, s cli.Streams) error {
	for _, occasion := range all {
		if err := o.Print(s, occasion, string(occasion.What)+"\t"+occasion.Text); err != nil {
			return err
		}
	}
	return nil
}
