package claude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
)

var handedAt = time.Date(2026, 3, 4, 12, 0, 0, 500e6, time.UTC)

// lineAt is a line of a transcript, some seconds after the delivery.
func lineAt(seconds float64, members string) string {
	at := handedAt.Add(time.Duration(seconds * float64(time.Second))).Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf(`{"uuid":"u","sessionId":"s","timestamp":%q,%s}`, at, members)
}

func feedback(seconds float64, text string) string {
	return lineAt(seconds, fmt.Sprintf(`"type":"user","isMeta":true,"message":{"role":"user","content":%q}`, "Stop hook feedback:\n"+text))
}

func contextLine(seconds float64, text string) string {
	return lineAt(seconds, fmt.Sprintf(`"type":"attachment","attachment":{"type":"hook_additional_context","content":[%q]}`, text))
}

func summaryLine(seconds float64, texts ...string) string {
	return lineAt(seconds, fmt.Sprintf(`"type":"system","subtype":"stop_hook_summary","hookErrors":%s`, strings.ReplaceAll(fmt.Sprintf("%q", texts), `" "`, `","`)))
}

func answerLine(seconds float64, text string) string {
	return lineAt(seconds, fmt.Sprintf(`"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":%q}]}`, text))
}

func TestNextTurn(t *testing.T) {
	const text = "do this\nand that"
	const lint = "mend what the linter found"
	foreign := `{"role":"assistant","text":"did it"}`
	late := answerLine(-1, "the answer before")
	for name, c := range map[string]struct {
		lines []string
		want  handed.Turn
	}{
		"nothing":                           {nil, handed.Unknown},
		"what came before, written late":    {[]string{late, summaryLine(-0.5)}, handed.Unknown},
		"the text":                          {[]string{feedback(0.1, text), summaryLine(0.2, text)}, handed.Unknown},
		"the text, and its answer":          {[]string{late, feedback(0.1, text), summaryLine(0.2, text), answerLine(1, "did it")}, handed.WithText},
		"the text as context":               {[]string{contextLine(0.1, text), answerLine(1, "did it")}, handed.WithText},
		"behind a preamble":                 {[]string{feedback(0.1, "Carry this out:\n"+text), answerLine(1, "did it")}, handed.WithText},
		"beside another hook's, last":       {[]string{feedback(0.1, lint), feedback(0.2, text), answerLine(1, "did it")}, handed.WithText},
		"beside another hook's, first":      {[]string{feedback(0.1, text), feedback(0.2, lint), answerLine(1, "did it")}, handed.WithText},
		"another hook's":                    {[]string{late, feedback(0.1, lint), summaryLine(0.2, lint)}, handed.Unknown},
		"another hook's, and its answer":    {[]string{late, feedback(0.1, lint), summaryLine(0.2, lint), answerLine(1, "mended")}, handed.WithoutText},
		"the text behind another's answer":  {[]string{feedback(0.1, lint), answerLine(1, "mended"), feedback(2, text), answerLine(3, "did it")}, handed.WithoutText},
		"another's that quotes the text":    {[]string{feedback(0.1, "you were told to "+text), answerLine(1, "I was")}, handed.WithoutText},
		"an answer that quotes the text":    {[]string{feedback(0.1, lint), answerLine(1, text)}, handed.WithoutText},
		"an error in the model's place":     {[]string{feedback(0.1, text), lineAt(1, `"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>"}`)}, handed.Unknown},
		"in another format":                 {[]string{foreign}, handed.Unknown},
		"an answer that is being written":   {[]string{feedback(0.1, text), strings.TrimSuffix(answerLine(1, "did it"), "}]}}")}, handed.Unknown},
		"the client's own lines in between": {[]string{feedback(0.1, text), `{"type":"last-prompt","sessionId":"s"}`, answerLine(1, "did it")}, handed.WithText},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			before := feedback(-3, text) + "\n" + answerLine(-2, "did it before") + "\n"
			all := before + strings.Join(c.lines, "\n")
			if strings.HasSuffix(all, "}") {
				all += "\n"
			}
			require.NoError(t, os.WriteFile(path, []byte(all), 0o600))
			d := claude.Delivery{Path: path, Size: int64(len(before)), Text: text, Reply: claude.ReplySum("did it before"), Fresh: true}
			if strings.Contains(all, "the answer before") {
				d.Reply = claude.ReplySum("the answer before")
			}
			assert.Equal(t, c.want, d.NextTurn())
		})
	}
	none := claude.Delivery{Path: filepath.Join(t.TempDir(), "none"), Text: text}
	assert.Equal(t, handed.Unknown, none.NextTurn())
}

// Transcripts that prove that the text never reached the model, whatever the lines' times.
func TestMissed(t *testing.T) {
	const text = "do this"
	prompt := func(id, text string) string {
		return lineAt(-9, fmt.Sprintf(`"type":"user","promptId":%q,"message":{"role":"user","content":%q}`, id, text))
	}
	tool := lineAt(-9, `"type":"user","promptId":"p1","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}`)
	override := lineAt(9, `"type":"system","subtype":"informational","content":"ended"`)
	stopped := lineAt(9, `"type":"system","subtype":"stop_hook_summary","hookErrors":["do this"],"preventedContinuation":true`)
	for name, c := range map[string]struct {
		before, since []string
		repeats       bool
		want          bool
	}{
		"nothing came":                           {[]string{answerLine(0, "R")}, nil, false, false},
		"the hooks ended without it":             {[]string{answerLine(0, "R")}, []string{summaryLine(-9)}, false, true},
		"the session went on":                    {[]string{answerLine(0, "R")}, []string{answerLine(-9, "S")}, false, true},
		"another prompt":                         {[]string{answerLine(0, "R")}, []string{prompt("p2", "hello")}, false, true},
		"it arrived":                             {[]string{answerLine(0, "R")}, []string{feedback(-9, text), summaryLine(-9), answerLine(-9, "S")}, false, false},
		"all of that is late":                    {nil, []string{prompt("p1", "begin"), tool, summaryLine(9), answerLine(9, "R")}, false, false},
		"and the reply was lost":                 {[]string{answerLine(0, "R")}, []string{prompt("p1", "begin"), tool, answerLine(9, "Q")}, false, false},
		"late, and then it went on":              {nil, []string{prompt("p1", "begin"), answerLine(9, "R"), summaryLine(-9)}, false, true},
		"another hook of the same Stop":          {[]string{answerLine(0, "R")}, []string{feedback(9, "lint")}, false, false},
		"the reply is not found":                 {[]string{answerLine(0, "Q")}, []string{summaryLine(9), answerLine(9, "S")}, false, false},
		"a reply that repeats":                   {[]string{answerLine(0, "R")}, []string{summaryLine(9), answerLine(9, "S")}, true, false},
		"a reply that repeats, and then p2":      {[]string{prompt("p1", "begin"), answerLine(0, "R")}, []string{summaryLine(9), tool, prompt("p2", "hello")}, true, true},
		"the cap swallowed it":                   {[]string{answerLine(0, "R")}, []string{feedback(-9, text), override}, false, true},
		"the cap swallowed it, and it was asked": {[]string{answerLine(0, "R")}, []string{feedback(-9, text), override, prompt("p2", "hello")}, false, false},
		"another hook ended the session":         {[]string{answerLine(0, "R")}, []string{feedback(-9, text), stopped}, false, true},
		"it was ended, and it was asked":         {[]string{answerLine(0, "R")}, []string{feedback(-9, text), stopped, prompt("p2", "hello")}, false, false},
		"it was ended after the answer":          {[]string{answerLine(0, "R")}, []string{feedback(-9, text), summaryLine(-9), answerLine(-9, "S"), strings.Replace(stopped, text, "lint", 1)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			before := "{}\n" + strings.Join(append(c.before, ""), "\n")
			require.NoError(t, os.WriteFile(path, []byte(before+strings.Join(append(c.since, ""), "\n")), 0o600))
			d := claude.Delivery{
				Path: path, Size: int64(len(before)), Text: text, PromptID: "p1", Reply: claude.ReplySum("R"), Fresh: !c.repeats,
			}
			assert.Equal(t, c.want, d.Missed())
			d.End = d.Size
			assert.False(t, d.Missed(), "what another process wrote")
		})
	}
}

// If the cap swallowed the text, the process that resumes the session sends it with its
// first prompt.
func TestMissedThenResumed(t *testing.T) {
	const text = "do this"
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	before := answerLine(0, "R") + "\n"
	killed := feedback(-9, text) + "\n" + lineAt(9, `"type":"system","subtype":"informational","content":"ended"`) + "\n"
	prompt := lineAt(-9, `"type":"user","promptId":"p2","message":{"role":"user","content":"hello"}`) + "\n"
	require.NoError(t, os.WriteFile(path, []byte(before+killed), 0o600))
	d := claude.Delivery{
		Path: path, Size: int64(len(before)), End: int64(len(before + killed)),
		Text: text, PromptID: "p1", Reply: claude.ReplySum("R"), Fresh: true,
	}
	assert.True(t, d.Missed(), "nothing was asked yet")
	require.NoError(t, os.WriteFile(path, []byte(before+killed+prompt), 0o600))
	assert.False(t, d.Missed(), "a prompt took it along")
}
