package orchestrate

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/orchestrate/run"
)

// Missing says why the answer to an entry does not settle it: it is an effect's
// that has no result, and the answer is none. It is "" where the entry is settled,
// also where the run cannot be read, which the next step tells.
func Missing(box *inbox.Inbox, d *inbox.Delivery, reply string) string {
	dir, effect, ok := Of(d)
	if !ok || effect == "" {
		return ""
	}
	r, err := run.Open(dir)
	if err != nil {
		return ""
	}
	st, err := r.State(cachePath(box, r))
	if err != nil {
		return ""
	}
	if status, err := st.Effect(effect); err != nil || status != run.Requested {
		return ""
	}
	task, err := r.Task(effect)
	if err != nil {
		return ""
	}
	b := Bridge{Box: box, Run: r}
	switch counts := b.wording(effect, task).MessageCounts(); {
	case counts && strings.TrimSpace(reply) != "":
		return ""
	case counts:
		return "no result was handed over, and the final message is empty"
	}
	return "no result was handed over with heartbeat-stop result"
}
