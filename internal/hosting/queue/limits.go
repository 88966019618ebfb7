package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/inbox"
)

// Over is a limit that an entry in flight has reached.
type Over struct {
	recovery.Over
	seq  int64 // of the delivery
	took time.Duration
}

// Took is for how long the entry was worked on, all its attempts together.
func (o *Over) Took() time.Duration { return o.took.Round(100 * time.Millisecond) }

// String says which, with the figures.
func (o *Over) String() string { return o.Figures }

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
	l := recovery.LimitsOf(d, q.o.Settings.Limits)
	if l.Entry.Time == 0 {
		return nil, nil
	}
	took := recovery.Took(d)
	if v := recovery.Judge(l, recovery.Spent{Took: took}, d.Attempt); v != nil {
		return &Over{*v, d.DeliveredSeq, took}, nil
	}
	return nil, nil
}

// Limit says in words which limit ended the round that was settled last, "" for none: that
// of an entry whose turn was stopped, or that of its session. Another client begins a
// conversation of its own then: see [client.Anew].
func (q *Queue) Limit(ctx context.Context) (why string, err error) {
	if q.ended == "" {
		return "", nil
	}
	err = q.transact(ctx, func(tx *inbox.Tx) error {
		_, why = tx.Stopped(q.ended)
		why = strings.TrimPrefix(why, "heartbeat: ")
		return nil
	})
	if why == "" && q.over != nil {
		why = "the entry was ended: " + q.over.String()
	}
	return why, err
}
