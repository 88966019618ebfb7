package metrics

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
)

// Text returns the figures of all inboxes in the text format, version 0.0.4.
func Text(all []Figures) []byte {
	t := &text{}
	for _, f := range all {
		t.Labels = []string{"inbox", f.Inbox}
		if !f.unread {
			t.figures(reflect.ValueOf(f))
		}
		t.troubles(f.Troubles)
	}
	return []byte(t.String())
}

// text is figures that are being written.
type text struct{ program.Figures }

// figures writes the fields that have a help tag. A nil field is absent.
func (t *text) figures(of reflect.Value) {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), reflect.Indirect(of.Field(i))
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
	switch of := v.Interface().(type) {
	case bool:
		t.One(name, kind, help, program.Number(of))
	case float64:
		t.One(name, kind, help, of)
	case map[inbox.Reason]int64:
		by := map[string]int64{}
		for reason, n := range of {
			by[string(reason)] = n
		}
		series("reason", by)
	case price.Tokens:
		series("kind", map[string]int64{"input": of.Input, "output": of.Output, "cache_read": of.CacheRead, "cache_write": of.CacheWrite})
	case Histogram:
		t.Head(name, "histogram", help)
		for _, b := range of.Buckets {
			t.Series(name+"_bucket", float64(b.Count), "le", program.Value(b.LE))
		}
		t.Series(name+"_bucket", float64(of.Count), "le", "+Inf")
		t.Series(name+"_sum", of.Sum)
		t.Series(name+"_count", float64(of.Count))
	default:
		t.One(name, kind, help, float64(v.Int()))
	}
}

// troubles writes what is wrong, and since when.
func (t *text) troubles(all []see.Trouble) {
	since, kinds := map[see.Kind]time.Time{}, map[see.Kind]int{}
	for _, of := range all {
		kinds[of.Kind]++
		if at := of.Since; at != nil && (since[of.Kind].IsZero() || at.Before(since[of.Kind])) {
			since[of.Kind] = *at
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

// Spending is what was spent since the inbox's journal began, as far as the transcripts tell. Dollars are nil if
// unknown.
type Spending struct {
	USD        *float64     `json:"cost_usd_total,omitempty" help:"Dollars spent, as the client said them."`
	OutsideUSD *float64     `json:"cost_outside_usd_total,omitempty" help:"Of those, dollars spent while no entry was in flight."`
	TodayUSD   *float64     `json:"cost_today_usd,omitempty" help:"Dollars spent since midnight, local time."`
	Tokens     price.Tokens `json:"tokens_total" help:"Tokens, by kind."`
	Requests   int64        `json:"requests_total" help:"Requests to the model, those of subagents among them."`
}

// spending is nil if nothing was ever spent, because then perhaps nobody counts.
func spending(box *inbox.Inbox) (*Spending, error) {
	now, err := book.Spending(box, nil)
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
