package settings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestInstallAddsToWhatIsThere(t *testing.T) {
	const ours = `"hooks":{"Stop":[` + entry + `]}`
	for file, want := range map[string]string{
		"{}":                              "{" + ours + "}",
		"{\n\t\"a\": 1\n}\n":              `{"a":1,` + ours + `}`,
		"{\r\n  \"a\": 1\r\n}\r\n":        `{"a":1,` + ours + `}`,
		"{\n  \"a\": 1 // one\n}":         `{"a":1, // one` + ours + `}`,
		"{\n  \"a\": 1,\n}":               `{"a":1,` + ours + `}`,
		`{"a":1,"hooks":{"Stop":[]}}`:     `{"a":1,` + ours + `}`,
		`{"hooks": {"Stop": [{}]}}`:       `{"hooks":{"Stop":[{},` + entry + `]}}`,
		`{"hooks":{"Stop":[{} /* c */]}}`: `{"hooks":{"Stop":[{}, /* c */` + entry + `]}}`,
	} {
		alike(t, want, install(t, file, stopOnly()))
		p := owns(t, file, true)
		p.install(stopOnly())
		p.uninstall(stopOnly())
		p.has(file, true, "")
	}
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
	alike(t, y, install(t, y, w))
	alike(t, "{}", uninstall(t, y, w))
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
	alike(t, want, install(t, file, stopOnly()))
	alike(t, want, install(t, want, stopOnly()))
}

func TestInstallKeepsOtherSpellingsOfTheSameValue(t *testing.T) {
	file := strings.NewReplacer("/abs", `\u002fabs`).Replace(`{"hooks":{"Stop":[` + entry + `]}}`)
	alike(t, file, install(t, file, stopOnly()))
}

func TestInstallRemovesSurplusHooks(t *testing.T) {
	w := wiring()
	w.Events = []string{settings.Stop, settings.StopFailure, settings.SessionEnd}
	y := install(t, `{"a":1}`, w)
	alike(t, install(t, `{"a":1}`, wiring()), install(t, y, wiring()), "an event that is no longer wanted")

	twice := `{"hooks":{"Stop":[` + entry + `,{"hooks":[]},` + entry + `]}}`
	alike(t, `{"hooks":{"Stop":[`+entry+`,{"hooks":[]}]}}`, install(t, twice, stopOnly()))

	elsewhere := stopOnly()
	elsewhere.Events = []string{settings.SessionEnd}
	alike(t, install(t, "", elsewhere), install(t, install(t, "", stopOnly()), elsewhere), "nothing but ours in the file")
}

func TestInstallKeepsInboxesApart(t *testing.T) {
	a, b := stopOnly(), otherInbox(stopOnly())
	both := install(t, install(t, `{"a":1}`, a), b)
	other := strings.Replace(entry, `"--inbox","/x/inbox.jsonl"`, `"--inbox=/y/other.jsonl","--park"`, 1)
	alike(t, `{"a":1,"hooks":{"Stop":[`+entry+`,`+other+`]}}`, both)

	a.Timeout = 5
	alike(t, strings.Replace(both, "600", "5", 1), install(t, both, a))
	alike(t, `{"a":1,"hooks":{"Stop":[`+other+`]}}`, uninstall(t, both, a))
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
