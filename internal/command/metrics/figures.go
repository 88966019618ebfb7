package metrics

import (
	"context"
	"errors"
	"time"

	"heartbeat/inbox"
)

// Figures are what metrics counts and measures of an inbox.
type Figures struct {
	Inbox            string   `json:"inbox"` // its absolute path
	QueueEntries     int64    `json:"queue_entries"`
	QueueBytes       int64    `json:"queue_bytes"`
	ScheduledEntries int      `json:"scheduled_entries"`
	OldestQueuedAge  *float64 `json:"oldest_queued_age_seconds,omitempty"`
	InFlight         bool     `json:"in_flight"`
	InFlightAge      *float64 `json:"in_flight_age_seconds,omitempty"`
	InFlightAttempt  *int     `json:"in_flight_attempt,omitempty"`
	Paused           bool     `json:"paused"`
	BackingOff       bool     `json:"backing_off"`
	BackingOffUntil  *float64 `json:"backing_off_until_timestamp_seconds,omitempty"`
	FailuresInARow   int      `json:"failures_in_a_row"`
	// Waiter is nil if nobody can tell whether the process that wakes the session
	// lives.
	Waiter           *bool `json:"waiter,omitempty"`
	WaitingForPerson bool  `json:"waiting_for_person"`
	// DeadLetters are those in the file that were not requeued.
	DeadLetters map[inbox.Reason]int64 `json:"dead_letters"`

	Delivered      int64                  `json:"delivered_total"`
	Redelivered    int64                  `json:"redelivered_total"`
	Answered       int64                  `json:"answered_total"`
	Dropped        int64                  `json:"dropped_total"`
	SelfEnqueued   int64                  `json:"self_enqueued_total"`
	DeadLettered   map[inbox.Reason]int64 `json:"dead_lettered_total"`
	AnswerSeconds  Histogram              `json:"answer_seconds"`
	AcknowledgedAt *float64               `json:"last_acknowledged_timestamp_seconds,omitempty"`

	*Spending

	Warnings []string `json:"warnings,omitempty"`
}

// Histogram counts how long answers took.
type Histogram struct {
	Buckets []Bucket `json:"buckets"`
	Sum     float64  `json:"sum"`
	Count   int64    `json:"count"`
}

// Bucket is how many answers took at most that many seconds, including those of the
// buckets before.
type Bucket struct {
	LE    float64 `json:"le"`
	Count int64   `json:"count"`
}

// reasons are shown with 0, too: Prometheus sees no increase in a series that starts
// with its first count.
func reasons() []inbox.Reason {
	return []inbox.Reason{
		inbox.ReasonOrphaned, inbox.ReasonInterrupted, inbox.ReasonAsked, inbox.ReasonUnresolved, inbox.ReasonCommand, inbox.ReasonFailed, inbox.ReasonExhausted,
		inbox.ReasonTooLong, inbox.ReasonDied, inbox.ReasonExpired, inbox.ReasonCanceled, inbox.ReasonEmpty,
	}
}

// Gather returns the figures of an inbox as of now.
func Gather(ctx context.Context, box *inbox.Inbox, now time.Time) (f Figures, err error) {
	f = Figures{Inbox: box.Path(), DeadLetters: byReason(nil), DeadLettered: byReason(nil)}
	v, err := box.View()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := f.queue(ctx, v, now); err != nil {
		return f, err
	}
	if err := f.backoff(v); err != nil {
		return f, err
	}
	if err := f.consumers(v); err != nil {
		return f, err
	}
	if err := f.totals(v); err != nil {
		return f, err
	}
	if f.Spending, err = spending(box); err != nil {
		return f, err
	}
	scheduled, err := v.Schedule()
	if err != nil {
		return f, err
	}
	f.ScheduledEntries = scheduled.Count
	letters, err := box.CountLetters(ctx)
	for reason, n := range letters.Open {
		f.DeadLetters[reason] = int64(n)
	}
	f.Warnings = letters.Warnings
	return f, err
}

func (f *Figures) queue(ctx context.Context, v *inbox.View, now time.Time) error {
	backlog, err := v.Backlog(ctx)
	if err != nil {
		return err
	}
	f.QueueEntries, f.QueueBytes = backlog.Entries, backlog.Bytes
	first, err := v.Next(1)
	if err != nil {
		return err
	}
	if len(first) > 0 {
		since := first[0].SentAt()
		if since.IsZero() {
			since = v.WrittenAt()
		}
		f.OldestQueuedAge = age(now, since)
	}
	if d := v.InFlight(); d != nil {
		attempt := max(1, d.Attempt)
		f.InFlight, f.InFlightAge, f.InFlightAttempt = true, age(now, d.DeliveredAt), &attempt
	}
	p, err := v.Paused()
	f.Paused = p != nil
	return err
}

// age is never below zero: a clock may be set back.
func age(now, since time.Time) *float64 {
	a := max(0, now.Sub(since)).Seconds()
	return &a
}

func (f *Figures) totals(v *inbox.View) error {
	n, err := v.Totals()
	if err != nil {
		return err
	}
	f.Delivered, f.Redelivered, f.Answered, f.Dropped = n.Delivered, n.Redelivered, n.Answered, n.Dropped
	f.SelfEnqueued = v.SelfEnqueued().Count
	f.DeadLettered = byReason(n.DeadLetters)
	f.AnswerSeconds.Sum = n.LatencySum.Seconds()
	for _, c := range n.Latency {
		f.AnswerSeconds.Count += c.Count
		if c.Within > 0 {
			f.AnswerSeconds.Buckets = append(f.AnswerSeconds.Buckets, Bucket{c.Within.Seconds(), f.AnswerSeconds.Count})
		}
	}
	if at := n.LastAcknowledgedAt; at != nil {
		f.AcknowledgedAt = timestamp(*at)
	}
	return nil
}

func timestamp(at time.Time) *float64 {
	seconds := float64(at.UnixMilli()) / 1e3
	return &seconds
}

// byReason has every known reason, and those that were counted.
func byReason(counted map[inbox.Reason]int64) map[inbox.Reason]int64 {
	all := map[inbox.Reason]int64{}
	for _, r := range reasons() {
		all[r] = 0
	}
	for r, n := range counted {
		all[r] = n
	}
	return all
}
