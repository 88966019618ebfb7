package session_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/attach"
	recovery "heartbeat/recover"
)

// A session that is cancelled warm has its entry in flight answered, and no other one
// delivered; what does not come to its end in time is given back, or set aside as stopped.
func TestCancelWarm(t *testing.T) {
	for name, c := range map[string]struct {
		pty      bool
		late     bool // the time is over at once
		policy   recovery.Policy
		answered float64
		queued   float64
		dead     float64
	}{
		"answered":                 {answered: 1, queued: 1},
		"answered in a terminal":   {pty: true, answered: 1, queued: 1},
		"given back":               {late: true, policy: recovery.Retry, queued: 2},
		"given back in a terminal": {pty: true, late: true, policy: recovery.Retry, queued: 2},
		"set aside":                {late: true, queued: 1, dead: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "")
			gate := r.path("gate")
			require.NoError(t, unix.Mkfifo(gate, 0o600))
			r.Config.Prompt = "wait:" + gate
			r.PTY, r.Policy, r.MaxAttempts, r.Grace = c.pty, cmp.Or(c.policy, recovery.DeadLetter), 1, time.Second
			start := r.start
			if c.pty {
				start = r.startInTerminal
			}
			cmd := start()
			host := attach.Host{Folder: r.folder().Dir()}
			_, err := host.Send(t.Context(), "later", "later")
			require.NoError(t, err)
			r.until("an entry is in flight", func() bool {
				_, err := os.Lstat(filepath.Join(filepath.Dir(r.folder().InboxPath()), ".in-flight"))
				return err == nil
			})
			most := time.Hour
			if c.late {
				most = 0
			}
			require.NoError(t, host.Cancel(t.Context(), attach.End{Warm: true, Most: most, Grace: -1}))
			if !c.late {
				require.NoError(t, os.WriteFile(gate, []byte("go"), 0o600))
			}
			require.NoError(t, cmd.Wait())
			report := r.report()
			assert.Equal(t, "cancelled", report["status"])
			assert.Equal(t, "cancelled by heartbeat-host cancel --warm", report["error"])
			entries := report["entries"].(map[string]any)
			assert.Equal(t, []any{c.answered, c.queued, c.dead}, []any{entries["answered"], entries["queued"], entries["deadLettered"]}, entries)
			if c.dead > 0 {
				letters, err := os.ReadFile(filepath.Join(filepath.Dir(r.folder().InboxPath()), ".dead-letter.jsonl"))
				require.NoError(t, err)
				assert.Contains(t, string(letters), `"reason":"stopped"`)
			}
			r.isClean()
		})
	}
}
