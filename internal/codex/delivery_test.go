package codex_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/codex"
	"heartbeat/internal/lines"
)

const text = "do this\nand that"

func quoted(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func event(payload string) string { return `{"type":"event_msg","payload":{` + payload + `}}` }

func item(kind, members string) string {
	return event(`"type":"item_completed","turn_id":"t1","item":{"type":"` + kind + `",` + members + `}`)
}

func hands(texts ...string) string {
	var all []string
	for _, one := range texts {
		all = append(all, fmt.Sprintf(`{"text":%s,"hookRunId":"stop:1"}`, quoted(one)))
	}
	return item("HookPrompt", `"fragments":[`+strings.Join(all, ",")+`]`)
}

func said(reply string) string {
	return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}}`, quoted(reply))
}

func started(turn string) string {
	return event(`"type":"task_started","turn_id":"` + turn + `"`)
}

var (
	tool     = `{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}"}}`
	asked    = item("UserMessage", `"content":[{"type":"text","text":"hello"}]`)
	complete = event(`"type":"task_complete","turn_id":"t1","last_agent_message":"did it"`)
	failed   = event(`"type":"task_complete","turn_id":"t1","last_agent_message":"before","error":{"message":"401"}`)
	aborted  = event(`"type":"turn_aborted","turn_id":"t1","reason":"interrupted"`)
	counted  = event(`"type":"token_count","info":null`)
)

func delivery(t *testing.T, before, after []string) codex.Delivery {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollout-2026-01-02T03-04-05-x.jsonl")
	join := func(lines []string) string {
		if len(lines) == 0 {
			return ""
		}
		return strings.Join(lines, "\n") + "\n"
	}
	require.NoError(t, os.WriteFile(path, []byte(join(before)+join(after)), 0o600))
	return codex.Delivery{Path: path, Size: int64(len(join(before))), Text: text, PromptID: "t1"}
}

func TestDelivery(t *testing.T) {
	before := []string{started("t1"), asked, said("before")}
	for name, c := range map[string]struct {
		after    []string
		answered bool
		turn     handed.Turn
		missed   bool
		reply    string // "" unless the turn is finished
	}{
		"nothing":                        {},
		"what came before, written late": {after: []string{said("before"), counted}},
		"the text":                       {after: []string{said("before"), hands(text)}},
		"its answer":                     {after: []string{hands(text), said("did it")}, answered: true, turn: handed.WithText},
		"blanks around it":               {after: []string{hands("\n" + text + " "), said("did it")}, answered: true, turn: handed.WithText},
		"its tool":                       {after: []string{hands(text), tool}, answered: true, turn: handed.WithText},
		"behind a preamble":              {after: []string{hands("Carry this out:\n\n" + text), said("did it")}, answered: true, turn: handed.WithText},
		"beside another hook's":          {after: []string{hands("lint", text), tool, said("did it"), counted, complete}, answered: true, turn: handed.WithText, reply: "did it"},
		"its end":                        {after: []string{hands(text), said("did it"), complete}, answered: true, turn: handed.WithText, reply: "did it"},
		"another hook's":                 {after: []string{hands("lint")}},
		"another hook's, answered":       {after: []string{hands("lint"), said("mended"), complete}, turn: handed.WithoutText},
		"a text that holds it":           {after: []string{hands("say: " + text), said("no"), complete}, turn: handed.WithoutText},
		"an error":                       {after: []string{hands(text), failed}},
		"an error behind its answer":     {after: []string{hands(text), tool, failed}, answered: true, turn: handed.WithText},
		"ended by a person":              {after: []string{hands(text), aborted, started("t2"), asked, said("else"), complete}},
		"ended, and summed up":           {after: []string{hands(text), aborted, started("t2"), said("a summary"), `{"type":"compacted","payload":{}}`, complete}, missed: false},
		"killed, and summed up":          {after: []string{hands(text), started("t2"), said("a summary"), complete}},
		"ended amid its answer":          {after: []string{hands(text), tool, aborted}, answered: true, turn: handed.WithText},
		"another turn without it":        {after: []string{aborted, started("t2"), asked, said("else")}, turn: handed.WithoutText, missed: true},
		"another layout":                 {after: []string{`{"uuid":"u","type":"assistant"}`, `{"kind":"turn"}`, `[]`, `not JSON`}},
		"members of other types":         {after: []string{`{"type":"event_msg","payload":7}`, item("HookPrompt", `"fragments":{"text":7}`), `{"type":"response_item","payload":{"type":"message","role":"assistant","content":"x"}}`}, turn: handed.WithoutText},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery(t, before, c.after)
			assert.Equal(t, c.answered, d.Answered(), "answered")
			assert.Equal(t, c.turn, d.NextTurn(), "turn")
			assert.Equal(t, c.missed, d.Missed(), "missed")
			reply, finished := d.Finished()
			assert.Equal(t, c.reply != "", finished, "finished")
			if finished {
				assert.Equal(t, c.reply, reply)
			}
		})
	}
}

// An error of the API is the text's if it ended its turn.
func TestDeliveryFailed(t *testing.T) {
	wrong := func(info string) string {
		return event(`"type":"task_complete","turn_id":"t1","last_agent_message":"before","error":{"message":"it went wrong","codex_error_info":` + info + `}`)
	}
	for info, want := range map[string]string{
		`{"http_connection_failed":{"http_status_code":401}}`:            "authentication_failed",
		`{"response_too_many_failed_attempts":{"http_status_code":429}}`: "rate_limit",
		`"internal_server_error"`:                                        "server_error", `"usage_limit_exceeded"`: "rate_limit", `"server_overloaded"`: "overloaded",
		`{"http_connection_failed":{"http_status_code":502}}`: "server_error", `{"http_connection_failed":{}}`: "unknown",
		`{"http_connection_failed":{"http_status_code":404}}`: "model_not_found", `"other"`: "unknown", `null`: "unknown", `7`: "unknown",
	} {
		at, name, message, failed := delivery(t, []string{started("t1")}, []string{hands(text), tool, wrong(info)}).Failed()
		assert.Equal(t, []any{want, "it went wrong", true}, []any{name, message, failed}, info)
		assert.Zero(t, at)
	}
	const stamp = "2026-11-29T20:15:03.218Z"
	at, _, _, _ := delivery(t, nil, []string{hands(text), `{"timestamp":"` + stamp + `",` + wrong(`"other"`)[1:]}).Failed()
	assert.Equal(t, stamp, at.Format(time.RFC3339Nano))
	for name, after := range map[string][]string{
		"nothing":           nil,
		"in order":          {hands(text), said("did it"), complete},
		"before it":         {wrong(`"other"`), hands(text)},
		"another's":         {hands("lint"), wrong(`"other"`)},
		"ended by a person": {hands(text), aborted, wrong(`"other"`)},
		"in the turn after": {hands(text), said("did it"), complete, started("t2"), asked, wrong(`"other"`)},
		"without an error":  {hands(text), event(`"type":"task_complete","error":null`)},
	} {
		_, _, _, failed := delivery(t, []string{started("t1")}, after).Failed()
		assert.False(t, failed, name)
	}
}

// A text that comes again and again is answered once for each time.
func TestDeliveryAgain(t *testing.T) {
	d := delivery(t, []string{hands(text), said("once")}, []string{hands(text)})
	d.Times, d.From = 2, 0
	assert.False(t, d.Answered())
	d = delivery(t, []string{hands(text)}, []string{said("once"), hands(text), said("twice")})
	d.Times, d.From = 2, 0
	assert.True(t, d.Answered())
	d = delivery(t, []string{hands(text)}, []string{said("once")})
	d.Times, d.From = 2, 0
	assert.False(t, d.Answered(), "that is the answer to the first time")
}

// What another process wrote, which resumed the session, shows nothing of the killed one.
func TestDeliveryResumed(t *testing.T) {
	d := delivery(t, []string{started("t1"), asked}, []string{started("t2"), asked, said("else")})
	assert.True(t, d.Missed())
	d.End = d.Size
	assert.False(t, d.Missed())
}

func TestDeliveryWithoutRollout(t *testing.T) {
	d := delivery(t, nil, []string{hands(text), said("did it")})
	for _, path := range []string{"", filepath.Dir(d.Path), d.Path + ".gone"} {
		d.Path = path
		assert.False(t, d.Answered())
		assert.Equal(t, handed.Unknown, d.NextTurn())
		assert.False(t, d.Missed())
	}
}

// A line that is longer than any of Codex's is passed over.
func TestDeliveryBehindALongLine(t *testing.T) {
	d := delivery(t, nil, nil)
	file, err := os.OpenFile(d.Path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"type":"response_item","payload":{"type":"message","role":"assistant","x":"` + strings.Repeat("x", lines.Max+1) + "\"}}\n" + hands(text) + "\n" + said("did it") + "\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	assert.True(t, d.Answered())
}

// A FIFO in the rollout's place holds no hook up.
func TestDeliveryOfAFIFO(t *testing.T) {
	d := delivery(t, nil, nil)
	d.Path = filepath.Join(t.TempDir(), "rollout-x.jsonl")
	require.NoError(t, unix.Mkfifo(d.Path, 0o600))
	assert.False(t, d.Answered())
}

func FuzzDelivery(f *testing.F) {
	f.Add(hands(text) + "\n" + said("did it") + "\n" + complete + "\n")
	f.Add(strings.Join([]string{started("t1"), asked, aborted, failed, tool, counted}, "\n") + "\n")
	f.Fuzz(func(t *testing.T, content string) {
		d := delivery(t, nil, nil)
		require.NoError(t, os.WriteFile(d.Path, []byte(content), 0o600))
		turn := d.NextTurn()
		assert.Equal(t, d.Answered(), turn == handed.WithText || d.Answered() && turn == handed.WithoutText)
		_, finished := d.Finished()
		assert.True(t, !finished || d.Answered(), "what is finished was answered")
		assert.True(t, !d.Missed() || !d.Answered(), "what was missed was not answered")
	})
}

func TestIsRollout(t *testing.T) {
	assert.True(t, codex.IsRollout("/h/.codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-01a2.jsonl"))
	for _, path := range []string{"", "/h/.claude/projects/x/6b1f.jsonl", "rollout-x.json", "/rollout-1.jsonl/x"} {
		assert.False(t, codex.IsRollout(path), path)
	}
}
