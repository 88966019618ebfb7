package hosting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/given"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

// resuming is the command that goes on with a session that has ended.
var resuming = words.Shell(command, "start", "--resume", "--config", "FILE")

func send(o *verbs.Send, s cli.Streams) error {
	text, err := textOf(o, s)
	if err != nil {
		return err
	}
	h, err := find(&o.Look)
	if err != nil {
		return err
	}
	receipt, err := h.send(o.EntryID, text)
	if err != nil {
		return err
	}
	if !receipt.Appended {
		s.Note("the entry %q is %s already: nothing was appended", receipt.ID, receipt.Found)
	}
	if o.JSON {
		return printJSON(s, receipt)
	}
	_, err = fmt.Fprintln(s.Out, receipt.ID)
	return err
}

func textOf(o *verbs.Send, s cli.Streams) (string, error) {
	if o.Text != "-" {
		return o.Text, nil
	}
	if cli.IsTerminal(s.In) {
		return "", cli.Usage(errors.New("no text: give it as TEXT, or on stdin"))
	}
	b, err := given.TextOf(io.ReadAll(io.LimitReader(s.In, inbox.MaxLine+1)))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// send appends an entry to the session's inbox: through its host, which knows whether
// it takes one more, or directly where the text is too long for that.
func (h *hosted) send(id, text string) (inbox.Receipt, error) {
	h.refresh()
	if h.status.Ended() || h.status == folder.Dead {
		return inbox.Receipt{}, h.over()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.VerbLockWait+askTimeout)
	defer cancel()
	if len(text) > attach.MaxText {
		return h.appendDirectly(ctx, id, text)
	}
	receipt, err := attach.Host{Folder: h.Dir()}.Send(ctx, id, text)
	if errors.Is(err, attach.ErrEnded) {
		return receipt, fmt.Errorf("session %s is at its end: nothing was appended: once it has ended, go on with it by %s, with the text as the prompt",
			h.ID, resuming)
	}
	if errors.Is(err, attach.ErrNotRunning) {
		return receipt, h.over()
	}
	return receipt, err
}

func (h *hosted) appendDirectly(ctx context.Context, id, text string) (inbox.Receipt, error) {
	box, err := cli.OpenAsOwner(h.State.Inbox, inbox.Options{LockWait: cli.VerbLockWait})
	if err != nil {
		return inbox.Receipt{}, err
	}
	receipts, err := box.AppendAllWith(ctx, []inbox.Message{{ID: id, Text: text}}, cli.DefaultSettle, func(int) {})
	if len(receipts) == 0 {
		return inbox.Receipt{}, err
	}
	return receipts[0], err
}

// over says that a session takes no more entries, and what to do.
func (h *hosted) over() error {
	_ = h.reopen() // what was read before will do
	if h.status.Ended() {
		return fmt.Errorf("session %s has ended (%s): nothing was appended: go on with it by %s, with the text as the prompt", h.ID, h.State.Status, resuming)
	}
	return fmt.Errorf("the host of session %s was killed: nothing was appended: finish the session with %s, and go on with it by %s",
		h.ID, words.Shell(command, "cancel", h.ID), resuming)
}
