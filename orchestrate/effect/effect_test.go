package effect_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/orchestrate/effect"
)

func metadata(t *testing.T, s string) (m map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(s), &m))
	return m
}

func TestMark(t *testing.T) {
	for name, c := range map[string]struct {
		metadata string
		mark     effect.Mark
		ok       bool
	}{
		"an effect":          {`{"run":"r1","run_dir":"/w/r1","effect":"e1","kind":"agent","step":"S1"}`, effect.Mark{Run: "r1", RunDir: "/w/r1", Effect: "e1", Kind: "agent"}, true},
		"the run itself":     {`{"run":"r1","run_dir":"/w/r1","kind":"run failed"}`, effect.Mark{Run: "r1", RunDir: "/w/r1", Kind: "run failed"}, true},
		"nothing":            {`null`, effect.Mark{}, false},
		"a sender's own":     {`{"kind":"mail","effect":"e1"}`, effect.Mark{Effect: "e1", Kind: "mail"}, false},
		"not a string":       {`{"run_dir":["/w/r1"],"effect":7}`, effect.Mark{}, false},
		"an empty directory": {`{"run_dir":""}`, effect.Mark{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			mark, ok := effect.MarkIn(metadata(t, c.metadata))
			assert.Equal(t, c.mark, mark)
			assert.Equal(t, c.ok, ok)
		})
	}
}

func TestNothingInFlight(t *testing.T) {
	_, ok := effect.MarkOf(nil)
	assert.False(t, ok)
}

func TestText(t *testing.T) {
	e := inbox.Entry{Text: "Do it.", Attempt: 2, Metadata: metadata(t, `{"run_dir":"/w/r1","effect":"e1"}`)}
	assert.Equal(t, "This is asked again (attempt 2), since effect e1 has no result yet: none was handed over with the command below. "+
		"If the work is done already, only hand its result over.\n\nDo it.", effect.Text(e))

	first := e
	first.Attempt = 1
	assert.Equal(t, "Do it.", effect.Text(first))
	about := e
	about.Metadata = metadata(t, `{"run_dir":"/w/r1","kind":"run failed"}`)
	assert.Equal(t, "Do it.", effect.Text(about))
	about.Metadata = metadata(t, `{"effect":"e1"}`)
	assert.Equal(t, "Do it.", effect.Text(about), "a sender's own metadata")
}

func TestIDIn(t *testing.T) {
	for typed, id := range map[string]string{"e1": "e1", "r1/e1": "e1", "r1/e1#2": "e1", "e1#3": "e1", "": ""} {
		assert.Equal(t, id, effect.IDIn(typed), typed)
	}
}

func TestCheckExecute(t *testing.T) {
	require.NoError(t, effect.CheckExecute(nil))
	require.NoError(t, effect.CheckExecute([]string{"node", "shell"}))
	assert.EqualError(t, effect.CheckExecute([]string{"node", "agent", "no\nde"}), `only node and shell can be carried out here, not "agent", "no\nde"`)
}
