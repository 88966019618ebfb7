package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// compacted is in what the model gets of a conversation that Codex has compacted.
const compacted = "Here is the summary produced by the other language model"

// configure puts a line at the top of Codex's config.toml.
func (r *codexRig) configure(line string) {
	r.t.Helper()
	path := filepath.Join(r.home, "config.toml")
	text, err := os.ReadFile(path)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(path, append([]byte(line+"\n"), text...), 0o600))
}

// A compaction in the middle of an entry's turn stands in the rollout as what the assistant
// said. It is no answer: neither to the entry, nor once the client is killed behind it.
func TestCodexCompactsWithinATurn(t *testing.T) {
	for name, killed := range map[string]bool{"to its end": false, "killed behind the summary": true} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(4)
			summed := 0
			r := newCodexRig(t, func(q model.Request) model.Reply {
				switch {
				case strings.Contains(q.UserText, compacted):
					if summed++; killed && summed == 1 {
						return model.Hang()
					}
					return own("[e2]", 1)
				case lastTag(q) == "[e2]" && len(q.ToolResults) == 0:
					return model.Tool("exec_command", map[string]any{"cmd": "true"}).Using(model.Usage{Input: 50_000, Output: 10})
				}
				return own(lastTag(q), 1)
			}, "--on-orphan", "retry")
			r.configure("model_auto_compact_token_limit = 20000")
			r.add(all...)
			run := r.exec("hello")
			fates := answeredOnce(all...)
			if killed {
				r.until(ctx, "the summary is in the conversation", func() bool {
					for _, q := range r.Model.MainRequests() {
						if strings.Contains(q.UserText, compacted) {
							return true
						}
					}
					return false
				})
				run.Kill()
				run = r.exec("hello again")
				fates[1].attempt, fates[1].arrivals = 2, 2
			}
			r.ends(ctx, run, 0)
			r.came(fates...)
		})
	}
}

// install gives the tools of an agent, and what it did to config.toml is taken back out of what
// Codex has written there since.
func TestCodexInstalledTools(t *testing.T) {
	all := some(2)
	r := bareCodexRig(t, func(q model.Request) model.Reply {
		if lastTag(q) == "[e1]" && len(q.ToolResults) == 0 {
			return model.Tool("mcp__heartbeat__task_reject", map[string]any{"reason": "not for me"})
		}
		return own(lastTag(q), 1)
	})
	config := filepath.Join(r.home, "config.toml")
	before, err := os.ReadFile(config)
	require.NoError(t, err)
	r.wire("--mcp")
	r.add(all...)
	r.ends(minutes(t), r.exec("hello"), 0)
	fates := answeredOnce(all...)
	fates[0].reply, fates[0].reason = "", "rejected"
	r.came(fates...)

	r.run("", "uninstall", "--agent", "codex", "--settings", filepath.Join(r.home, "hooks.json"))
	after, err := os.ReadFile(config)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(after), string(before)), "%s", after)
	assert.NotContains(t, string(after), "heartbeat")
	assert.NoFileExists(t, filepath.Join(r.home, "hooks.json"))
}
