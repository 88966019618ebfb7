package hook

import (
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/host"
)

const (
	// How long a hook waits for the inbox's lock. The end of a turn is told once, so
	// it waits nearly for as long as clients let their hooks run: 10 minutes, and a
	// minute where they are so old that they name no prompt. With other events, a
	// session or a person waits for the hook.
	turnLockWait    = 9 * time.Minute
	oldTurnLockWait = 45 * time.Second
	eventLockWait   = 5 * time.Second
)

// runHook is the command without a verb. Whatever fails, the stop is approved:
// stdout stays empty.
func runHook(args []string, s cli.Streams, open OpenRuns) int {
	h := &hook{voice: voice{Streams: s}, open: open, began: host.SinceBoot(), lifeline: lifeline{parent: os.Getppid()}}
	o, args, err := cutHandover(args, s.In)
	if err != nil {
		s.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
		return cli.ExitError
	}
	if h.args = args; o != nil {
		h.takeOver(o)
	}
	return h.start()
}

func (h *hook) start() int {
	s, flags := h.Streams, h.Set()
	err := cli.FlagError(flags.Parse(h.args), flags)
	switch {
	case err != nil:
	case h.Help:
		fmt.Fprint(s.Out, Page().Help())
		return cli.ExitOK
	case h.Version:
		fmt.Fprintln(s.Out, cli.VersionLine(CommandName))
		return cli.ExitOK
	default:
		err = h.Check(flags, flags.Args())
	}
	if err != nil {
		s.Complain(fmt.Errorf("%w (see heartbeat-stop --help)", err))
		if errors.Is(err, cli.ErrNoInbox) && len(h.args) == 0 {
			h.explainToPerson()
		}
		return cli.ExitError
	}
	return h.run(h.open == nil && needsRuns(&h.Flags, flags.Changed))
}

// run acts on the event. full says that it takes the full command, but for the event that
// comes with each use of a tool.
func (h *hook) run(full bool) int {
	var err error
	if h.raw = new(rawInput); !h.NoInput {
		if h.input, err = h.readInput(); err != nil {
			return h.untold(err)
		}
	}
	if full && (h.input == nil || h.input.Event != claude.EventPostToolBatch) {
		return h.failed(h.becomeFull())
	}
	if h.box, err = cli.OpenInbox(h.Inbox, inbox.Options{LockWait: h.lockWait()}); err != nil {
		return h.failed(err)
	}
	if h.standsBack() {
		return cli.ExitOK
	}
	if h.open != nil {
		h.openRuns()
	}
	return h.dispatch()
}

// lockWait is how long this event may wait for the inbox's lock.
func (h *hook) lockWait() time.Duration {
	switch in := h.input; {
	case in != nil && !h.endsTurn() && !h.awaitsPrompt():
		return eventLockWait
	case in != nil && in.PromptID != "":
		return turnLockWait
	}
	return oldTurnLockWait
}
