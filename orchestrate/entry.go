package orchestrate

import (
	"encoding/json"
	"fmt"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// Names of what an entry's metadata says of the run that it is for.
const (
	metaRun    = "run"
	metaDir    = "run_dir"
	metaEffect = "effect"
	metaKind   = "kind"
	metaStep   = "step"
)

// Kinds of entries that are no effect's.
const (
	kindFailed = "run failed"
	kindFinish = "run completed"
)

// Of says which effect of which run an entry in flight is for; ok is false for one
// that is none's.
func Of(d *inbox.Delivery) (runDir, effect string, ok bool) {
	if d == nil {
		return "", "", false
	}
	m := d.Metadata()
	return text(m[metaDir]), text(m[metaEffect]), text(m[metaDir]) != ""
}

// PolicyOf has the entries of runs delivered again where nobody chose otherwise, since
// a run can go no further without them; "" is any other entry's.
func PolicyOf(d *inbox.Delivery) recovery.Policy {
	if _, _, ok := Of(d); ok {
		return recovery.Retry
	}
	return ""
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // one that is none is empty
	return s
}

// entryID names the nth entry for something that a run asks for.
func (b *Bridge) entryID(what string, nth int) string {
	id := b.Run.ID() + "/" + what
	if nth > 1 {
		id += fmt.Sprintf("#%d", nth)
	}
	return id
}

func (b *Bridge) message(id, effect, kind, step, prompt string) inbox.Message {
	meta := map[string]any{metaRun: b.Run.ID(), metaDir: b.Run.Dir(), metaKind: kind}
	if effect != "" {
		meta[metaEffect] = effect
	}
	if step != "" {
		meta[metaStep] = step
	}
	return inbox.Message{ID: id, Text: prompt, Metadata: meta}
}
