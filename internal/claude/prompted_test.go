package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude"
)

// Lines as 2.1.329 writes them.
const (
	enqueued = `{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"do it\n"}`
	prompted = `{"parentUuid":null,"promptId":"p1","type":"user","message":{"role":"user","content":"do it\n"},"uuid":"u1","sessionId":"s"}`
	inBlocks = `{"promptId":"p1","type":"user","message":{"role":"user","content":[{"type":"text","text":"do it\n"}]},"uuid":"u1","sessionId":"s"}`
	meant    = `{"promptId":"p1","isMeta":true,"type":"user","message":{"role":"user","content":"do it\n"},"uuid":"u1","sessionId":"s"}`
	replied  = `{"type":"assistant","message":{"id":"m1","model":"m","content":[{"type":"text","text":"done"}]},"uuid":"u2","sessionId":"s"}`
	called   = `{"type":"assistant","message":{"id":"m0","model":"m","content":[{"type":"tool_use","id":"t"}]},"uuid":"u2","sessionId":"s"}`
	result   = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]},"uuid":"u3","sessionId":"s"}`
	failed   = `{"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error"}]},"uuid":"u2","sessionId":"s"}`
	summary  = `{"type":"system","subtype":"stop_hook_summary","uuid":"u4","sessionId":"s"}`
	another  = `{"promptId":"p2","type":"user","message":{"role":"user","content":"and that"},"uuid":"u5","sessionId":"s"}`
)

func TestPrompted(t *testing.T) {
	for name, c := range map[string]struct {
		lines           []string
		asked, finished bool
	}{
		"nothing":           {nil, false, false},
		"taken in":          {[]string{enqueued}, false, false},
		"asked":             {[]string{enqueued, prompted}, true, false},
		"asked, in blocks":  {[]string{inBlocks}, true, false},
		"the client's own":  {[]string{meant}, false, false},
		"another's":         {[]string{another, replied, summary}, false, false},
		"answered":          {[]string{prompted, replied}, true, false},
		"over":              {[]string{prompted, called, result, replied, summary}, true, true},
		"over, then more":   {[]string{prompted, replied, summary, another, called}, true, true},
		"no text":           {[]string{prompted, called, summary}, true, false},
		"failed":            {[]string{prompted, failed, summary}, true, false},
		"another came":      {[]string{prompted, called, another, replied, summary}, true, false},
		"before the prompt": {[]string{replied, summary, prompted}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.jsonl")
			old := prompted + "\n" + replied + "\n" + summary + "\n"
			require.NoError(t, os.WriteFile(path, []byte(old+strings.Join(append(c.lines, ""), "\n")), 0o600))
			p := claude.Prompted{Path: path, Size: int64(len(old)), Text: "do it\n", PromptID: "p1"}
			assert.Equal(t, c.asked, p.Asked(""))
			assert.Equal(t, c.asked, p.Asked("p1"))
			assert.False(t, p.Asked("p2"))
			reply, finished := p.Finished()
			assert.Equal(t, c.finished, finished)
			if finished {
				assert.Equal(t, "done", reply)
			}
			p.Text = "do it" // the newline counts
			assert.False(t, p.Asked(""))
		})
	}
	assert.False(t, claude.Prompted{Path: "/dev/null/none", Text: "x"}.Asked(""))
}
