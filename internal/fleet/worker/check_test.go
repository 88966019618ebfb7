package worker_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/upstream"
)

// A message is decided only once its check is: an answer that the check does not accept is
// none, neither in the results nor for who asked.
func TestAMessageIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Minute)
	open := filepath.Join(w.gate, "checked")
	const begun = `echo "$HEARTBEAT_PROMPT" >>"$` + gateVariable + `/checks"; `
	a := w.start("one", nil, "--launch", "--check-tries=2", "--launch",
		"--check="+begun+`until test -e "$`+gateVariable+`/checked"; do sleep 0.02; done; test "$HEARTBEAT_PROMPT" = good`)
	w.send("good", "bad")
	w.eventually("a check", func() bool { return is(w.gate, "checks") }, a)
	assert.Nil(t, w.known("good"))
	assert.Nil(t, w.known("bad"))
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	w.settled(a, "good", "bad")
	assert.Equal(t, upstream.WasAnswered, w.known("good").Outcome)
	w.eventually("its reply", func() bool { return w.replied("good") == 1 }, a)
	bad := w.known("bad")
	assert.Equal(t, upstream.WasDead, bad.Outcome)
	assert.Equal(t, "check_failed", bad.Reason)
	checks, err := os.ReadFile(filepath.Join(w.gate, "checks"))
	require.NoError(t, err)
	assert.Equal(t, "good\nbad\nbad\n", string(checks))
}
