package hosting

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

// resuming is the command that continues an ended session.
var resuming = words.Shell(command, "start", "--resume", "--config", "FILE")

var sendVerb = cli.Verb{
	Name:  "send",
	Args:  "ID [TEXT | -]",
	IDs:   sessionIDs,
	Short: "append a prompt to a session's inbox",
	Long: `Append an entry to the inbox of a session that runs, and print the entry's id. The
session works through it once it has answered those before. The text is the
argument, or stdin (with -, or without a TEXT).

With --id, sending again is safe: an id that is in the inbox is not appended again,
and refused if it is that of another text.

` + whichID + `

Exit status: 0 the entry is (or was) in the inbox; 1 it is not: there is no such
session, or it has ended, and the sentence says how to continue it.`,
	Example: `heartbeat-host send ses-1 "and now the tests"
git diff | heartbeat-host send ses-1 -`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o oneFlags
		var id string
		var given []string // one text, or none for stdin
		o.add(f)
		f.Var(cli.Named(&id, "name the entry, or leave the flag out"), "id", "give the entry this `id`, and append it only once")
		act := o.action(f, func(h *hosted, s cli.Streams) error {
			text, err := program.ReadText(given, "", inbox.MaxLine, s)
			if err == nil {
				err = h.reopen() // the session may have ended while its text came
			}
			if err != nil {
				return err
			}
			receipt, err := h.send(id, text)
			if err != nil {
				return err
			}
			if !receipt.Appended {
				s.Note("the entry %q is %s already: nothing was appended", receipt.ID, receipt.Found)
			}
			if o.JSON {
				return cli.PrintJSON(s.Out, receipt)
			}
			_, err = fmt.Fprintln(s.Out, receipt.ID)
			return err
		})
		return func(args []string, s cli.Streams) error {
			if len(args) == 2 {
				given, args = args[1:], args[:1]
			}
			return act(args, s)
		}
	},
}

// send appends an entry to the session's inbox: by the host, which knows whether the session still takes
// entries, or directly if the text is too long for that.
func (h *hosted) send(id, text string) (inbox.Receipt, error) {
	if h.Status.Ended() || h.Status == folder.Dead {
		return inbox.Receipt{}, h.endedError()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.VerbLockWait+askTimeout)
	defer cancel()
	if len(text) > attach.MaxText {
		box, err := cli.OpenAsOwner(h.State.Inbox, inbox.Options{LockWait: cli.VerbLockWait})
		if err != nil {
			return inbox.Receipt{}, err
		}
		receipts, err := box.AppendAll(ctx, []inbox.Message{{ID: id, Text: text}}, cli.DefaultSettle)
		if len(receipts) == 0 {
			return inbox.Receipt{}, err
		}
		return receipts[0], err
	}
	receipt, err := attach.Host{Folder: h.Dir()}.Send(ctx, id, text)
	if ctx.Err() != nil && err != nil {
		return receipt, fmt.Errorf("the host of session %s does not answer: %w: is it stopped? It may still append the text: check with heartbeat-host status %[1]s before you send it again", h.ID, err)
	}
	if errors.Is(err, attach.ErrEnded) {
		return receipt, fmt.Errorf("session %s is at its end: nothing was appended: to continue it once it has ended, run %s with the text as the prompt",
			h.ID, resuming)
	}
	if errors.Is(err, attach.ErrNotRunning) {
		return receipt, h.endedError()
	}
	return receipt, err
}

// endedError returns why the session takes no more entries, and what to do.
func (h *hosted) endedError() error {
	_ = h.reopen() // on an error the old record will do
	if h.Status.Ended() {
		return fmt.Errorf("session %s has ended (%s): nothing was appended: to continue it, run %s with the text as the prompt", h.ID, h.State.Status, resuming)
	}
	if h.Status != folder.Dead {
		return fmt.Errorf("the host of session %s lives, but its socket is missing: nothing was appended: try again", h.ID)
	}
	return fmt.Errorf("the host of session %s was killed: nothing was appended: finish the session with %s, and continue it with %s",
		h.ID, words.Shell(command, "cancel", h.ID), resuming)
}
