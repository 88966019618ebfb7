package settings_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"

	"heartbeat/internal/claude/settings"
)

const inbox = "/x/inbox.jsonl"

// wiring returns the usual wiring of the tests.
func wiring() settings.Wiring {
	w := settings.Blocking("/abs/heartbeat-stop", []string{"--inbox", inbox}, 0)
	w.Events = []string{settings.Stop, settings.StopFailure}
	return w
}

// rewake is the usual wiring with Stop in the background.
func rewake() settings.Wiring {
	w := wiring()
	w.Args = append(w.Args, "--rewake")
	w.Wakes = true
	return w
}

// stopOnly is a wiring of one event.
func stopOnly() settings.Wiring {
	w := wiring()
	w.Events = []string{settings.Stop}
	w.Wakes = false
	return w
}

// otherInbox returns w for another inbox.
func otherInbox(w settings.Wiring) settings.Wiring {
	w.Args = []string{"--inbox=/y/other.jsonl", "--park"}
	return w
}

// entry is the group that stopOnly writes in a file of one line.
const entry = `{"matcher":"","hooks":[{"type":"command","command":"/abs/heartbeat-stop",` +
	`"args":["--inbox","/x/inbox.jsonl"],"timeout":600}]}`

func install(t testing.TB, file string, w settings.Wiring) string {
	t.Helper()
	out, err := settings.Install([]byte(file), w)
	require.NoError(t, err)
	if len(w.Events) == 1 {
		out = ownCap.ReplaceAll(out, nil)
	}
	return string(out)
}

// alike asserts that two files differ at most in white space.
func alike(t testing.TB, want, got string, says ...any) {
	t.Helper()
	assert.Equal(t, flat(want), flat(got), says...)
}

// flat returns a file without its white space.
func flat(text string) string { return strings.Join(strings.Fields(text), "") }

// ownCap matches the variable that comes with a hook. Tests of one hook omit it.
var ownCap = regexp.MustCompile(`,\s*"env":\s*{\s*"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":\s*"0"\s*}`)

func uninstall(t testing.TB, file string, w settings.Wiring) string {
	t.Helper()
	out, err := settings.Uninstall([]byte(file), w)
	require.NoError(t, err)
	return string(out)
}

// meaning decodes a settings file, with numbers as they are spelled.
func meaning(t testing.TB, file string) map[string]any {
	t.Helper()
	file = strings.TrimPrefix(file, "\ufeff")
	if file == "" {
		return map[string]any{}
	}
	plain, err := hujson.Standardize([]byte(file + "\n"))
	require.NoError(t, err, file)
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.UseNumber()
	var value map[string]any
	require.NoError(t, decoder.Decode(&value))
	return value
}

// foreignMeaning returns the meaning without heartbeat's parts and without objects and arrays that are then empty. It
// shares no code with the package, in order to check it.
func foreignMeaning(t testing.TB, file string) map[string]any {
	t.Helper()
	value := meaning(t, file)
	events, _ := value["hooks"].(map[string]any)
	for event, groups := range events {
		list, ok := groups.([]any)
		if !ok {
			continue
		}
		rest := []any{}
		for _, group := range list {
			spelled, err := json.Marshal(group)
			require.NoError(t, err)
			if !strings.Contains(string(spelled), "heartbeat-stop") {
				rest = append(rest, group)
			}
		}
		events[event] = rest
		if len(rest) == 0 {
			delete(events, event)
		}
	}
	env, _ := value["env"].(map[string]any)
	delete(env, settings.BlockCapEnv)
	for _, name := range []string{"hooks", "env"} {
		if box, ok := value[name].(map[string]any); ok && len(box) == 0 {
			delete(value, name)
		}
	}
	return value
}

// documents are settings files of many kinds that can all be wired.
var documents = map[string]string{
	"no file":                 "",
	"empty object":            "{}",
	"empty object, newline":   "{}\n",
	"empty object, space":     "{ }",
	"empty object, two lines": "{\n}\n",
	"empty object, blank":     "{\n\n}\n",
	"empty object, comment":   "{ // nothing yet\n}",
	"two spaces":              "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\"]\n  }\n}\n",
	"four spaces":             "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"PreToolUse\": []\n    }\n}\n",
	"tabs":                    "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n}\n",
	"no indentation":          "{\n\"a\": 1,\n\"hooks\": {\n}\n}",
	"crlf":                    "{\r\n  \"a\": 1,\r\n  \"hooks\": {},\r\n  \"env\": {}\r\n}\r\n",
	"crlf, comment":           "{\r\n  \"a\": 1 // one\r\n}\r\n",
	"minified":                `{"a":1,"hooks":{"Stop":[]},"env":{}}`,
	"one line":                `{"a": 1, "hooks": {"Stop": []}, "env": {}}`,
	"one line, padded":        `{ "a": 1, "hooks": { "Stop": [ ] }, "env": { } }`,
	"no final newline":        "{\n  \"a\": 1\n}",
	"empty hooks":             "{\n  \"hooks\": {}\n}\n",
	"empty stop":              "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
	"empty stop, two lines":   "{\n  \"hooks\": {\n    \"Stop\": [\n    ]\n  }\n}\n",
	"empty env":               "{\n  \"env\": {}\n}\n",
	"foreign stop":            "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n    ]\n  }\n}\n",
	"cap is the user's":       "{\n  \"env\": {\n    \"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": \"0\"\n  }\n}\n",
	"cap, escaped":            `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"\u0030","A":"\u00e9"}}`,
	"comments":                "// mine\n{\n  /* a */ \"a\" /* b */ : /* c */ 1 /* d */, // e\n  // f\n  \"b\": [1, /* g */ 2 // h\n  ] // i\n  // j\n} // k",
	"comments in boxes":       "{\n  \"hooks\": { // here\n  },\n  \"env\": {/* there */}\n}",
	"trailing commas":         "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [],},\n    ],\n  },\n  \"env\": {\"A\": \"1\",},\n}\n",
	"comment, comma":          "{\n  \"a\": 1 // x\n  , // y\n}\n",
	"numbers and escapes":     "{\"n\": [1.0, 1e3, -0, 1E+400, 12345678901234567890], \"s\": \"\\u003c\\/\\ud800\"}",
	"duplicate keys":          "{\n  \"a\": 1,\n  \"a\": 2,\n  \"env\": {\"A\": \"1\", \"A\": \"2\"},\n  \"hooks\": {},\n  \"hooks\": {\"Stop\": [], \"Stop\": []}\n}",
	"escaped keys":            `{"h\u006foks": {"St\u006fp": []}, "\u0065nv": {}}`,
	"byte order mark":         "\ufeff{\n  \"a\": 1\n}\n",
	"mark, empty object":      "\ufeff{}",
	"closing on the line":     "{\n  \"a\": 1 }",
	"one member, own closing": "{\"a\": 1\n}",
	"odd hooks":               `{"hooks": {"Stop": [1, null, {"hooks": 5}, {"hooks": [7, {}, {"type": "command", "command": 1}]}], "PreToolUse": 5}}`,
	"carriage return alone":   "{\"a\":1\r,\"hooks\":{\r}\r}\r",
	"mixed line ends":         "{\r\n  \"a\": 1,\n  \"hooks\": {\n  },\r\n  \"env\": {\r\n  }\n}\n",
	"indented top level":      "  {\n    \"a\": 1\n  }\n",
	"status line":             "{\n  \"statusLine\": {\n    \"type\": \"command\",\n    \"command\": \"~/.claude/line.sh\",\n    \"padding\": 0\n  }\n}\n",
	"status line, refreshed":  `{"statusLine":{"type":"command","refreshInterval":5,"command":"x"}}`,
	"status line, quotes":     "{\"statusLine\":{\"command\":\"it'\\u0027s \\\"$HOME\\\" 100% \\n\\\\' `date` \\u003c\\/ \\ud800 \\u00e9 é # no\",\"type\":\"c\\u006fmmand\"}}",
	"status line, comments":   "{\n  // mine\n  \"statusLine\": /* a */ { \"type\": \"command\", \"command\": /* b */ \"x y\" /* c */, }, // d\n}",
	"status line, empty":      `{"statusLine":{"type":"command","command":""}}`,
	"status line, null":       `{"statusLine":null}`,
	"status line, string":     `{"statusLine":"x"}`,
	"status line, no command": `{"statusLine":{"type":"command"}}`,
	"status line, other type": `{"statusLine":{"type":"static","command":"x","padding":1}}`,
	"status line, odd":        `{"statusLine":{"type":"command","command":["x"]}}`,
	"status line, twice":      `{"statusLine":{"type":"command","command":"x"},"statusLine":{"command":"y","type":"static","command":"z","type":"command"}}`,
	"status line, unclosed":   `{"statusLine":{"type":"command","command":"echo 'a"}}`,
	"hand-wired elsewhere":    `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"heartbeat-stop --inbox /other/inbox.jsonl"}]}]}}`,
}
