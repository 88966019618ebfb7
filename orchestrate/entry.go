package orchestrate

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/orchestrate/effect"
)

// The kinds of entries about the run itself.
const (
	kindFailed = "run failed"
	kindFinish = "run completed"
)

// entryID names the nth entry for something that a run asks for.
func (b *Bridge) entryID(what string, nth int) string {
	id := b.Run.ID() + "/" + what
	if nth > 1 {
		id += fmt.Sprintf("#%d", nth)
	}
	return id
}

func (b *Bridge) message(id, effectID, kind, step, prompt string) inbox.Message {
	meta := map[string]any{effect.MetaRun: b.Run.ID(), effect.MetaRunDir: b.Run.Dir(), effect.MetaKind: kind}
	if effectID != "" {
		meta[effect.MetaEffect] = effectID
	}
	if step != "" {
		meta[effect.MetaStep] = step
	}
	return inbox.Message{ID: id, Text: prompt, Metadata: meta}
}
