package queue

import (
	"context"
	"errors"
	"fmt"
	"os"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/account"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	recovery "heartbeat/recover"
)

// KickOff is the prompt of a client whose hook has to deliver even the first entry, at the end of the prompt's turn.
const KickOff = `Reply with "ready" and nothing else: your work follows.`

// ErrInFlight means that an earlier round's entry is not settled: call [Queue.Settle].
var ErrInFlight = errors.New("an entry is still in flight: settle it first")

// First puts the next entry in flight and returns the prompt that the round's client gets on its standard input, byte
// for byte. The client reads 10 MiB; an entry's text has at most 2 MiB, since a longer one stays in a file that the
// text names. ok is false if there is no work for a client: see [Queue.Waiting]. The entry is in flight even if the
// caller dies before it starts the client; [Queue.Settle] then knows that no client got it. Call Command first.
func (q *Queue) First(ctx context.Context) (prompt string, ok bool, err error) {
	var still inbox.Mark
	for {
		err = q.transact(ctx, func(tx *inbox.Tx) (err error) {
			prompt, ok, err = q.first(tx, still)
			return err
		})
		switch {
		case errors.Is(err, inbox.ErrTorn):
			still, err = q.box.AwaitStill(ctx, cli.DefaultSettle)
		case !errors.Is(err, inbox.ErrMore):
			return prompt, ok, err
		default:
			err = nil
		}
		if err != nil {
			return "", false, err
		}
	}
}

func (q *Queue) first(tx *inbox.Tx, still inbox.Mark) (prompt string, ok bool, err error) {
	if tx.InFlight() != nil {
		return "", false, ErrInFlight
	}
	hold, err := recovery.Held(tx, q.asker())
	switch {
	case err != nil:
		return "", false, err
	case hold.Any():
		return "", false, tx.Commit()
	}
	e, err := recovery.Next(tx, q.asker(), still)
	switch {
	case errors.Is(err, inbox.ErrEmpty):
		return "", false, tx.Commit()
	case errors.Is(err, inbox.ErrMore):
		return "", false, errors.Join(tx.Commit(), err)
	case err != nil:
		return "", false, err
	}
	q.round.seq = tx.Seq()
	if _, ofRun := effect.MarkIn(e.Metadata); ofRun { // for a run the hook does more than deliver the text
		return KickOff, true, tx.Commit()
	}
	path, _, _ := agent.StartOf(tx.In(q.round.session).Known().StartNote) // of the transcript that the session continues
	account.Of(tx).Position(q.round.session, path, claude.TranscriptSize(path), false)
	checks, err := q.asker().ChecksOf(e)
	if err != nil {
		return "", false, err
	}
	d, err := tx.Deliver(e, inbox.Recipient{SessionID: q.round.session, Evidence: q.evidence().Encode(), Checks: checks})
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return "", false, err
	}
	return d.Text(), true, nil
}

// evidence returns what the delivery records until the client's hook reports more.
func (q *Queue) evidence() recovery.Evidence {
	return recovery.Evidence{
		TranscriptSize: -1, SinceBoot: machine.SinceBoot(), Awake: machine.Awake(), Process: inbox.ProcessOf(os.Getpid()),
		Prompt: recovery.Prompt{Prompted: true, Start: q.round.start, Hooks: q.round.hooks},
	}
}

// Begin records that the client may have the prompt from now on. Call it right before the start.
func (q *Queue) Begin(ctx context.Context) error {
	return q.changePrompt(ctx, func(tx *inbox.Tx, d *inbox.Delivery, _ recovery.Evidence) error {
		// Bind makes the commit synced: if a power loss took the note, the entry would count as one that no client got.
		same := inbox.Recipient{SessionID: d.SessionID, PromptID: d.PromptID, Evidence: d.Evidence}
		return errors.Join(tx.Bind(same), tx.HandedOver())
	})
}

// Started records which process has the prompt, so that no other takes the entry. After an error a session may go on.
func (q *Queue) Started(ctx context.Context, pid int) error {
	return q.changePrompt(ctx, func(tx *inbox.Tx, d *inbox.Delivery, e recovery.Evidence) error {
		p := inbox.ProcessOf(pid)
		if e.IsBound() || p.ProcessStart == 0 {
			return nil // its hook was faster, or it has ended
		}
		e.Process = p
		return tx.Bind(inbox.Recipient{SessionID: d.SessionID, PromptID: d.PromptID, Evidence: e.Encode()})
	})
}

// NotStarted gives the entry back: no client was started.
func (q *Queue) NotStarted(ctx context.Context) error {
	return q.changePrompt(ctx, func(tx *inbox.Tx, _ *inbox.Delivery, _ recovery.Evidence) error {
		_, err := recovery.Settle(tx, q.asker(), recovery.Sight{NotHandedOver: true, Charged: true})
		return err
	})
}

// changePrompt changes the entry that is the prompt of the round's client, if there is one, and commits.
func (q *Queue) changePrompt(ctx context.Context, change func(*inbox.Tx, *inbox.Delivery, recovery.Evidence) error) error {
	return q.transact(ctx, func(tx *inbox.Tx) error {
		d := tx.InFlight()
		if d == nil {
			return nil
		}
		e := recovery.EvidenceOf(d)
		if !e.Prompted || e.Start != q.round.start {
			return nil
		}
		if err := change(tx, d, e); err != nil {
			return fmt.Errorf("hand over the entry %s: %w", words.Name(d.ID(), d.EntryID), err)
		}
		return tx.Commit()
	})
}
