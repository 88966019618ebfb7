package notify

import (
	"fmt"
	"time"

	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// stalled finds that nothing moves. If something has changed since the last look, the exact time is unknown, so the
// clock starts now. New entries do not count as movement.
func (s *scan) stalled(was map[string]time.Time, after time.Duration) {
	now := see.StandsStill(s.box, s.facts)
	if now.Look == "" {
		return
	}
	key := "stalled " + now.Look
	since, known := was[key]
	if !known {
		if since = now.Since; s.st.written != nil || since.IsZero() {
			since = s.now
		}
	}
	s.st.Seen[key] = since
	if after <= 0 || s.now.Sub(since) < after {
		return
	}
	state, sentence := s.facts.Explain()
	o := Occasion{
		What: Stalled, Trouble: see.KindStalled, At: s.now, Since: &since, Reason: string(state),
		Text:     fmt.Sprintf("nothing has moved in %s for %s: %s", name(s.box), words.Took(s.now.Sub(since).Truncate(time.Second)), line(sentence)),
		TypeThis: see.Command(s.box.Path(), "status"), remembered: remembered{key: key},
	}
	d := s.facts.InFlight
	if d == nil {
		d = s.facts.Redeliver
	}
	if d != nil {
		o.Entry = &Entry{ID: d.ID(), EntryID: d.EntryID, Text: d.Text(), Attempts: d.Attempt}
	}
	for _, t := range s.facts.Troubles() {
		if t.Lasts() {
			o.Trouble = t.Kind
			break
		}
	}
	s.lasts(o, time.Time{})
}
