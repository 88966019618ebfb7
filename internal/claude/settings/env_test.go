package settings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

const userCap = `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"}}`

func TestEnvStaysWhileAnotherInboxNeedsIt(t *testing.T) {
	a, b := wiring(), otherInbox(wiring())
	for _, order := range [][]settings.Wiring{{a, b}, {b, a}} {
		p := owns(t, userCap, true)
		p.install(a)
		p.install(b)
		p.uninstall(order[0])
		assert.Contains(t, p.text(), `"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"`)
		p.write(strings.Replace(p.text(), "{", `{"a":1,`, 1))
		p.uninstall(order[1])
		assert.Equal(t, meaning(t, `{"a":1,`+userCap[1:]), meaning(t, p.text()), "the user had it")
	}
}

func TestEnvWithAnotherValueIsRefused(t *testing.T) {
	for _, have := range []string{`"8"`, `0`, `null`, `["0"]`} {
		file := "{\n  \"env\": {\n    \"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP\": /* mine */ " + have + "\n  }\n}\n"
		_, err := settings.Install([]byte(file), wiring())
		assert.EqualError(t, err, `env.CLAUDE_CODE_STOP_HOOK_BLOCK_CAP at line 3 is `+have+`, heartbeat needs "0": `+
			`it was not overwritten; remove it or set it to "0", then try again`)
	}
}

func TestEnvChangedAfterTheInstall(t *testing.T) {
	y := strings.Replace(install(t, `{"a":1}`, wiring()), `CAP": "0"`, `CAP": "20"`, 1)
	_, err := settings.Install([]byte(y), wiring())
	require.ErrorContains(t, err, "not overwritten", "a second install does not overwrite it either")
	alike(t, `{"a":1,"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"20"}}`, uninstall(t, y, wiring()))
}

func TestEnvStaysWhereNothingTellsWhoseItIs(t *testing.T) {
	alike(t, userCap, uninstall(t, userCap, wiring()))
}

// A wiring that does not need the variable leaves the user's own alone, and removes one that another wiring set.
func TestEnvIsDropped(t *testing.T) {
	const variable = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
	for name, x := range map[string]string{"none": `{"a":1}`, "empty": `{"env":{}}`, "others": `{"env":{"A":"1"}}`, "no file": ""} {
		for _, y := range []string{install(t, x, rewake()), install(t, install(t, x, wiring()), rewake())} {
			assert.NotContains(t, y, variable, name)
			assert.Contains(t, install(t, y, wiring()), variable, name)
		}
	}
	eight := strings.Replace(userCap, `"0"`, `"8"`, 1)
	for _, x := range []string{userCap, eight} {
		p := owns(t, x, true)
		p.install(rewake())
		assert.Contains(t, p.text(), x[:len(x)-2], "no reason to refuse it")
		if x == userCap {
			p.install(wiring())
		}
		p.install(rewake())
		assert.Contains(t, p.text(), x[:len(x)-2])
		p.uninstall(wiring())
		p.has(x, true, "")
	}
}

func TestEnvIsNotDroppedWhileAnotherInboxNeedsIt(t *testing.T) {
	a, b := wiring(), otherInbox(wiring())
	p := owns(t, `{"a":1}`, true)
	p.install(a)
	p.install(b)
	assert.Contains(t, p.install(rewake()), `"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"`)
}
