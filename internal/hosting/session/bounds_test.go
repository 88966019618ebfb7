package session

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/stream"
)

// What others write without end is in the record up to a bound.
func TestBounds(t *testing.T) {
	var s folder.State
	for i := range folder.MaxWarnings + 1 {
		assert.Equal(t, i < folder.MaxWarnings, s.Warn(fmt.Sprint(i)))
	}
	assert.Len(t, s.Warnings, folder.MaxWarnings)
	assert.Equal(t, "0", s.Warnings[0])

	text := strings.Repeat("é", folder.MaxOutput)
	applyTally(&s, &stream.Tally{Text: &text})
	assert.Len(t, s.Output, folder.MaxOutput)
	assert.True(t, s.OutputCut)

	l := &log{}
	for range 10 {
		_, err := l.Write([]byte("x" + strings.Repeat("é", folder.MaxStderr)))
		assert.NoError(t, err)
	}
	assert.Equal(t, strings.Repeat("é", folder.MaxStderr), l.stderr())
	for _, text := range []string{s.Output, l.stderr()} {
		assert.True(t, utf8.ValidString(text))
	}
}

// A slow machine's client asks for its tools after it was warned of: the report does not say that it never did.
func TestToolsThatAreListedLate(t *testing.T) {
	var s folder.State
	tools := folder.Tools{ToolCounts: folder.ToolCounts{Configured: 2}}
	applyTools(&s, tools)
	s.Warn("another")
	s.Warn(proxy.Warning(tools))
	applyTools(&s, tools)
	assert.Len(t, s.Warnings, 2)
	tools.Listed = true
	applyTools(&s, tools)
	assert.Equal(t, []string{"another"}, s.Warnings)
	assert.True(t, s.Tools.Listed)
}
