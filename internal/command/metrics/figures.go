// Package metrics gathers figures about an inbox, and prints them in the text format that Prometheus reads.
package metrics

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/inbox"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/orchestrate"
)

// Figures are the figures about an inbox. Fields with a help tag also appear in the text format, under their JSON names.
type Figures struct {
	Inbox string `json:"inbox"` // absolute path
	Queue
	Flight
	Holds
	People
	DeadLetters map[inbox.Reason]int64 `json:"dead_letters" help:"Dead letters that somebody has yet to deal with: neither requeued, accepted nor canceled, and no entry of the same id was answered since."`

	Totals
	*Spending

	Runs     []see.Run     `json:"runs,omitempty"` // the most pressing first
	Troubles []see.Trouble `json:"troubles,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`

	unread bool // only the troubles are known
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
	RunsAtWork       int   `json:"runs_at_work" help:"Babysitter runs that wait for entries or commands, or whose next step is due."`
	RunsAsleep       int   `json:"runs_asleep" help:"Babysitter runs whose process sleeps until a known time."`
	RunsAsking       int   `json:"runs_asking" help:"Babysitter runs that wait for a person."`
	RunsStuck        int   `json:"runs_stuck" help:"Babysitter runs that can take no step: the last one failed, or the run cannot be read."`
}

// Totals are counts that only grow.
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
	now := see.Look(ctx, box)
	f.Troubles = now.Troubles()
	if now.Unreadable != nil {
		f.unread = true
		return f, now.Unreadable
	}
	n := now.Totals
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

	f.QueueEntries, f.QueueBytes, f.ScheduledEntries = now.Backlog.Entries, now.Backlog.Bytes, now.Scheduled.Count
	f.SelfEnqueued, f.Paused, f.WaitingForPerson = now.SelfEnqueued.Count, now.Paused != nil, now.Asking() != nil
	f.Runs = now.Runs
	for _, r := range f.eachRun() {
		switch r.State {
		case orchestrate.AtWork:
			f.RunsAtWork++
		case orchestrate.Asleep:
			f.RunsAsleep++
		case orchestrate.Asking, orchestrate.Resting:
			f.RunsAsking++
		default:
			f.RunsStuck++
		}
	}
	if d := now.InFlight; d != nil {
		attempt := max(1, d.Attempt)
		f.InFlight, f.InFlightAge, f.InFlightAttempt = true, age(at, d.DeliveredAt), &attempt
	}
	f.FailuresInARow = now.Streak
	if now.Head != nil {
		f.OldestQueuedAge = age(at, now.Head.Since)
		if !now.Head.Noted {
			box.NoteHead(ctx)
		}
	}
	if now.Backoff != nil {
		f.BackingOff, f.BackingOffUntil = true, timestamp(now.Backoff.Until)
	}
	if w := now.Waiter; w == nil || w.Life != machine.Unknown {
		f.Waiter = new(w != nil && w.Life == machine.Alive && !w.Stopped)
	}
	if f.Spending, err = spending(now); err != nil {
		return f, err
	}
	for reason, n := range now.Letters.Open {
		f.DeadLetters[reason] = int64(n)
	}
	f.Warnings = now.Warnings
	return f, err
}

// GatherAll is [Gather] of several inboxes, in their order. An error names the inbox.
func GatherAll(ctx context.Context, paths []string, at time.Time) ([]Figures, error) {
	all, err := see.InEach(paths, func(box *inbox.Inbox) (Figures, error) { return Gather(ctx, box, at) })
	for i, path := range paths {
		if all[i].Inbox == "" { // it could not be opened
			all[i] = Figures{Inbox: path, unread: true}
		}
	}
	return all, err
}

// eachRun returns of each run the most pressing of what it waits for.
func (f Figures) eachRun() (all []see.Run) {
	for _, r := range f.Runs {
		if !slices.ContainsFunc(all, func(of see.Run) bool { return of.Dir == r.Dir }) {
			all = append(all, r)
		}
	}
	return all
}

// age is never below zero, because a clock may be set back.
func age(now, since time.Time) *float64 {
	return new(max(0, now.Sub(since)).Seconds())
}

func timestamp(at time.Time) *float64 {
	return new(float64(at.UnixMilli()) / 1e3)
}

// byReason returns the counts with every known reason.
func byReason(counted map[inbox.Reason]int64) map[inbox.Reason]int64 {
	all := map[inbox.Reason]int64{}
	for _, r := range inbox.Reasons() { // 0, too: Prometheus sees no increase in a series that starts with its first count
		all[r] = 0
	}
	maps.Copy(all, counted)
	return all
}

// Text returns the figures of all inboxes in the text format, version 0.0.4.
func Text(all []Figures) []byte {
	t := &text{}
	for _, f := range all {
		t.Labels = []string{"inbox", f.Inbox}
		if !utf8.ValidString(f.Inbox) { // keeps two such paths apart: Prometheus refuses two series with one label
			t.Labels[1] = strconv.Quote(f.Inbox)
		}
		if !f.unread {
			t.figures(reflect.ValueOf(f))
			t.runs(f)
		}
		t.troubles(f.Troubles)
	}
	return []byte(t.String())
}

// text writes figures.
type text struct{ program.Figures }

// figures writes the fields that have a help tag. A nil field is absent.
func (t *text) figures(all reflect.Value) {
	for i := range all.NumField() {
		field, v := all.Type().Field(i), reflect.Indirect(all.Field(i))
		help, named := field.Tag.Lookup("help")
		switch {
		case !v.IsValid():
		case field.Anonymous:
			t.figures(v)
		case named:
			member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			t.figure("heartbeat_"+member, help, v)
		}
	}
}

func (t *text) figure(name, help string, v reflect.Value) {
	kind := program.Gauge
	if strings.HasSuffix(name, "_total") {
		kind = program.Counter
	}
	series := func(label string, by map[string]int64) {
		t.Head(name, kind, help)
		for _, value := range slices.Sorted(maps.Keys(by)) {
			t.Series(name, float64(by[value]), label, value)
		}
	}
	switch value := v.Interface().(type) {
	case bool:
		t.One(name, kind, help, program.Number(value))
	case float64:
		t.One(name, kind, help, value)
	case map[inbox.Reason]int64:
		by := map[string]int64{}
		for reason, n := range value {
			by[string(reason)] = n
		}
		series("reason", by)
	case price.Tokens:
		series("kind", map[string]int64{"input": value.Input, "output": value.Output, "cache_read": value.CacheRead, "cache_write": value.CacheWrite})
	case Histogram:
		t.Head(name, "histogram", help)
		for _, b := range value.Buckets {
			t.Series(name+"_bucket", float64(b.Count), "le", program.Value(b.LE))
		}
		t.Series(name+"_bucket", float64(value.Count), "le", "+Inf")
		t.Series(name+"_sum", value.Sum)
		t.Series(name+"_count", float64(value.Count))
	default:
		t.One(name, kind, help, float64(v.Int()))
	}
}

func (t *text) runs(f Figures) {
	const name = "heartbeat_run_since_timestamp_seconds"
	t.Head(name, program.Gauge, "Since when a babysitter run that is not done stands as it does, where that is known.")
	for _, r := range f.eachRun() {
		if !r.Since.IsZero() {
			t.Series(name, *timestamp(r.Since), "run", r.Run, "state", string(r.State))
		}
	}
}

func (t *text) troubles(all []see.Trouble) {
	since, kinds := map[see.Kind]time.Time{}, map[see.Kind]int{}
	for _, trouble := range all {
		kind := trouble.Kind
		kinds[kind]++
		if at := trouble.Since; at != nil && (since[kind].IsZero() || at.Before(since[kind])) {
			since[kind] = *at
		}
	}
	t.Head("heartbeat_trouble", program.Gauge, "What is wrong now, by kind: how many of it. docs/operate.md has a row for each kind. Absent where nothing is.")
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Series("heartbeat_trouble", float64(kinds[k]), "kind", string(k))
	}
	t.Head("heartbeat_trouble_since_timestamp_seconds", program.Gauge, "Since when, where that is known: of several, the oldest.")
	for _, k := range slices.Sorted(maps.Keys(since)) {
		t.Series("heartbeat_trouble_since_timestamp_seconds", *timestamp(since[k]), "kind", string(k))
	}
}

// Spending is what was spent since the inbox's journal began. The transcripts tell it. Dollars are nil if unknown.
type Spending struct {
	USD        *float64     `json:"cost_usd_total,omitempty" help:"Dollars spent, by what models cost (heartbeat costs --prices)."`
	OutsideUSD *float64     `json:"cost_outside_usd_total,omitempty" help:"Of those, dollars spent while no entry was in flight."`
	TodayUSD   *float64     `json:"cost_today_usd,omitempty" help:"Dollars spent since midnight, local time."`
	Tokens     price.Tokens `json:"tokens_total" help:"Tokens, by kind."`
	Requests   int64        `json:"requests_total" help:"Requests to the model, those of subagents among them."`
}

// spending returns nil if nothing was ever spent, because then perhaps nobody counts.
func spending(f see.Facts) (*Spending, error) {
	now, err := f.Spent()
	if err != nil || now.Total().IsZero() {
		return nil, err
	}
	all := now.Total()
	s := &Spending{Tokens: all.Tokens, Requests: all.Requests}
	if all.Dollars {
		s.USD, s.OutsideUSD, s.TodayUSD = new(all.USD()), new(now.Outside().USD()), new(now.Today().USD())
	}
	return s, nil
}
