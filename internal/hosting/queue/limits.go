package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/enforce"
	"heartbeat/internal/meter"
)

// next is the next entry to deliver. One whose earlier deliveries have reached its limit is
// set aside on the way, but for those of a run: the hook delivers them, and knows first
// whether they are resolved.
func (q *Queue) next(tx *inbox.Tx, still inbox.Mark) (inbox.Entry, error) {
	for {
		e, err := tx.Next(still)
		if err != nil || isOfRun(e) {
			return e, err
		}
		refused, err := enforce.Refuse(tx, q.box, e, &q.o.Limits, 0)
		if err != nil || !refused {
			return e, err
		}
	}
}

// holdForDay pauses delivery if the day has reached its limit.
func (q *Queue) holdForDay(tx *inbox.Tx) error {
	if v := enforce.JudgeDay(q.o.Limits, tx.Today()); v != nil {
		return enforce.PauseForDay(tx, v)
	}
	return nil
}

// Over is a limit that an entry in flight has reached.
type Over struct {
	verdict enforce.Verdict
	seq     int64 // of the delivery
	took    time.Duration
}

// Took is for how long the entry was worked on, all its attempts together.
func (o *Over) Took() time.Duration { return o.took.Round(100 * time.Millisecond) }

// String says which, with the figures.
func (o *Over) String() string { return o.verdict.Figures }

// OverTime says whether the entry in flight has reached its limit of time, nil if not. Its
// hook looks at that between two requests; one that takes long, or a tool, it cannot end.
func (q *Queue) OverTime() (o *Over, err error) {
	view, err := q.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	d := view.InFlight()
	if d == nil {
		return nil, nil
	}
	l := enforce.Limits(d, &q.o.Limits)
	if l.Entry.Time == 0 {
		return nil, nil
	}
	took := enforce.Took(d)
	if v := enforce.Judge(l, enforce.Spent{Took: took}, d.Attempt); v != nil {
		return &Over{*v, d.DeliveredSeq, took}, nil
	}
	return nil, nil
}

// settleOver settles the entry because of whose limit the client was ended, unless it was
// answered all the same.
func (q *Queue) settleOver(tx *inbox.Tx, o *Over) (settled bool, err error) {
	d := tx.InFlight()
	if o == nil || d == nil || d.DeliveredSeq != o.seq {
		return false, nil
	}
	if v := d.Verdict; v != nil && v.Kind != inbox.VerdictFailed {
		return false, nil // [recovery.Settle] carries it out, and says so
	}
	if finished := q.o.Orphan.Options().Finished; finished != nil {
		if _, is := finished(tx); is {
			return false, nil
		}
	}
	return true, enforce.Settle(tx, &o.verdict, q.o.Orphan.MaxAttempts)
}

// Limit says in words which limit ended the round that was settled last, "" for none: that
// of an entry whose turn was stopped, or that of its session. Another client begins a
// conversation of its own then: see [Anew].
func (q *Queue) Limit(ctx context.Context) (why string, err error) {
	if q.ended == "" {
		return "", nil
	}
	err = q.transact(ctx, func(tx *inbox.Tx) error {
		if s := tx.Stopped(); s != nil && s.Session == q.ended {
			why = strings.TrimPrefix(s.Why, "heartbeat: ")
		}
		return nil
	})
	if why == "" && q.over != nil {
		why = "the entry was ended: " + q.over.String()
	}
	if why == "" && err == nil {
		why, err = q.SessionLimit(q.ended)
	}
	return why, err
}

// SessionLimit says in words that a session has reached its limit, "" if it has not.
func (q *Queue) SessionLimit(session string) (why string, err error) {
	if session == "" || !q.o.Limits.Session.Any() {
		return "", nil
	}
	counted, err := meter.Load(q.box.Dir(), session)
	if err != nil || counted == nil {
		return "", err
	}
	if v := enforce.JudgeSession(q.o.Limits, counted.Spent); v != nil {
		why = v.Figures
	}
	return why, nil
}

// Anew is args without what says which conversation the client goes on with.
func Anew(args []string) []string { return readConversation(args).rest }
