package client

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/testing/model"
)

var threads = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// A subagent of Codex's gets no entry when it ends, and what it spends is that of the entry
// for which it works.
func TestCodexSubagents(t *testing.T) {
	all := some(3)
	r := newCodexRig(t, func(q model.Request) model.Reply {
		reply := own(lastTag(q), 1)
		switch results := strings.Join(q.ToolResults, "\n"); {
		case q.UserText == "a part of it":
			reply = model.Text("the part")
		case strings.Contains(results, "agent_id"):
			reply = model.Tool("multi_agent_v1__wait_agent", map[string]any{"targets": threads.FindAllString(results, 1)})
		case lastTag(q) == "[e2]" && results == "":
			reply = model.Tool("multi_agent_v1__spawn_agent", map[string]any{"message": "a part of it"})
		}
		return reply.Using(model.Usage{Input: 1000, Output: 10})
	})
	r.add(all...)
	r.ends(minutes(t), r.exec("hello"), 0)
	assert.Equal(t, 1, r.got("a part of it"))
	results := strings.Split(strings.TrimSpace(r.run("", "results", "--json")), "\n")
	for i, requests := range []string{`"requests":1`, `"requests":4`, `"requests":1`} {
		if assert.Greater(t, len(results), i) {
			assert.Contains(t, results[i], requests)
		}
	}
	assert.Len(t, r.results(), len(all))
	assert.Empty(t, r.deadLetters())
}
