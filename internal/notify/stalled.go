package notify

import (
	"fmt"
	"time"

	"heartbeat/internal/see"
	"heartbeat/internal/words"
)

// nothingWaits stands for a look where nothing could stand still.
const nothingWaits = "nothing"

// stalled finds that nothing moves. Where something has changed since the last look,
// nobody knows when, so the time runs from now.
func (s *scan) stalled(after time.Duration) {
	now, was := see.StandsStill(s.box, s.facts), s.st.Still
	switch {
	case now.Look == "":
		s.st.Still = see.Still{Look: nothingWaits}
		return
	case was.Look == now.Look && !was.Since.IsZero():
		now.Since = was.Since // entries that came meanwhile are no movement
	case was.Look != "" || now.Since.IsZero():
		now.Since = s.now
	}
	s.st.Still = now
	if s.now.Sub(now.Since) < after {
		return
	}
	state, sentence := s.facts.Explain()
	o := Occasion{
		What: Stalled, Trouble: see.KindStalled, At: s.now, Since: &now.Since, Reason: string(state),
		Text:     fmt.Sprintf("nothing has moved in %s for %s: %s", name(s.box), words.Took(s.now.Sub(now.Since).Truncate(time.Second)), line(sentence)),
		TypeThis: see.Command(s.box.Path(), "status"), key: "stalled " + now.Look,
		Entry: entryOf(s.facts),
	}
	for _, t := range s.facts.Troubles() {
		if t.Lasts() {
			o.Trouble = t.Kind
			break
		}
	}
	s.lasts(o, time.Time{})
}

func entryOf(f see.Facts) *Entry {
	d := f.InFlight
	if d == nil {
		d = f.Redeliver
	}
	if d == nil {
		return nil
	}
	return &Entry{ID: d.ID(), EntryID: d.EntryID, Text: d.Text(), Attempts: d.Attempt}
}
