package recover_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// An API error that the client reported to no hook has the same effect as a reported one: the entry
// is delivered again under every policy, and delivery is held unless a session has continued since.
func TestAnUntoldFailure(t *testing.T) {
	const handed = `{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"HookPrompt","fragments":[{"text":"one"}]}}}` + "\n"
	const broke = `{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","error":{"message":"it broke","codex_error_info":"internal_server_error"}}}` + "\n"
	for name, c := range map[string]struct {
		rollout  string
		overcome bool
		action   recovery.Action
		held     bool
	}{
		"an error":               {handed + broke, false, recovery.Requeued, true},
		"a session has gone on":  {handed + broke, true, recovery.Requeued, false},
		"no error":               {handed, false, recovery.DeadLettered, false},
		"another turn's":         {broke, false, recovery.DeadLettered, false},
		"no rollout":             {"", false, recovery.DeadLettered, false},
		"of another kind of end": {handed + `{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}` + "\n", false, recovery.DeadLettered, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rollout := filepath.Join(dir, "rollout-x.jsonl")
			if c.rollout != "" {
				require.NoError(t, os.WriteFile(rollout, []byte(c.rollout), 0o600))
			}
			box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(box.Path(), []byte("one\n"), 0o600))
			evidence := recovery.Evidence{Transcript: rollout}
			in(t, box, func(tx *inbox.Tx) error {
				e, err := tx.Next(inbox.Mark{})
				require.NoError(t, err)
				_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s1", PromptID: "t1", Evidence: evidence.Encode()})
				return err
			})
			var report recovery.Report
			in(t, box, func(tx *inbox.Tx) (err error) {
				report, err = recovery.Settle(tx, recovery.Asker{Box: box}, recovery.Sight{Overcome: c.overcome})
				return err
			})
			assert.Equal(t, c.action, report.Action)
			if c.action == recovery.Requeued {
				require.NotNil(t, report.Failure)
				assert.Equal(t, "server_error: it broke", report.Failure.String())
			}
			in(t, box, func(tx *inbox.Tx) error {
				held, err := tx.Holds().Backoff()
				assert.Equal(t, c.held, held != nil)
				return err
			})
		})
	}
}
