// Package metrics shows an inbox in figures, in the text format that Prometheus reads.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// Figures are what metrics counts and measures of an inbox. Fields with a help tag also appear in the text format,
// under their JSON names.
type Figures struct {
	Inbox string `json:"inbox"` // absolute path
	Queue
	Flight
	Holds
	People
	DeadLetters map[inbox.Reason]int64 `json:"dead_letters" help:"Dead letters that somebody has yet to deal with: neither requeued, accepted nor canceled, and no entry of the same id was answered since."`

	Totals
	*Spending

	Troubles []see.Trouble `json:"troubles,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`

	head   *inbox.Head // the entry that comes next
	unread bool        // only the troubles are known
}

// Queue is what waits.
type Queue struct {
	QueueEntries     int64    `json:"queue_entries" help:"Entries that wait in the inbox, without the one in flight."`
	QueueBytes       int64    `json:"queue_bytes" help:"Bytes of the inbox that were not delivered yet."`
	ScheduledEntries int      `json:"scheduled_entries" help:"Entries that wait for their time, outside the inbox."`
	OldestQueuedAge  *float64 `json:"oldest_queued_age_seconds,omitempty" help:"How long the entry waits that is delivered next: since its sent_at, or, where it has none, since the first look or commit that found it there, which is a lower bound. Absent when none waits."`
}

// Flight is the entry in flight.
type Flight struct {
	InFlight        bool     `json:"in_flight" help:"Whether an entry is in flight."`
	InFlightAge     *float64 `json:"in_flight_age_seconds,omitempty" help:"How long ago the entry in flight was delivered. Absent when none is."`
	InFlightAttempt *int     `json:"in_flight_attempt,omitempty" help:"Which delivery it is for the entry in flight, from 1. Absent when none is."`
}

// Holds is what holds delivery.
type Holds struct {
	Paused          bool     `json:"paused" help:"Whether delivery is paused."`
	BackingOff      bool     `json:"backing_off" help:"Whether delivery backs off, since turns ended in errors."`
	BackingOffUntil *float64 `json:"backing_off_until_timestamp_seconds,omitempty" help:"When the back-off ends. Absent when none holds."`
	FailuresInARow  int      `json:"failures_in_a_row" help:"How many failures in a row led to the last back-off: 0 once an entry was answered or delivery was resumed."`
}

// People is who waits for entries, and what waits for a person.
type People struct {
	// Waiter is nil if nobody can tell whether the process that wakes the session lives.
	Waiter           *bool `json:"waiter,omitempty" help:"Whether a process waits in the background to wake its idle session. Absent where it cannot be told whether that process lives."`
	WaitingForPerson bool  `json:"waiting_for_person" help:"Whether a session asked for a person, and no turn of it has ended since."`
	RunsAsking       int   `json:"runs_asking" help:"Babysitter runs that wait for a person."`
	RunsStuck        int   `json:"runs_stuck" help:"Babysitter runs that can take no step: the last one failed, or the run cannot be read."`
}

// Totals only grow.
type Totals struct {
	Delivered      int64                  `json:"delivered_total" help:"Deliveries, redeliveries among them."`
	Redelivered    int64                  `json:"redelivered_total" help:"Entries that were given back to be delivered again."`
	Answered       int64                  `json:"answered_total" help:"Entries that were answered."`
	Checked        int64                  `json:"checked_total" help:"Entries that were answered after their check had passed."`
	Dropped        int64                  `json:"dropped_total" help:"Entries that were dropped."`
	SelfEnqueued   int64                  `json:"self_enqueued_total" help:"Entries that agents sent while they worked on one."`
	DeadLettered   map[inbox.Reason]int64 `json:"dead_lettered_total" help:"Entries that became dead letters."`
	AnswerSeconds  Histogram              `json:"answer_seconds" help:"From an entry's delivery to its acknowledgement."`
	AcknowledgedAt *float64               `json:"last_acknowledged_timestamp_seconds,omitempty" help:"When an entry was last acknowledged."`
}

// Histogram counts how long answers took.
type Histogram struct {
	Buckets []Bucket `json:"buckets"`
	Sum     float64  `json:"sum"`
	Count   int64    `json:"count"`
}

// Bucket is how many answers took at most LE seconds, including those of the buckets before.
type Bucket struct {
	LE    float64 `json:"le"`
	Count int64   `json:"count"`
}

// Gather returns the figures of an inbox at that time. With an error, only the troubles are set.
func Gather(ctx context.Context, box *inbox.Inbox, at time.Time) (f Figures, err error) {
	f = Figures{Inbox: box.Path(), DeadLetters: byReason(nil), Totals: Totals{DeadLettered: byReason(nil)}}
	now := see.Look(ctx, box, f.read)
	f.Troubles = now.Troubles()
	if now.Unreadable != nil {
		f.unread = true
		return f, now.Unreadable
	}
	f.QueueEntries, f.QueueBytes, f.ScheduledEntries = now.Backlog.Entries, now.Backlog.Bytes, now.Scheduled.Count
	f.SelfEnqueued, f.Paused, f.WaitingForPerson = now.SelfEnqueued.Count, now.Paused != nil, now.Asking() != nil
	runs := map[string]bool{}
	for _, q := range now.Held {
		runs[q.Dir] = runs[q.Dir] || q.Stuck
	}
	for _, stuck := range runs {
		if stuck {
			f.RunsStuck++
		}
	}
	f.RunsAsking = len(runs) - f.RunsStuck
	if d := now.InFlight; d != nil {
		attempt := max(1, d.Attempt)
		f.InFlight, f.InFlightAge, f.InFlightAttempt = true, age(at, d.DeliveredAt), &attempt
	}
	if f.head != nil {
		f.OldestQueuedAge = age(at, f.head.Since)
		if !f.head.Noted {
			box.NoteHead(ctx)
		}
	}
	if now.Backoff != nil {
		f.BackingOff, f.BackingOffUntil = true, timestamp(now.Backoff.Until)
	}
	if w := now.Waiter; w == nil || w.Life != machine.Unknown {
		alive := w != nil && w.Life == machine.Alive && !w.Stopped
		f.Waiter = &alive
	}
	if f.Spending, err = spending(box); err != nil {
		return f, err
	}
	for reason, n := range now.Letters.Open {
		f.DeadLetters[reason] = int64(n)
	}
	f.Warnings = now.Letters.Warnings
	return f, err
}

// GatherAll is [Gather] of several inboxes, in their order. An error names the inbox. Of inboxes whose paths the
// text format cannot tell apart only the first is kept, because Prometheus would refuse the whole text.
func GatherAll(ctx context.Context, paths []string, at time.Time) (all []Figures, err error) {
	known := map[string]bool{}
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		label := program.Label(path)
		if known[label] {
			err = errors.Join(err, fmt.Errorf("%s is left out: as text, its path is another inbox's: rename its folder", words.Line(path)))
			return true
		}
		known[label] = true
		return false
	})
	all, failed := make([]Figures, len(paths)), make([]error, len(paths))
	see.Each(len(paths), func(i int) {
		box, bad := inbox.Open(paths[i], inbox.Options{})
		if bad == nil {
			all[i], bad = Gather(ctx, box, at)
		} else {
			all[i] = Figures{Inbox: paths[i], unread: true}
		}
		if bad != nil {
			failed[i] = fmt.Errorf("%s: %w", words.Line(paths[i]), bad)
		}
	})
	return all, errors.Join(err, errors.Join(failed...))
}

// age is never below zero, because a clock may be set back.
func age(now, since time.Time) *float64 {
	a := max(0, now.Sub(since)).Seconds()
	return &a
}

// read takes what only the queue knows.
func (f *Figures) read(v *inbox.View) (err error) {
	if f.head, err = v.Head(); err != nil {
		return err
	}
	if f.FailuresInARow, err = v.Holds().Streak(); err != nil {
		return err
	}
	n, err := v.Totals()
	if err != nil {
		return err
	}
	f.Delivered, f.Redelivered, f.Answered, f.Checked, f.Dropped = n.Delivered, n.Redelivered, n.Answered, n.Checked, n.Dropped
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
	for _, r := range inbox.Reasons() { // with 0 too: Prometheus sees no increase in a series that starts with its first count
		all[r] = 0
	}
	for r, n := range counted {
		all[r] = n
	}
	return all
}
