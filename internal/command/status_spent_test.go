package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
)

// Limits that cannot be held are named, by status and by doctor, as long as the session runs.
func TestStatusOfWhatIsNotCounted(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	const cause = "open DIR/.meter-s: it is not a regular file: remove it"
	s.in(func(tx *inbox.Tx) error { return tx.NoteUncounted("s", cause) })
	says1 := `limits are set, and nothing is counted of what session s spends since .*, so that only limits of time hold: ` + cause
	out, _ := says(t, s.box, "status")
	assert.Regexp(t, `(?m)^note +`+says1, out)
	out, _ = says(t, s.box, "status", "--json")
	assert.Regexp(t, `"warnings":\[".*nothing is counted`, out)
	out, _ = says(t, s.box, "log")
	assert.Contains(t, out, "not counted")
	assert.Regexp(t, says1, notCounted(s.box.Path())[0])
	s.in(func(tx *inbox.Tx) error { return tx.EndSession("s") })
	out, _ = says(t, s.box, "status")
	assert.NotContains(t, out, "nothing is counted")
	assert.Empty(t, notCounted(s.box.Path()))
}
