package metrics

import (
	"maps"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/exposition"
)

// Text returns the figures in the text format, version 0.0.4.
func (f Figures) Text() []byte {
	t := &text{exposition.Text{Labels: []string{"inbox", f.Inbox}}}
	f.gauges(t)
	f.counters(t)
	f.spent(t)
	f.histogram(t)
	if f.AcknowledgedAt != nil {
		t.One("heartbeat_last_acknowledged_timestamp_seconds", gauge, "When an entry was last acknowledged.", *f.AcknowledgedAt)
	}
	return []byte(t.String())
}

func (f Figures) gauges(t *text) {
	t.One("heartbeat_queue_entries", gauge, "Entries that wait in the inbox, without the one in flight.", float64(f.QueueEntries))
	t.One("heartbeat_queue_bytes", gauge, "Bytes of the inbox that were not delivered yet.", float64(f.QueueBytes))
	t.One("heartbeat_scheduled_entries", gauge, "Entries that wait for their time, outside the inbox.", float64(f.ScheduledEntries))
	t.Maybe("heartbeat_oldest_queued_age_seconds", "How long the entry waits that is delivered next: since its sent_at, or, where it has none, since the inbox was last written to, which is a lower bound. Absent when none waits.", f.OldestQueuedAge)
	t.One("heartbeat_in_flight", gauge, "Whether an entry is in flight.", exposition.Number(f.InFlight))
	t.Maybe("heartbeat_in_flight_age_seconds", "How long ago the entry in flight was delivered. Absent when none is.", f.InFlightAge)
	if f.InFlightAttempt != nil {
		t.One("heartbeat_in_flight_attempt", gauge, "Which delivery it is for the entry in flight, from 1. Absent when none is.", float64(*f.InFlightAttempt))
	}
	t.One("heartbeat_paused", gauge, "Whether delivery is paused.", exposition.Number(f.Paused))
	f.holds(t)
	t.reasons("heartbeat_dead_letters", gauge, "Dead letters that are kept and were not requeued.", f.DeadLetters)
}

// holds writes what else than a pause an entry may wait for.
func (f Figures) holds(t *text) {
	t.One("heartbeat_backing_off", gauge, "Whether delivery backs off, since turns ended in errors.", exposition.Number(f.BackingOff))
	t.Maybe("heartbeat_backing_off_until_timestamp_seconds", "When the back-off ends. Absent when none holds.", f.BackingOffUntil)
	t.One("heartbeat_failures_in_a_row", gauge, "How many failures in a row led to the last back-off: 0 once an entry was answered or delivery was resumed.", float64(f.FailuresInARow))
	if f.Waiter != nil {
		t.One("heartbeat_waiter", gauge, "Whether a process waits in the background to wake its idle session. Absent where it cannot be told whether that process lives.", exposition.Number(*f.Waiter))
	}
	t.One("heartbeat_waiting_for_person", gauge, "Whether a session asked for a person, and no turn of it has ended since.", exposition.Number(f.WaitingForPerson))
}

func (f Figures) counters(t *text) {
	t.One("heartbeat_delivered_total", counter, "Deliveries, redeliveries among them.", float64(f.Delivered))
	t.One("heartbeat_redelivered_total", counter, "Entries that were given back to be delivered again.", float64(f.Redelivered))
	t.One("heartbeat_answered_total", counter, "Entries that were answered.", float64(f.Answered))
	t.One("heartbeat_dropped_total", counter, "Entries that were dropped.", float64(f.Dropped))
	t.One("heartbeat_self_enqueued_total", counter, "Entries that agents sent while they worked on one.", float64(f.SelfEnqueued))
	t.reasons("heartbeat_dead_lettered_total", counter, "Entries that became dead letters.", f.DeadLettered)
}

func (f Figures) histogram(t *text) {
	const name = "heartbeat_answer_seconds"
	t.Head(name, "histogram", "From an entry's delivery to its acknowledgement.")
	for _, b := range f.AnswerSeconds.Buckets {
		t.Series(name+"_bucket", float64(b.Count), "le", exposition.Value(b.LE))
	}
	t.Series(name+"_bucket", float64(f.AnswerSeconds.Count), "le", "+Inf")
	t.Series(name+"_sum", f.AnswerSeconds.Sum)
	t.Series(name+"_count", float64(f.AnswerSeconds.Count))
}

const (
	gauge   = exposition.Gauge
	counter = exposition.Counter
)

// text is an exposition that is being written.
type text struct{ exposition.Text }

func (t *text) reasons(name, kind, help string, by map[inbox.Reason]int64) {
	t.Head(name, kind, help)
	for _, r := range slices.Sorted(maps.Keys(by)) {
		t.Series(name, float64(by[r]), "reason", string(r))
	}
}
