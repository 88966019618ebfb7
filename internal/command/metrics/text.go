package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"heartbeat/inbox"
)

// Text returns the figures in the text format, version 0.0.4.
func (f Figures) Text() []byte {
	t := &text{inbox: f.Inbox}
	f.gauges(t)
	f.counters(t)
	f.spent(t)
	f.histogram(t)
	if f.AcknowledgedAt != nil {
		t.one("heartbeat_last_acknowledged_timestamp_seconds", gauge, "When an entry was last acknowledged.", *f.AcknowledgedAt)
	}
	return []byte(t.String())
}

func (f Figures) gauges(t *text) {
	t.one("heartbeat_queue_entries", gauge, "Entries that wait in the inbox, without the one in flight.", float64(f.QueueEntries))
	t.one("heartbeat_queue_bytes", gauge, "Bytes of the inbox that were not delivered yet.", float64(f.QueueBytes))
	t.one("heartbeat_scheduled_entries", gauge, "Entries that wait for their time, outside the inbox.", float64(f.ScheduledEntries))
	t.maybe("heartbeat_oldest_queued_age_seconds", "How long the entry waits that is delivered next: since its sent_at, or, where it has none, since the inbox was last written to, which is a lower bound. Absent when none waits.", f.OldestQueuedAge)
	t.one("heartbeat_in_flight", gauge, "Whether an entry is in flight.", number(f.InFlight))
	t.maybe("heartbeat_in_flight_age_seconds", "How long ago the entry in flight was delivered. Absent when none is.", f.InFlightAge)
	if f.InFlightAttempt != nil {
		t.one("heartbeat_in_flight_attempt", gauge, "Which delivery it is for the entry in flight, from 1. Absent when none is.", float64(*f.InFlightAttempt))
	}
	t.one("heartbeat_paused", gauge, "Whether delivery is paused.", number(f.Paused))
	f.holds(t)
	t.reasons("heartbeat_dead_letters", gauge, "Dead letters that are kept and were not requeued.", f.DeadLetters)
}

// holds writes what else than a pause an entry may wait for.
func (f Figures) holds(t *text) {
	t.one("heartbeat_backing_off", gauge, "Whether delivery backs off, since turns ended in errors.", number(f.BackingOff))
	t.maybe("heartbeat_backing_off_until_timestamp_seconds", "When the back-off ends. Absent when none holds.", f.BackingOffUntil)
	t.one("heartbeat_failures_in_a_row", gauge, "How many failures in a row led to the last back-off: 0 once an entry was answered or delivery was resumed.", float64(f.FailuresInARow))
	if f.Waiter != nil {
		t.one("heartbeat_waiter", gauge, "Whether a process waits in the background to wake its idle session. Absent where it cannot be told whether that process lives.", number(*f.Waiter))
	}
	t.one("heartbeat_waiting_for_person", gauge, "Whether a session asked for a person, and no turn of it has ended since.", number(f.WaitingForPerson))
}

func (f Figures) counters(t *text) {
	t.one("heartbeat_delivered_total", counter, "Deliveries, redeliveries among them.", float64(f.Delivered))
	t.one("heartbeat_redelivered_total", counter, "Entries that were given back to be delivered again.", float64(f.Redelivered))
	t.one("heartbeat_answered_total", counter, "Entries that were answered.", float64(f.Answered))
	t.one("heartbeat_dropped_total", counter, "Entries that were dropped.", float64(f.Dropped))
	t.reasons("heartbeat_dead_lettered_total", counter, "Entries that became dead letters.", f.DeadLettered)
}

func (f Figures) histogram(t *text) {
	const name = "heartbeat_answer_seconds"
	t.head(name, "histogram", "From an entry's delivery to its acknowledgement.")
	for _, b := range f.AnswerSeconds.Buckets {
		t.series(name+"_bucket", float64(b.Count), "le", value(b.LE))
	}
	t.series(name+"_bucket", float64(f.AnswerSeconds.Count), "le", "+Inf")
	t.series(name+"_sum", f.AnswerSeconds.Sum)
	t.series(name+"_count", float64(f.AnswerSeconds.Count))
}

const (
	gauge   = "gauge"
	counter = "counter"
)

// text is an exposition that is being written.
type text struct {
	strings.Builder
	inbox string
}

func (t *text) head(name, kind, help string) {
	t.WriteString("# HELP " + name + " " + escapeHelp(help) + "\n# TYPE " + name + " " + kind + "\n")
}

// series is one line; labels are names and values by turns.
func (t *text) series(name string, v float64, labels ...string) {
	t.WriteString(name + `{inbox="` + escapeLabel(t.inbox) + `"`)
	for i := 0; i < len(labels); i += 2 {
		t.WriteString("," + labels[i] + `="` + escapeLabel(labels[i+1]) + `"`)
	}
	t.WriteString("} " + value(v) + "\n")
}

func (t *text) one(name, kind, help string, v float64) {
	t.head(name, kind, help)
	t.series(name, v)
}

func (t *text) maybe(name, help string, v *float64) {
	if v != nil {
		t.one(name, gauge, help, *v)
	}
}

func (t *text) reasons(name, kind, help string, by map[inbox.Reason]int64) {
	t.head(name, kind, help)
	for _, r := range slices.Sorted(maps.Keys(by)) {
		t.series(name, float64(by[r]), "reason", string(r))
	}
}

func value(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// escapeLabel also replaces bytes that are not UTF-8: paths may have them, the format
// may not.
func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

func escapeHelp(s string) string { return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(s) }
