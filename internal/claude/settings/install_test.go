package settings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestInstallFollowsTheHandOfTheFile(t *testing.T) {
	lines := strings.Join([]string{
		`"Stop": [`, `>{`, `>>"matcher": "",`, `>>"hooks": [`, `>>>{`, `>>>>"type": "command",`,
		`>>>>"command": "/abs/heartbeat-stop",`, `>>>>"args": [`, `>>>>>"--inbox",`, `>>>>>"/x/inbox.jsonl"`,
		`>>>>],`, `>>>>"timeout": 600`, `>>>}`, `>>]`, `>}`, `]`,
	}, "\n>>")
	spell := func(text, unit, eol string) string {
		return strings.NewReplacer(">", unit, "\n", eol).Replace(text)
	}
	whole := ">\"hooks\": {\n>>" + lines + "\n>}"
	tests := []struct{ name, file, want string }{
		{"no file", "{}\n", spell("{\n"+whole+"\n}\n", "  ", "\n")},
		{"empty object", "{}", spell("{\n"+whole+"\n}", "  ", "\n")},
		{"tabs", "{\n\t\"a\": 1\n}\n", spell("{\n>\"a\": 1,\n"+whole+"\n}\n", "\t", "\n")},
		{"four spaces", "{\n    \"a\": 1\n}", spell("{\n>\"a\": 1,\n"+whole+"\n}", "    ", "\n")},
		{"crlf", "{\r\n  \"a\": 1\r\n}\r\n", spell("{\n>\"a\": 1,\n"+whole+"\n}\n", "  ", "\r\n")},
		{"comment", "{\n  \"a\": 1 // one\n}", spell("{\n>\"a\": 1, // one\n"+whole+"\n}", "  ", "\n")},
		{"trailing comma", "{\n  \"a\": 1,\n}", spell("{\n>\"a\": 1,\n"+whole+",\n}", "  ", "\n")},
		{"empty hooks", "{\n  \"hooks\": {}\n}", spell("{\n>\"hooks\": {\n>>"+lines+"\n>}\n}", "  ", "\n")},
		{"minified", `{"a":1}`, `{"a":1,"hooks":{"Stop":[` + entry + `]}}`},
		{"minified, empty stop", `{"a":1,"hooks":{"Stop":[]}}`, `{"a":1,"hooks":{"Stop":[` + entry + `]}}`},
		{"minified, other stop", `{"hooks":{"Stop":[{}]}}`, `{"hooks":{"Stop":[{},` + entry + `]}}`},
		{"one line", `{"hooks": {"Stop": [{}]}}`, `{"hooks": {"Stop": [{}, ` + spaced(entry) + `]}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, install(t, test.file, stopOnly()))
			p := owns(t, test.file, true)
			p.install(stopOnly())
			p.uninstall(stopOnly())
			p.has(test.file, true, "")
		})
	}
}

// spaced adds a space after the colons and commas of entry, whose strings have none.
func spaced(text string) string {
	return strings.ReplaceAll(strings.NewReplacer(":", ": ", ",", ", ").Replace(text), `"--inbox", `, `"--inbox",`)
}

func TestInstallWritesWhatJSONStringifyWrites(t *testing.T) {
	// A client that rewrites the file with JSON.stringify(value, null, 2) thus leaves our part as it is.
	y := install(t, "", wiring())
	var value struct {
		Hooks json.RawMessage `json:"hooks"`
		Env   json.RawMessage `json:"env"`
	}
	require.NoError(t, json.Unmarshal([]byte(y), &value))
	rewritten, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	assert.Equal(t, y, string(rewritten)+"\n")
}

func TestInstallSpellsAwkwardStrings(t *testing.T) {
	w := stopOnly()
	w.Command = "/a \"b\"\\\n<é>\u2028/heartbeat-stop"
	w.Args = []string{"--inbox", "/x/[id]/$HOME/inbox.jsonl", "--empty", ""}
	y := install(t, "{}", w)
	hook := meaning(t, y)["hooks"].(map[string]any)["Stop"].([]any)[0].(map[string]any)["hooks"].([]any)[0]
	assert.Equal(t, map[string]any{
		"type": "command", "command": w.Command, "timeout": json.Number("600"),
		"args": []any{"--inbox", "/x/[id]/$HOME/inbox.jsonl", "--empty", ""},
	}, hook)
	assert.Equal(t, y, install(t, y, w))
	assert.Equal(t, "{}", uninstall(t, y, w))
}

func TestInstallUpdatesInPlace(t *testing.T) {
	const file = `{"hooks": {"Stop": [
  {"matcher": "mine", "hooks": [
    {"command": "/old/heartbeat-stop", "statusMessage": "waiting", /* note */ "args": ["--inbox=/x/inbox.jsonl", "--park"], "type": "command"},
    {"type": "command", "command": "say done"}
  ]}
]}}`
	const want = `{"hooks": {"Stop": [
  {"matcher": "mine", "hooks": [
    {"command": "/abs/heartbeat-stop", "statusMessage": "waiting", /* note */ "args": ["--inbox","/x/inbox.jsonl"], "type": "command", "timeout": 600},
    {"type": "command", "command": "say done"}
  ]}
]}}`
	assert.Equal(t, want, install(t, file, stopOnly()))
	assert.Equal(t, want, install(t, want, stopOnly()))
}

func TestInstallKeepsOtherSpellingsOfTheSameValue(t *testing.T) {
	file := strings.NewReplacer("/abs", `\u002fabs`).Replace(`{"hooks":{"Stop":[` + entry + `]}}`)
	assert.Equal(t, file, install(t, file, stopOnly()))
}

func TestInstallRemovesSurplusHooks(t *testing.T) {
	w := wiring()
	w.Events = []string{settings.Stop, settings.StopFailure, settings.SessionEnd}
	y := install(t, `{"a":1}`, w)
	assert.Equal(t, install(t, `{"a":1}`, wiring()), install(t, y, wiring()), "an event that is no longer wanted")

	twice := `{"hooks":{"Stop":[` + entry + `,{"hooks":[]},` + entry + `]}}`
	assert.Equal(t, `{"hooks":{"Stop":[`+entry+`,{"hooks":[]}]}}`, install(t, twice, stopOnly()))

	elsewhere := stopOnly()
	elsewhere.Events = []string{settings.SessionEnd}
	assert.Equal(t, install(t, "", elsewhere), install(t, install(t, "", stopOnly()), elsewhere), "nothing but ours in the file")
}

func TestInstallKeepsInboxesApart(t *testing.T) {
	a, b := stopOnly(), otherInbox(stopOnly())
	both := install(t, install(t, `{"a":1}`, a), b)
	other := strings.Replace(entry, `"--inbox","/x/inbox.jsonl"`, `"--inbox=/y/other.jsonl","--park"`, 1)
	assert.Equal(t, `{"a":1,"hooks":{"Stop":[`+entry+`,`+other+`]}}`, both)

	a.Timeout = 5
	assert.Equal(t, strings.Replace(both, "600", "5", 1), install(t, both, a))
	assert.Equal(t, `{"a":1,"hooks":{"Stop":[`+other+`]}}`, uninstall(t, both, a))
}

func TestWiringIsChecked(t *testing.T) {
	tests := map[string]func(*settings.Wiring){
		`wiring: command "heartbeat-stop" is not an absolute path`:   func(w *settings.Wiring) { w.Command = "heartbeat-stop" },
		`wiring: the arguments name no --inbox`:                      func(w *settings.Wiring) { w.Args = []string{"--inbox"} },
		`wiring: inbox "in.jsonl" is not an absolute path`:           func(w *settings.Wiring) { w.Args = []string{"--inbox=in.jsonl"} },
		`wiring: "/\xff" is not UTF-8 and cannot be written as JSON`: func(w *settings.Wiring) { w.Args = append(w.Args, "/\xff") },
	}
	for want, spoil := range tests {
		w := wiring()
		spoil(&w)
		out, err := settings.Install([]byte("{}"), w)
		assert.EqualError(t, err, want)
		assert.Nil(t, out)
	}
	assert.Equal(t, inbox, wiring().Inbox())
	assert.Equal(t, "/y/other.jsonl", otherInbox(wiring()).Inbox())
}
