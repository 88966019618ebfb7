package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file counts as opened once a call that names it has a result that is no error.
func TestOpened(t *testing.T) {
	var tally Tally
	for i, step := range []struct {
		line   string
		opened []string
	}{
		{`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"/q/.entry-0-1-0123456789ab.txt"}}]}}`, nil},
		{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}`, nil},
		{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"}]}}`, nil},
		{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"late"}]}}`, nil},
		{`{"type":"assistant","message":{"content":[{"type":"text","text":".entry-9-9-ff.txt"},{"type":"tool_use","id":"c","name":"Bash","input":{"command":"head .entry-0-1-0123456789ab.txt .entry-5-2-ba9876543210.txt"}}]}}`, nil},
		{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}}`, []string{".entry-0-1-0123456789ab.txt", ".entry-5-2-ba9876543210.txt"}},
		{`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"d","name":"Bash","input":{"command":"cat .entry-*"}}]}}`, []string{".entry-0-1-0123456789ab.txt", ".entry-5-2-ba9876543210.txt"}},
		{`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"d","is_error":false}]}}`, []string{AnyTextFile, ".entry-0-1-0123456789ab.txt", ".entry-5-2-ba9876543210.txt"}},
	} {
		m, ok := Parse([]byte(step.line))
		require.True(t, ok)
		tally.Add(m, time.Now())
		assert.Equal(t, step.opened, tally.Opened(), i)
	}
}
