package metrics_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/command/metrics"
	"heartbeat/internal/testing/script"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// parse reads a text as Prometheus does.
func parse(t testing.TB, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	return families
}

// inboxOf is the label that every series has.
func inboxOf(m *dto.Metric) string { return labelOf(m, "inbox") }

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// at is a clock that stands where it is set.
type at struct{ now time.Time }

func newBox(t testing.TB, now *at) *inbox.Inbox {
	t.Helper()
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{Now: func() time.Time { return now.now }})
	require.NoError(t, err)
	return box
}

func gather(t testing.TB, box *inbox.Inbox, now time.Time) map[string]*dto.MetricFamily {
	t.Helper()
	f, err := metrics.Gather(t.Context(), box, now)
	require.NoError(t, err)
	families := parse(t, metrics.Text([]metrics.Figures{f}))
	for name, family := range families {
		assert.NotEmpty(t, family.GetHelp(), name)
		for _, m := range family.GetMetric() {
			assert.Equal(t, box.Path(), inboxOf(m), name)
		}
	}
	return families
}

// gauge is the only value of a family.
func value(t testing.TB, families map[string]*dto.MetricFamily, name string) float64 {
	t.Helper()
	require.Contains(t, families, name)
	require.Len(t, families[name].GetMetric(), 1, name)
	m := families[name].GetMetric()[0]
	if families[name].GetType() == dto.MetricType_COUNTER {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}

func byReason(families map[string]*dto.MetricFamily, name string) map[string]float64 {
	all := map[string]float64{}
	for _, m := range families[name].GetMetric() {
		if n := m.GetGauge().GetValue() + m.GetCounter().GetValue(); n > 0 {
			all[labelOf(m, "reason")] = n
		}
	}
	return all
}

func TestOfAnEmptyInbox(t *testing.T) {
	families := gather(t, newBox(t, &at{noon}), noon)
	for _, name := range []string{
		"heartbeat_queue_entries", "heartbeat_queue_bytes", "heartbeat_scheduled_entries", "heartbeat_in_flight", "heartbeat_paused",
		"heartbeat_backing_off", "heartbeat_failures_in_a_row", "heartbeat_waiter", "heartbeat_waiting_for_person", "heartbeat_runs_asking", "heartbeat_runs_stuck",
		"heartbeat_delivered_total", "heartbeat_redelivered_total", "heartbeat_answered_total", "heartbeat_checked_total", "heartbeat_dropped_total", "heartbeat_self_enqueued_total",
	} {
		assert.Zero(t, value(t, families, name), name)
	}
	for _, name := range []string{
		"heartbeat_oldest_queued_age_seconds", "heartbeat_in_flight_age_seconds", "heartbeat_in_flight_attempt", "heartbeat_last_acknowledged_timestamp_seconds",
		"heartbeat_backing_off_until_timestamp_seconds",
	} {
		assert.NotContains(t, families, name)
	}
	assert.Len(t, families["heartbeat_dead_letters"].GetMetric(), len(inbox.Reasons()), "a series that comes with its first count has no increase")
	assert.Len(t, families["heartbeat_dead_lettered_total"].GetMetric(), len(inbox.Reasons()))
	assert.Equal(t, dto.MetricType_HISTOGRAM, families["heartbeat_answer_seconds"].GetType())
	assert.Zero(t, families["heartbeat_answer_seconds"].GetMetric()[0].GetHistogram().GetSampleCount())
}

func step(t testing.TB, box *inbox.Inbox, settle func(*inbox.Tx) error) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	if tx.InFlight() != nil {
		require.NoError(t, settle(tx))
	}
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(e, inbox.Recipient{})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
}

func TestOfABusyInbox(t *testing.T) {
	now := &at{noon}
	box := newBox(t, now)
	for range 8 {
		_, err := box.Append(t.Context(), inbox.Message{Text: "text"}, 0)
		require.NoError(t, err)
	}
	later := noon.Add(time.Hour)
	_, err := box.Append(t.Context(), inbox.Message{Text: "text", NotBefore: later}, 0)
	require.NoError(t, err)
	answer := func(tx *inbox.Tx) error { return tx.Acknowledge("reply") }
	step(t, box, nil)
	for _, after := range []time.Duration{500 * time.Millisecond, 40 * time.Second, 3 * time.Hour} {
		now.now = now.now.Add(after)
		step(t, box, answer)
	}
	acknowledged := now.now
	require.NoError(t, os.Rename(box.ResultsPath(), box.ResultsPath()+".1")) // the totals do not mind
	step(t, box, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonFailed) })
	step(t, box, (*inbox.Tx).Drop)
	step(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("", true) })
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Holds().Pause("why", nil)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())

	f := gather(t, box, now.now.Add(90*time.Second))
	assert.EqualValues(t, 3, value(t, f, "heartbeat_queue_entries"), "two, and the one that has come due")
	assert.Positive(t, value(t, f, "heartbeat_queue_bytes"))
	assert.Zero(t, value(t, f, "heartbeat_scheduled_entries"))
	assert.EqualValues(t, 3*3600+40.5+90, value(t, f, "heartbeat_oldest_queued_age_seconds"))
	assert.EqualValues(t, 1, value(t, f, "heartbeat_in_flight"))
	assert.EqualValues(t, 90, value(t, f, "heartbeat_in_flight_age_seconds"))
	assert.EqualValues(t, 2, value(t, f, "heartbeat_in_flight_attempt"))
	assert.EqualValues(t, 1, value(t, f, "heartbeat_paused"))
	assert.EqualValues(t, 7, value(t, f, "heartbeat_delivered_total"))
	assert.EqualValues(t, 1, value(t, f, "heartbeat_redelivered_total"))
	assert.EqualValues(t, 3, value(t, f, "heartbeat_answered_total"))
	assert.EqualValues(t, 1, value(t, f, "heartbeat_dropped_total"))
	assert.Equal(t, map[string]float64{"failed": 1}, byReason(f, "heartbeat_dead_letters"))
	assert.Equal(t, map[string]float64{"failed": 1}, byReason(f, "heartbeat_dead_lettered_total"))
	assert.EqualValues(t, acknowledged.Unix(), int64(value(t, f, "heartbeat_last_acknowledged_timestamp_seconds")))
	h := f["heartbeat_answer_seconds"].GetMetric()[0].GetHistogram()
	assert.EqualValues(t, 3, h.GetSampleCount())
	assert.EqualValues(t, 0.5+40+3*3600, h.GetSampleSum())
	counts := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		counts[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	assert.Subset(t, counts, map[float64]uint64{1: 1, 30: 1, 60: 2, 7200: 2})
	assert.Len(t, counts, 13, "with the one that is infinite")
}

// TestAgeWithoutATime: a line that does not say when it was sent is at least as old
// as the file was when somebody saw it there, and what comes behind it makes it no younger.
func TestAgeWithoutATime(t *testing.T) {
	box := newBox(t, &at{noon})
	require.NoError(t, os.WriteFile(box.Path(), []byte("raw\n"), 0o600))
	require.NoError(t, os.Chtimes(box.Path(), noon, noon.Add(-time.Minute)))
	assert.EqualValues(t, 60, value(t, gather(t, box, noon), "heartbeat_oldest_queued_age_seconds"))
	assert.Zero(t, value(t, gather(t, box, noon.Add(-time.Hour)), "heartbeat_oldest_queued_age_seconds"), "the clock was set back")
	require.NoError(t, os.WriteFile(box.Path(), []byte("raw\nmore\n"), 0o600))
	require.NoError(t, os.Chtimes(box.Path(), noon, noon))
	assert.EqualValues(t, 60, value(t, gather(t, box, noon), "heartbeat_oldest_queued_age_seconds"))
}

func TestRequeuedLettersAreLeftOut(t *testing.T) {
	box := newBox(t, &at{noon})
	dead := `{"entry_id":"aa","raw_line":"x","reason":"by \"hand\"\\\n","dead_lettered_at":"2026-03-04T12:00:00Z"}`
	require.NoError(t, os.WriteFile(box.DeadLetterPath(), []byte(dead+"\n"), 0o600))
	assert.Equal(t, map[string]float64{"by \"hand\"\\\n": 1}, byReason(gather(t, box, noon), "heartbeat_dead_letters"))
	letters, _, err := script.Letters(box)
	require.NoError(t, err)
	mark, err := json.Marshal(map[string]any{"letter": letters[0].Letter, "entry_id": "aa", "requeued_at": noon})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(box.DeadLetterPath(), []byte(dead+"\n"+string(mark)+"\nnoise\n"), 0o600))
	assert.Empty(t, byReason(gather(t, box, noon), "heartbeat_dead_letters"))
	f, err := metrics.Gather(t.Context(), box, noon)
	require.NoError(t, err)
	assert.Len(t, f.Warnings, 1)
}

// Figures of many inboxes name each figure once. What is wrong has a kind, and since when.
func TestManyInboxes(t *testing.T) {
	var all []metrics.Figures
	for range 3 {
		box := newBox(t, &at{noon})
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Holds().Pause("why", nil)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.Close())
		f, err := metrics.Gather(t.Context(), box, noon)
		require.NoError(t, err)
		all = append(all, f)
	}
	bad := newBox(t, &at{noon})
	require.NoError(t, os.WriteFile(filepath.Join(bad.Dir(), ".inbox-offset"), []byte("no offset\n"), 0o600))
	f, err := metrics.Gather(t.Context(), bad, noon)
	require.Error(t, err)
	families := parse(t, metrics.Text(append(all, f)))
	assert.Len(t, families["heartbeat_queue_entries"].GetMetric(), 3, "nothing is known of the fourth")
	kinds := map[string]int{}
	for _, m := range families["heartbeat_trouble"].GetMetric() {
		kinds[labelOf(m, "kind")]++
	}
	assert.Equal(t, map[string]int{"paused": 3, "unreadable": 1}, kinds)
	for _, m := range families["heartbeat_trouble_since_timestamp_seconds"].GetMetric() {
		assert.EqualValues(t, noon.Unix(), m.GetGauge().GetValue())
	}
}

// Two paths that differ only in what is no text are two, else Prometheus would refuse all figures.
func TestPathsThatAreNoText(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"a\xff", "a\xfe", "b"} {
		paths = append(paths, filepath.Join(dir, name, "inbox.jsonl"))
		require.NoError(t, os.Mkdir(filepath.Dir(paths[len(paths)-1]), 0o700))
	}
	all, err := metrics.GatherAll(t.Context(), paths, noon)
	require.NoError(t, err)
	labels := map[string]bool{}
	for _, m := range parse(t, metrics.Text(all))["heartbeat_queue_entries"].GetMetric() {
		labels[inboxOf(m)] = true
	}
	assert.Len(t, labels, 3)
}

// asText is a label as Prometheus reads it.
func asText(label string) string {
	if utf8.ValidString(label) {
		return label
	}
	return strconv.Quote(label)
}

// FuzzText holds that whatever a path or a reason is, Prometheus reads it as it is.
func FuzzText(f *testing.F) {
	f.Add("/srv/agent/inbox.jsonl", "orphaned")
	f.Add("a\"b\\c\nd", "e\\\"f\n")
	f.Add("\xff\x00", "# HELP")
	f.Fuzz(func(t *testing.T, path, reason string) {
		age := 1.5
		families := parse(t, metrics.Text([]metrics.Figures{{
			Inbox: path, Queue: metrics.Queue{OldestQueuedAge: &age}, DeadLetters: map[inbox.Reason]int64{inbox.Reason(reason): 3},
			Totals: metrics.Totals{AnswerSeconds: metrics.Histogram{Buckets: []metrics.Bucket{{LE: 0.5, Count: 1}}, Sum: 1e-9, Count: 2}},
		}}))
		for _, family := range families {
			for _, m := range family.GetMetric() {
				assert.Equal(t, asText(path), inboxOf(m))
			}
		}
		assert.Equal(t, strings.ToValidUTF8(reason, "\uFFFD"), labelOf(families["heartbeat_dead_letters"].GetMetric()[0], "reason"))
		h := families["heartbeat_answer_seconds"].GetMetric()[0].GetHistogram()
		assert.Equal(t, 1e-9, h.GetSampleSum())
	})
}
