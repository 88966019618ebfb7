package settings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

const userCap = `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"}}`

func TestEnvOfTheUserStays(t *testing.T) {
	y := install(t, userCap, wiring())
	assert.Contains(t, y, `"HEARTBEAT_KEEP_ENV":"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"`)
	assert.Equal(t, userCap, uninstall(t, y, wiring()))
	assert.NotContains(t, install(t, "{}", wiring()), "HEARTBEAT_KEEP_ENV")
}

func TestEnvStaysWhileAnotherInboxNeedsIt(t *testing.T) {
	a, b := wiring(), otherInbox(wiring())
	for _, x := range []string{`{"a":1}`, userCap} {
		both := install(t, install(t, x, a), b)
		for _, order := range [][]settings.Wiring{{a, b}, {b, a}} {
			one := uninstall(t, both, order[0])
			assert.Contains(t, one, `"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"`)
			assert.Equal(t, x, uninstall(t, one, order[1]))
		}
	}
}

func TestEnvWithAnotherValueIsRefused(t *testing.T) {
	for _, have := range []string{`"8"`, `0`, `null`, `["0"]`} {
		file := "{\n  \"env\": {\n    \"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": /* mine */ " + have + "\n  }\n}\n"
		_, err := settings.Install([]byte(file), wiring())
		var refused *settings.EnvError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, settings.EnvError{Key: settings.BlockCapEnv, Have: have, Want: "0", Line: 3}, *refused)
		assert.EqualError(t, err, `env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP at line 3 is `+have+`, heartbeat needs "0": `+
			`it was not overwritten; remove it or set it to "0", then try again`)
	}
}

func TestEnvChangedAfterTheInstall(t *testing.T) {
	y := strings.Replace(install(t, `{"a":1}`, wiring()), `CAP":"0"`, `CAP":"20"`, 1)
	_, err := settings.Install([]byte(y), wiring())
	assert.ErrorAs(t, err, new(*settings.EnvError), "a second install does not overwrite it either")
	assert.Equal(t, `{"a":1,"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"20"}}`, uninstall(t, y, wiring()))
}

func TestEnvOfSeveralVariables(t *testing.T) {
	w := wiring()
	w.Env = map[string]string{settings.BlockCapEnv: "0", "B": "2", "A": "1", "C": ""}
	x := `{"env":{"B":"2","C":"","Z":"26"}}`
	y := install(t, x, w)
	assert.Contains(t, y, `{"env":{"B":"2","C":"","Z":"26","A":"1","CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0","HEARTBEAT_KEEP_ENV":"B C"}`)
	assert.Equal(t, y, install(t, y, w))
	assert.Equal(t, x, uninstall(t, y, w))
}

func TestEnvNoteOfAnEarlierInstallIsAddedTo(t *testing.T) {
	// Somebody deleted our hooks by hand and left the note.
	x := `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0","HEARTBEAT_KEEP_ENV":"B"}}`
	y := install(t, x, wiring())
	assert.Contains(t, y, `"HEARTBEAT_KEEP_ENV":"B CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"`)
	assert.Equal(t, userCap, uninstall(t, y, wiring()))
}

func TestEnvStaysWhereNothingTellsWhoseItIs(t *testing.T) {
	assert.Equal(t, userCap, uninstall(t, userCap, wiring()))
}

// A wiring that does not need the variables leaves the user's own alone, and removes what another wiring has set.
func TestEnvIsDropped(t *testing.T) {
	const variable = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
	for name, x := range map[string]string{"none": `{"a":1}`, "empty": `{"env":{}}`, "others": `{"env":{"A":"1"}}`, "no file": ""} {
		for _, y := range []string{install(t, x, rewake()), install(t, install(t, x, wiring()), rewake())} {
			assert.NotContains(t, y, variable, name)
			assert.Contains(t, install(t, y, wiring()), variable, name)
		}
	}
	y := install(t, userCap, rewake())
	assert.Contains(t, y, `"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0","HEARTBEAT_KEEP_ENV":"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"`)
	assert.Equal(t, y, install(t, install(t, y, wiring()), rewake()))
	assert.Equal(t, userCap, uninstall(t, y, wiring()))

	eight := strings.Replace(userCap, `"0"`, `"8"`, 1)
	y = install(t, eight, rewake())
	assert.Contains(t, y, `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"8"},`, "no reason to refuse it")
	assert.Equal(t, eight, uninstall(t, y, wiring()))
}

func TestEnvIsNotDroppedWhileAnotherInboxNeedsIt(t *testing.T) {
	a, b := wiring(), otherInbox(wiring())
	for _, x := range []string{`{"a":1}`, userCap} {
		both := install(t, install(t, install(t, x, a), b), rewake())
		assert.Contains(t, both, `"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"`)
		assert.Equal(t, x, uninstall(t, uninstall(t, both, a), b))
		assert.Equal(t, x, uninstall(t, uninstall(t, both, b), a))
	}
}

// A limit that doc.go names: a hook of another inbox, wired by hand without the variable, counts as one that needs it.
func TestEnvAddedBesideAHandWiredInboxStaysWithIt(t *testing.T) {
	hand := `{"hooks":{"Stop":[` + strings.Replace(entry, inbox, "/y/other.jsonl", 1) + `]}`
	left := uninstall(t, install(t, hand+`}`, wiring()), wiring())
	assert.Equal(t, hand+`,"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"}}`, left)
	assert.Empty(t, uninstall(t, left, otherInbox(wiring())))
}
