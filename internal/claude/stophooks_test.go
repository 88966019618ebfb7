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

func TestStopHooksOfSettings(t *testing.T) {
	var s claude.StopHooks
	s.Read([]byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"no"}]}],"Stop":[
		{"hooks":[{"type":"command","command":"/b/heartbeat-stop","args":["--inbox","i"]},{"type":"command","command":"make","args":["test"]}]},
		{"matcher":"","hooks":[{"type":"command","command":"slow","async":true},{"type":"http","url":"http://h/x"}]}]},
		"enabledPlugins":{"a@m":true,"b@m":false}}`), "")
	assert.Equal(t, claude.StopHooks{Commands: []string{"make test"}, Background: []string{"slow"}, Servers: []string{"http://h/x"}, Plugins: []string{"a@m"}}, s)
	s.Read([]byte(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"\"${CLAUDE_PLUGIN_ROOT}/check\"","asyncRewake":true},{"type":"prompt","prompt":"?"}]}]}}`), "/r")
	assert.True(t, s.Judges)
	assert.True(t, s.InBackground(`/bin/sh /r/check`))
	assert.False(t, s.InBackground(`/bin/sh -c make test`))
	s.Without("/bin/sh -c make test")
	assert.Empty(t, s.Commands)
}

func TestNoOtherStopHooks(t *testing.T) {
	for _, text := range []string{
		"", "{", "null", `"Stop"`, `{"hooks":{"Stop":7}}`, `{"hooks":{"Stop":[{"hooks":[7]}]`, `{"hooks":{"Stop":null},"enabledPlugins":7}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/b/heartbeat-stop --inbox i"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x","async":true}]}]}}`,
		`{"hooks":{"SubagentStop":[{"hooks":[{"type":"prompt"}]}]}}`,
	} {
		var s claude.StopHooks
		s.Read([]byte(text), "")
		if text != `{"hooks":{"Stop":[{"hooks":[7]}]` { // what it wires is not known
			assert.False(t, s.Any(), text)
		}
	}
}

func TestIsOwn(t *testing.T) {
	for command, want := range map[string]bool{
		"/b/heartbeat-stop --inbox i": true, `"$HOME/go/bin/heartbeat-stop" --inbox i`: true, "timeout 9 heartbeat-stop": true, "/b/heartbeat __stop --inbox i": true,
		"/p/scripts/heartbeat.sh hook turn": true, "/src/heartbeat-stop/check.sh": false, "/src/heartbeat/check.sh": false, "cd /src/heartbeat-stop/x && ./heartbeat-stop": true, "": false,
	} {
		assert.Equal(t, want, claude.IsOwn(command), command)
	}
}

const (
	answer1  = `{"uuid":"1","type":"assistant","message":{"model":"m","content":[{"type":"text","text":"did it"}]}}` + "\n"
	answer2  = `{"uuid":"2","type":"assistant","message":{"model":"m","content":[{"type":"text","text":"repaired"}]}}` + "\n"
	blocked  = `{"uuid":"3","type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\nFIX"}}` + "\n" + `{"uuid":"4","type":"attachment","attachment":{"type":"hook_blocking_error","hookEvent":"Stop","blockingError":{"blockingError":"FIX","command":"c"}}}` + "\n"
	context1 = `{"uuid":"5","type":"attachment","attachment":{"type":"hook_additional_context","hookEvent":"Stop","content":["MORE"]}}` + "\n"
	stopped  = `{"uuid":"6","type":"attachment","attachment":{"type":"hook_stopped_continuation","hookEvent":"Stop"}}` + "\n"
	heard    = `{"uuid":"7","type":"attachment","attachment":{"type":"hook_success","hookEvent":"Stop","command":"http://h"}}` + "\n"
	held     = `{"uuid":"8","type":"system","subtype":"stop_hook_summary","hookCount":2,"hookInfos":[{"command":"/b/heartbeat-stop"},{"command":"c"}],"hookErrors":["broken","FIX"],"failedHookErrorIndexes":[0],"hookAdditionalContext":[]}` + "\n"
	over     = `{"uuid":"9","type":"system","subtype":"stop_hook_summary","hookCount":1,"hookErrors":[]}` + "\n"
	override = `{"uuid":"10","type":"system","subtype":"informational"}` + "\n"
)

func transcriptOf(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	return path
}

func TestStopReport(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		reply string
		goes  []string
		ended bool
		over  bool
	}{
		"nothing":                       {lines: answer1},
		"blocked":                       {lines: answer1 + blocked, goes: []string{"FIX"}},
		"context":                       {lines: answer1 + context1, goes: []string{"MORE"}},
		"ended":                         {lines: answer1 + stopped, ended: true},
		"of the Stop before":            {lines: answer1 + blocked + held + answer2},
		"of the Stop before, at once":   {lines: answer1 + blocked + held, goes: []string{"FIX"}, over: true},
		"its own summary":               {lines: answer1 + over, over: true},
		"overridden":                    {lines: answer1 + blocked + held + override, over: true},
		"a note before the summary":     {lines: answer1 + blocked + override, goes: []string{"FIX"}},
		"the Stop before, overridden":   {lines: answer1 + blocked + held + override + answer2 + blocked, goes: []string{"FIX"}},
		"a line that is still written":  {lines: answer1 + strings.TrimSuffix(stopped, "\n")},
		"an answer of the turn behind":  {lines: answer1 + blocked + held + answer2, reply: "did it", goes: []string{"FIX"}, over: true},
		"the answer of this very turn":  {lines: answer2 + blocked + held + answer1, reply: "did it"},
		"its answer is not written yet": {lines: answer2 + blocked + held, reply: "did it"},
		"no JSON, and a long line of x": {lines: "x\n" + strings.Repeat("x", 1<<20) + "\n" + answer1 + blocked, goes: []string{"FIX"}},
	} {
		r := claude.NewStopReader(transcriptOf(t, c.lines), c.reply)
		r.Read()
		r.Read()
		assert.Equal(t, c.goes, r.Blocks, name)
		assert.Equal(t, c.ended, r.Ended, name)
		assert.Equal(t, c.over, r.Over, name)
	}
}

// A transcript may be of any size: it is read from near its end.
func TestStopReportOfAHugeTranscript(t *testing.T) {
	path := transcriptOf(t, blocked)
	require.NoError(t, os.Truncate(path, 200<<20))
	r := claude.NewStopReader(path, "")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("\n" + answer1 + heard)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	r.Read()
	assert.Empty(t, r.Blocks)
	assert.True(t, r.Heard("http://h"))
	assert.False(t, r.Heard("c"))
}

func TestObjections(t *testing.T) {
	much := `{"type":"progress","text":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	for _, c := range []struct {
		lines []string
		own   string
		all   []string
		told  bool
	}{
		{lines: []string{answer1, blocked, held, answer2}, all: []string{"FIX"}, told: true},
		{lines: []string{answer1, blocked, held, answer2}, own: claude.ReplySum("FIX"), told: true},
		{lines: []string{answer1, over}, told: true},
		{lines: []string{answer1}},
		{lines: []string{over, answer1, held, answer2}, all: []string{"FIX"}, told: true}, // a late summary comes before the answer
		{lines: []string{answer1, much, held}, all: []string{"FIX"}, told: true},
		{lines: []string{answer1, strings.Repeat(much, 40), held}, told: true}, // out of reach
	} {
		all, told := claude.Objections(transcriptOf(t, c.lines...), 0, c.own)
		assert.ElementsMatch(t, c.all, all)
		assert.Equal(t, c.told, told)
	}
	all, told := claude.Objections("missing", 0, "")
	assert.Empty(t, all)
	assert.False(t, told)
}

func TestStopHooksOfASummary(t *testing.T) {
	for _, c := range []struct {
		part string
		want []string
	}{{answer1 + held + answer2, []string{"c"}}, {held + over, nil}, {answer1, nil}, {`"subtype":"stop_hook_summary"`, nil}} {
		var s claude.StopHooks
		s.ReadSummary([]byte(c.part))
		assert.Equal(t, c.want, s.Commands)
	}
}

// A summary of a Stop that a hook blocked is not the end of the turn.
func TestFinishedNotWhereAHookHoldsOpen(t *testing.T) {
	text := `{"uuid":"a","type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\ne1"}}` + "\n"
	for name, c := range map[string]struct {
		lines    []string
		reply    string
		finished bool
	}{
		"held":              {[]string{text, answer1, blocked, held}, "did it", false},
		"repaired":          {[]string{text, answer1, blocked, held, answer2, over}, "repaired", true},
		"held, then killed": {[]string{text, answer1, blocked, held, answer2}, "repaired", false},
		"overridden before": {[]string{text, answer1, blocked, override, held}, "did it", true},
		"overridden after":  {[]string{text, answer1, blocked, held, override}, "did it", true},
	} {
		reply, finished := claude.Delivery{Path: transcriptOf(t, c.lines...), Text: "e1"}.Finished()
		assert.Equal(t, c.finished, finished, name)
		assert.Equal(t, c.reply, reply, name)
	}
}
