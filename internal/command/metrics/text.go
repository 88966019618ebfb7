package metrics

import (
	"maps"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/money/price"
	"heartbeat/internal/money/priced"
	"heartbeat/internal/see"
)

// Text returns the figures of all inboxes in the text format, version 0.0.4.
func Text(all []Figures) []byte {
	t := &text{}
	for _, f := range all {
		t.Labels = []string{"inbox", f.Inbox}
		f.write(t)
	}
	return []byte(t.String())
}

func (f Figures) write(t *text) {
	if !f.unread {
		f.gauges(t)
		f.counters(t)
		f.spent(t)
		f.histogram(t)
		if f.AcknowledgedAt != nil {
			t.One("heartbeat_last_acknowledged_timestamp_seconds", gauge, "When an entry was last acknowledged.", *f.AcknowledgedAt)
		}
	}
	f.troubles(t)
}

func (f Figures) gauges(t *text) {
	t.One("heartbeat_queue_entries", gauge, "Entries that wait in the inbox, without the one in flight.", float64(f.QueueEntries))
	t.One("heartbeat_queue_bytes", gauge, "Bytes of the inbox that were not delivered yet.", float64(f.QueueBytes))
	t.One("heartbeat_scheduled_entries", gauge, "Entries that wait for their time, outside the inbox.", float64(f.ScheduledEntries))
	t.Maybe("heartbeat_oldest_queued_age_seconds", "How long the entry waits that is delivered next: since its sent_at, or, where it has none, since the first look or commit that found it there, which is a lower bound. Absent when none waits.", f.OldestQueuedAge)
	t.One("heartbeat_in_flight", gauge, "Whether an entry is in flight.", program.Number(f.InFlight))
	t.Maybe("heartbeat_in_flight_age_seconds", "How long ago the entry in flight was delivered. Absent when none is.", f.InFlightAge)
	if f.InFlightAttempt != nil {
		t.One("heartbeat_in_flight_attempt", gauge, "Which delivery it is for the entry in flight, from 1. Absent when none is.", float64(*f.InFlightAttempt))
	}
	t.One("heartbeat_paused", gauge, "Whether delivery is paused.", program.Number(f.Paused))
	f.holds(t)
	t.reasons("heartbeat_dead_letters", gauge, "Dead letters that somebody has yet to deal with: neither requeued, accepted nor canceled, and no entry of the same id was answered since.", f.DeadLetters)
}

// holds writes what else than a pause an entry may wait for.
func (f Figures) holds(t *text) {
	t.One("heartbeat_backing_off", gauge, "Whether delivery backs off, since turns ended in errors.", program.Number(f.BackingOff))
	t.Maybe("heartbeat_backing_off_until_timestamp_seconds", "When the back-off ends. Absent when none holds.", f.BackingOffUntil)
	t.One("heartbeat_failures_in_a_row", gauge, "How many failures in a row led to the last back-off: 0 once an entry was answered or delivery was resumed.", float64(f.FailuresInARow))
	if f.Waiter != nil {
		t.One("heartbeat_waiter", gauge, "Whether a process waits in the background to wake its idle session. Absent where it cannot be told whether that process lives.", program.Number(*f.Waiter))
	}
	t.One("heartbeat_waiting_for_person", gauge, "Whether a session asked for a person, and no turn of it has ended since.", program.Number(f.WaitingForPerson))
	t.One("heartbeat_runs_asking", gauge, "Babysitter runs that wait for a person.", float64(f.RunsAsking))
	t.One("heartbeat_runs_stuck", gauge, "Babysitter runs that can take no step: the last one failed, or the run cannot be read.", float64(f.RunsStuck))
}

// troubles writes what is wrong, and since when.
func (f Figures) troubles(t *text) {
	since, kinds := map[see.Kind]time.Time{}, map[see.Kind]int{}
	for _, of := range f.Troubles {
		kinds[of.Kind]++
		if at := of.Since; at != nil && (since[of.Kind].IsZero() || at.Before(since[of.Kind])) {
			since[of.Kind] = *at
		}
	}
	t.Head("heartbeat_trouble", gauge, "What is wrong now, by kind: how many of it. docs/operate.md has a row for each kind. Absent where nothing is.")
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Series("heartbeat_trouble", float64(kinds[k]), "kind", string(k))
	}
	t.Head("heartbeat_trouble_since_timestamp_seconds", gauge, "Since when, where that is known: of several, the oldest.")
	for _, k := range slices.Sorted(maps.Keys(since)) {
		t.Series("heartbeat_trouble_since_timestamp_seconds", *timestamp(since[k]), "kind", string(k))
	}
}

func (f Figures) counters(t *text) {
	t.One("heartbeat_delivered_total", counter, "Deliveries, redeliveries among them.", float64(f.Delivered))
	t.One("heartbeat_redelivered_total", counter, "Entries that were given back to be delivered again.", float64(f.Redelivered))
	t.One("heartbeat_answered_total", counter, "Entries that were answered.", float64(f.Answered))
	t.One("heartbeat_checked_total", counter, "Entries that were answered after their check had passed.", float64(f.Checked))
	t.One("heartbeat_dropped_total", counter, "Entries that were dropped.", float64(f.Dropped))
	t.One("heartbeat_self_enqueued_total", counter, "Entries that agents sent while they worked on one.", float64(f.SelfEnqueued))
	t.reasons("heartbeat_dead_lettered_total", counter, "Entries that became dead letters.", f.DeadLettered)
}

func (f Figures) histogram(t *text) {
	const name = "heartbeat_answer_seconds"
	t.Head(name, "histogram", "From an entry's delivery to its acknowledgement.")
	for _, b := range f.AnswerSeconds.Buckets {
		t.Series(name+"_bucket", float64(b.Count), "le", program.Value(b.LE))
	}
	t.Series(name+"_bucket", float64(f.AnswerSeconds.Count), "le", "+Inf")
	t.Series(name+"_sum", f.AnswerSeconds.Sum)
	t.Series(name+"_count", float64(f.AnswerSeconds.Count))
}

const (
	gauge   = program.Gauge
	counter = program.Counter
)

// text is figures that are being written.
type text struct{ program.Figures }

func (t *text) reasons(name, kind, help string, by map[inbox.Reason]int64) {
	t.Head(name, kind, help)
	for _, r := range slices.Sorted(maps.Keys(by)) {
		t.Series(name, float64(by[r]), "reason", string(r))
	}
}

// Spending is what was spent since the inbox's journal began, as far as the meters tell.
// Dollars are nil where none are known.
type Spending struct {
	USD        *float64     `json:"cost_usd_total,omitempty"`
	OutsideUSD *float64     `json:"cost_outside_usd_total,omitempty"`
	TodayUSD   *float64     `json:"cost_today_usd,omitempty"`
	Tokens     price.Tokens `json:"tokens_total"`
	Requests   int64        `json:"requests_total"`
}

// spending is nil where nothing was ever spent: it may be that nobody counts.
func spending(box *inbox.Inbox) (*Spending, error) {
	now, err := box.Spending(priced.Load(box), nil)
	if err != nil || now.Total().IsZero() {
		return nil, err
	}
	all := now.Total()
	s := &Spending{Tokens: all.Tokens, Requests: all.Requests}
	if all.Dollars {
		total, outside, today := all.USD(), now.Outside().USD(), now.Today().USD()
		s.USD, s.OutsideUSD, s.TodayUSD = &total, &outside, &today
	}
	return s, nil
}

// spent writes what was spent.
func (f Figures) spent(t *text) {
	s := f.Spending
	if s == nil {
		return
	}
	if s.USD != nil {
		t.One("heartbeat_cost_usd_total", counter, "Dollars spent, as the client said them.", *s.USD)
		t.One("heartbeat_cost_outside_usd_total", counter, "Of those, dollars spent while no entry was in flight.", *s.OutsideUSD)
		t.One("heartbeat_cost_today_usd", gauge, "Dollars spent since midnight, local time.", *s.TodayUSD)
	}
	const tokens = "heartbeat_tokens_total"
	t.Head(tokens, counter, "Tokens, by kind.")
	for _, kind := range []struct {
		name string
		n    int64
	}{{"input", s.Tokens.Input}, {"output", s.Tokens.Output}, {"cache_read", s.Tokens.CacheRead}, {"cache_write", s.Tokens.CacheWrite}} {
		t.Series(tokens, float64(kind.n), "kind", kind.name)
	}
	t.One("heartbeat_requests_total", counter, "Requests to the model, those of subagents among them.", float64(s.Requests))
}
