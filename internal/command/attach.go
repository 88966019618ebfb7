package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/words"
)

var attachVerb = cli.Verb{
	Name:  "attach",
	Short: "sit down at a session that runs where nobody is",
	Long: `Show the session that a launcher, or the host of a session in a terminal, runs on
the inbox, and type into it: to see what it does, or to answer what it asks. The
first to attach types, and the session's terminal gets the size of theirs; whoever
comes later watches, and types once the first has left. The key that detaches
leaves the session to itself.

Attach from a terminal of your own, as the user whose session it is. No process
of the session is let in.

Exit status: 0 detached, or the session is over, 1 there is nothing to attach to.`,
	Example: `heartbeat attach
heartbeat attach --watch --inbox /srv/mail/work/inbox.jsonl`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		w := sharing.Watch{Detach: sharing.DetachKey}
		cli.AddInbox(f, &i.Inbox)
		f.BoolVar(&w.Only, "watch", false, "only watch, and type nothing")
		f.BoolVar(&w.Take, "take", false, "type instead of whoever types now")
		f.Var(&w.Detach, "detach-key", "the `key` that leaves the session to itself")
		return onInbox("", changing(&i), func([]string) error {
			if w.Only && w.Take {
				return errors.New("--watch types nothing, and --take is about who types: leave one of them out")
			}
			return nil
		}, func(box *inbox.Inbox, _ []string, s cli.Streams) error { return attachTo(box, w, s) })
	},
}

func attachTo(box *inbox.Inbox, w sharing.Watch, s cli.Streams) error {
	if w.In, w.Out = s.In, os.Stdout; !cli.IsTerminal(w.In) || !cli.IsTerminal(w.Out) {
		return errors.New("attach: stdin and stdout are to be a terminal, where the session is shown")
	}
	ctx, cancel := program.UntilSignal(0)
	defer cancel()
	l, err := socketOwner(ctx, box)
	if err != nil {
		return err
	}
	conn, err := sharing.Dial(ctx, l.Socket, l.PID)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	why, err := sharing.Attach(ctx, conn, w)
	if err != nil {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("attach: %w", err))
	}
	s.Note("%s", why)
	return nil
}

// signPatience is how long a launcher may take to write its sign, which has its socket. It writes the sign before its
// first session, and again now and then.
const signPatience = time.Second

func socketOwner(ctx context.Context, box *inbox.Inbox) (*see.Launcher, error) {
	others := checkOwner(box.Dir(), "attach as that user")
	for deadline := time.Now().Add(signPatience); ; {
		l := see.LauncherOf(box)
		switch {
		case l != nil && l.Socket != "":
			return l, nil
		case l == nil:
			return nil, fmt.Errorf("attach: nothing works on %s now: start a session with heartbeat launch", box.Path())
		case others != nil && os.Geteuid() != 0:
			return nil, fmt.Errorf("attach: process %d works on %s: %w", l.PID, words.Line(box.Path()), others)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("attach: process %d works on %s, and nobody can attach to it (%s): somebody sits at its terminal, it has no session yet, or it is of another release", l.PID, words.Line(box.Path()), cmp.Or(l.Doing, "it does not say what it does"))
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
