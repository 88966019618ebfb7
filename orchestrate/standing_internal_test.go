package orchestrate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/orchestrate/run"
)

// What a run waits for is looked up in one pass over the inbox and one over the dead letters: a run of
// thousands of effects would else take minutes to be shown.
func TestStandingOfManyEffects(t *testing.T) {
	few, many := standingOf(t, 20), standingOf(t, 200)
	assert.Less(t, (many-few)/180, 40.0, "allocations for each effect more: opening the inbox for it takes twice as many")
}

// standingOf returns the allocations that it takes to show a run that waits for n effects. The entries of
// half of them wait, and the others are not in the inbox.
func standingOf(t *testing.T, n int) float64 {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r1")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "journal"), 0o700))
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("run.json", `{"runId":"r1","layoutVersion":"`+run.Layout+`"}`)
	put("journal/000001.01M7ZWJR3K97NXC3V000000001.json", `{"type":"RUN_CREATED","data":{}}`)
	lines, effects := "", map[string]madeEntry{}
	for i := range n {
		id := fmt.Sprintf("e%d", i)
		put(fmt.Sprintf("journal/%06d.01M7ZWJR3K97NXC3V0%08d.json", i+2, i+2),
			fmt.Sprintf(`{"type":"EFFECT_REQUESTED","data":{"effectId":%q,"invocationKey":%[1]q,"stepId":"s","taskId":"t","taskDefRef":"d","kind":"agent"}}`, id))
		effects[id] = madeEntry{Entry: "r1/" + id, Nth: 1}
		if i%2 == 0 {
			lines += fmt.Sprintf(`{"prompt":"x","id":"r1/%s"}`+"\n", id)
		}
	}
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	of, err := run.Open(dir)
	require.NoError(t, err)
	b := &Bridge{Box: box, Run: of}
	l, lock, err := b.begin(t.Context(), time.Minute)
	require.NoError(t, err)
	l.Effects = effects
	require.NoError(t, b.save(l, lock))
	require.NoError(t, lock.Release())
	handed, err := json.Marshal(answer{Effect: "e3", Value: TextValue("done"), Lock: l.Lock})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(answerPath(box, of, "e3"), handed, 0o600))
	now, err := b.Standing()
	require.NoError(t, err)
	require.Len(t, now.Entries, n)
	assert.Equal(t, "queued", now.Entries[0].Where)
	assert.Equal(t, "gone", now.Entries[1].Where)
	assert.Equal(t, "handed over", now.Entries[3].Where, "its result waits for the next step")
	return testing.AllocsPerRun(3, func() { _, _ = b.Standing() })
}
