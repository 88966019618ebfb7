package session_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/notify"
)

// told is what the command of a rig was told.
func (r *rig) told() string {
	b, err := os.ReadFile(r.path("told"))
	if !os.IsNotExist(err) {
		require.NoError(r.t, err)
	}
	return string(b)
}

// A person is told of what a session leaves, and of its failure.
func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		prompt, killAt string
		want           []string
	}{
		"completed":        {"hello", "", nil},
		"failed":           {"exit:3", "", []string{`"what":"dead-letter"`, "the session ses-1 failed: claude exited with code 3"}},
		"dies before that": {"hello", "guarded", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.prompt)
			r.Notify = notify.Options{Command: "cat >>" + r.path("told")}
			if c.killAt != "" {
				cmd := r.command()
				cmd.Env = append(cmd.Env, killVariable+"="+c.killAt)
				require.EqualError(t, cmd.Run(), "signal: killed")
			} else {
				r.run()
			}
			for _, want := range c.want {
				r.until(want, func() bool { return strings.Contains(r.told(), want) })
			}
			if c.killAt == "" {
				assert.Equal(t, len(c.want), strings.Count(r.told(), "\n"), r.told())
			}
		})
	}
}
