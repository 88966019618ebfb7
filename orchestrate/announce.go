package orchestrate

import (
	"encoding/json"
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
)

// Announce is a sentence about the run of an entry, for the person at the terminal. It is
// "" for an entry that is not a run's, and if the run cannot be read.
func Announce(box *inbox.Inbox, meta map[string]json.RawMessage) string {
	mark, ok := effect.MarkIn(meta)
	if !ok {
		return ""
	}
	r, err := run.Open(mark.RunDir)
	if err != nil {
		return ""
	}
	b := Bridge{Box: box, Run: r}
	l, err := b.open()
	if err != nil {
		return ""
	}
	said := fmt.Sprintf("run %s, iteration %d", r.ID(), l.Steps)
	if l.Options.MaxSteps > 0 {
		said += fmt.Sprintf("/%d", l.Options.MaxSteps)
	}
	if mark.Effect == "" {
		return said + ", " + mark.Kind
	}
	st, err := r.State(cachePath(box, r))
	if err != nil {
		return said
	}
	waits := 0
	for _, w := range l.Wants {
		if status, err := st.Effect(w.Effect); err == nil && status == run.Requested {
			waits++
		}
	}
	return said + ", " + words.Count(waits, "effect waits", "effects wait")
}
