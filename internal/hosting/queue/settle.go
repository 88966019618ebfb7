package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// Exit is what was seen of a client that has ended. The zero value means that its end was not seen.
type Exit struct {
	Known   bool   // its standard output was read to the end
	Session string // the last session ID in its messages, "" for none
	// Began means that there was a system message with subtype init, or a message of another type
	// than a result. Before that, the client asks no model.
	Began bool
	// Asked means that the model answered: there was an assistant message whose model is not <synthetic>.
	Asked     bool
	Succeeded bool // the last result message is no error
	Turns     int
	// Failure is the API error that ended the last turn, nil for none. Under -p the client may end its
	// hook before the hook has recorded the error.
	Failure *inbox.Failure
	// Reason is why the entry was not answered, for a dead letter, such as [inbox.ReasonCanceled]; "" if open.
	Reason inbox.Reason
	Over   *Over // the limit that ended the client, nil for none
	// Turn is the end of the last turn by the client's own output, nil if that shows no end, or shows
	// tasks in the background. It counts only if no hook reported the end.
	Turn *Turn
}

// Turn is the end of a turn by the client's result line, which is no error and follows an answer of the model.
type Turn struct {
	Reply string
	// At is when the line was read, if the caller does not know which client printed it; otherwise zero.
	At time.Time
}

// Settle settles the entry in flight after the client has ended: see [recovery.Settle]. Without an entry it
// only holds delivery after an error, so it may be called whenever no client runs.
func (q *Queue) Settle(ctx context.Context, x Exit) (report recovery.Report, err error) {
	q.ended, q.over = cmp.Or(x.Session, q.round.session), x.Over
	err = q.transact(ctx, func(tx *inbox.Tx) error {
		if uncounted := meter.NoteCharge(tx, q.ended, false); uncounted != nil {
			q.o.Warn("what the session spent is not all counted: " + uncounted.Error())
		}
		report, err = q.settle(tx, x)
		if err == nil {
			err = tx.Commit()
		}
		if err == nil {
			err = recovery.ForgetSpills(q.box, tx.InFlight())
		}
		return err
	})
	return report, err
}

func (q *Queue) settle(tx *inbox.Tx, x Exit) (recovery.Report, error) {
	failure, err := q.noteFailure(tx, x)
	if err != nil {
		return recovery.Report{}, err
	}
	d := tx.InFlight()
	if d == nil {
		q.endedEntry = ""
		if failure != nil {
			err = recovery.HoldDelivery(tx, failure, false)
		}
		return recovery.Report{Action: recovery.None}, err
	}
	q.endedEntry = d.EntryID
	sight := recovery.Sight{Reason: x.Reason, Charged: true}
	if x.Over != nil {
		sight.Over = x.Over.Of(d)
	}
	if e := recovery.EvidenceOf(d); e.Prompted {
		sight.Output = recovery.Output{Known: x.Known, Began: x.Began, Asked: x.Asked, Command: !e.IsBound() && x.isCommand()}
		if sight.Printed = x.printed(d); sight.Printed {
			sight.Reply = x.Turn.Reply
		}
	}
	report, err := recovery.Settle(tx, q.asker(), sight)
	if err == nil && sight.Printed && report.Action == recovery.Answered {
		q.unreported[d.EntryID] = true
		q.hooksRan = q.hooksRan || recovery.Started(tx.In(d.SessionID).Known(), d)
	}
	return report, err
}

// printed reports whether the client's own output shows the end of its prompt's turn, which no hook may have reported.
// The output shows nothing about an entry that a Stop delivered: the client may never have read that.
func (x Exit) printed(d *inbox.Delivery) bool {
	return x.Turn != nil && (x.Turn.At.IsZero() || !x.Turn.At.Before(d.DeliveredAt))
}

// Unreported explains why answers are known only from the client's result line, "" if hooks reported all answers.
func (q *Queue) Unreported() string {
	if len(q.unreported) == 0 {
		return ""
	}
	why := "no hook of the client ran"
	switch {
	case q.hooksRan:
		why = "a hook of the client could not note the end of its turn, as on a full disk"
	case q.hooksOff != nil:
		why = q.hooksOff.Path + " has " + q.hooksOff.Member + ", so that no hook of the client ran"
	}
	return fmt.Sprintf("%s: that %s answered is known from its own result line alone", why, words.Count(len(q.unreported), "prompt was", "prompts were"))
}

// isCommand reports whether the client took its prompt for a command of its own, such as /cost: the client
// then succeeds without asking the model, and reports no prompt to its hook.
func (x Exit) isCommand() bool {
	return x.Known && !x.Asked && x.Succeeded && x.Turns == 0
}

// noteFailure records the API error that the client printed, unless a hook has recorded it, and returns the
// error that ended the session's last turn.
func (q *Queue) noteFailure(tx *inbox.Tx, x Exit) (*inbox.Failure, error) {
	d := tx.InFlight()
	since, session := q.round.seq, cmp.Or(x.Session, q.round.session)
	if d != nil {
		since, session = cmp.Or(since, d.DeliveredSeq), cmp.Or(session, d.SessionID)
	}
	if since == 0 || session == "" {
		return nil, nil
	}
	s := tx.In(session).Known()
	switch {
	case s.Failure != nil && s.FailedSeq >= since:
		return s.Failure, nil
	case x.Failure == nil || x.Succeeded:
		return nil, nil
	}
	if d != nil && d.SessionID == "" && recovery.EvidenceOf(d).Prompted {
		if err := tx.Bind(inbox.Recipient{SessionID: session, PromptID: d.PromptID, Evidence: d.Evidence}); err != nil {
			return nil, err
		}
	}
	return x.Failure, tx.In(session).Fail(x.Failure.Error, x.Failure.Message)
}

// Next is the state of the inbox between two rounds.
type Next struct {
	Waits bool // an entry waits
	// Hold is why the entry has to wait longer: for a person, or until a back-off ends.
	recovery.Hold
}

// Waiting reports whether another round is due.
func (q *Queue) Waiting(ctx context.Context) (n Next, err error) {
	for {
		err = q.transact(ctx, func(tx *inbox.Tx) error {
			n.Hold, n.Waits, err = recovery.Waiting(tx, q.asker())
			if tx.Dirty() && (err == nil || errors.Is(err, inbox.ErrMore)) {
				err = errors.Join(tx.Commit(), err)
			}
			return err
		})
		if !errors.Is(err, inbox.ErrMore) {
			return n, err
		}
	}
}

// Resumable returns the session to continue in another round: the last whose conversation the client stored, or "".
func (q *Queue) Resumable(ctx context.Context) (session string, err error) {
	err = q.transact(ctx, func(tx *inbox.Tx) error {
		all, err := tx.Sessions()
		if q.unreported[q.endedEntry] { // no hook reported the session
			session = q.ended
		}
		for _, s := range all {
			if session == "" && s.StartedSeq >= q.before.Seq && recovery.Kept(s) {
				session = s.ID
			}
		}
		return err
	})
	return session, err
}

// Over is a limit that an entry in flight has reached.
type Over struct {
	recovery.Over
	Took time.Duration // by all attempts at the entry together
}

// InFlight returns the entry in flight, nil for none.
func (q *Queue) InFlight() (d *inbox.Delivery, err error) {
	view, err := q.box.View()
	if err != nil {
		return nil, err
	}
	d = view.InFlight()
	return d, view.Close()
}

// OverTime is [recovery.OverTime] with this inbox's limits.
func (q *Queue) OverTime(d *inbox.Delivery) *Over {
	if v := recovery.OverTime(d, q.o.Settings.Limits); v != nil {
		return &Over{*v, recovery.Took(d).Round(100 * time.Millisecond)}
	}
	return nil
}

// Limit describes the limit that ended the round settled last, "" for none: the limit of an entry whose turn
// was stopped, or of its session. After one, the next client begins a conversation of its own: see [client.Anew].
func (q *Queue) Limit(ctx context.Context) (why string, err error) {
	if q.ended == "" {
		return "", nil
	}
	err = q.transact(ctx, func(tx *inbox.Tx) error {
		_, why = tx.In(q.ended).Stopped()
		why = strings.TrimPrefix(why, "heartbeat: ")
		return nil
	})
	if why == "" && q.over != nil {
		why = "the entry was ended: " + q.over.Figures
	}
	return why, err
}
