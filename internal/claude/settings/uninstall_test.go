package settings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestUninstallLeavesForeignFilesAlone(t *testing.T) {
	for name, x := range documents {
		alike(t, x, uninstall(t, x, wiring()), name)
	}
	out, err := settings.Uninstall(nil, wiring())
	require.NoError(t, err)
	assert.Nil(t, out)
}

func TestUninstallNeedsOnlyInboxAndCommand(t *testing.T) {
	for name, x := range documents {
		p := owns(t, x, name != "no file")
		p.install(wiring())
		p.uninstall(settings.Wiring{Command: "/elsewhere/heartbeat-stop", Args: []string{"--inbox", inbox}})
		p.has(x, name != "no file", name)
	}
}

// Edits by people and programs near our parts after an install.
func TestUninstallAfterEditsBesideOurs(t *testing.T) {
	tests := []struct{ name, file, old, edit, want string }{
		{"member behind ours", `{"a":1}`, `]}}`, `]},"b":2}`, `{"a":1,"b":2}`},
		{"member before ours", `{"a":1}`, `"hooks":{"Stop"`, `"b":2,"hooks":{"Stop"`, `{"a":1,"b":2}`},
		{"first member gone", `{"a":1}`, `"a":1,`, ``, `{}`},
		{"event behind ours", `{"a":1}`, `]}]}}`, `]}],"Other":[]}}`, `{"a":1,"hooks":{"Other":[]}}`},
		{"event before ours", `{"a":1}`, `"Stop":`, `"Other":[],"Stop":`, `{"a":1,"hooks":{"Other":[]}}`},
		{"group behind ours", `{"a":1}`, `]}]}}`, `]},{}]}}`, `{"a":1,"hooks":{"Stop":[{}]}}`},
		{"group before ours", `{"a":1}`, `[{"matcher"`, `[{}, {"matcher"`, `{"a":1,"hooks":{"Stop":[{}]}}`},
		{
			"hook in our group", `{"a":1}`, `600}`, `600},{"type":"http"}`,
			`{"a":1,"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"http"}]}]}}`,
		},
		{
			"hook before ours", `{"a":1}`, `{"type"`, `{"type":"http"},{"type"`,
			`{"a":1,"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"http"}]}]}}`,
		},
		{"our hook changed", `{"a":1}`, `"timeout":600`, `"timeout": 5, "once": true`, `{"a":1}`},
		{"comment in our box", `{"a":1}`, `"Stop":[`, `"Stop":[/* why */`, `{"a":1,"hooks":{"Stop":[/* why */]}}`},
		{"line comment above ours", `{"a":1}`, `,"hooks":{"Stop"`, ",// c\n\"hooks\":{\"Stop\"", "{\"a\":1// c\n}"},
		{"comment after ours", `{"a":1}`, `]}}`, "] /* c */ }, // d\n}", "{\"a\":1,\"hooks\":{ /* c */ }, // d\n}"},
		{"trailing comma", `{"a":1}`, `]}}`, `]},}`, `{"a":1}`},
		{"comment before the comma", `{"a":1}`, `]}}`, "]} /* c */, \"b\":2}", `{"a":1, /* c */ "b":2}`},
		{"space before the comma", `{"a":1}`, `,"hooks"`, ` ,"hooks"`, `{"a":1}`},
		{"comment outside", "", "]}}", "]}}\n// mine\n", "{}\n// mine\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			y := flat(install(t, test.file, stopOnly()))
			require.Contains(t, y, test.old)
			at := strings.LastIndex(y, test.old)
			edited := y[:at] + test.edit + y[at+len(test.old):]
			alike(t, test.want, uninstall(t, edited, stopOnly()))
		})
	}
}

func TestUninstallAfterTheClientRewroteTheFile(t *testing.T) {
	for name, x := range documents {
		if strings.Contains(x, "\ufeff") || strings.Contains(x, "1E+400") {
			continue
		}
		p := owns(t, x, name != "no file")
		y := meaning(t, p.install(wiring()))
		y["permissions"] = []any{"new"}
		rewritten, err := json.MarshalIndent(y, "", "  ")
		require.NoError(t, err)
		want := foreignMeaning(t, x)
		want["permissions"] = []any{"new"}
		p.write(string(rewritten))
		p.uninstall(wiring())
		got := p.text()
		assert.Equal(t, want, foreignMeaning(t, got), name)
		assert.Equal(t, strings.Contains(x, settings.BlockCapEnv), strings.Contains(got, settings.BlockCapEnv), name)
		assert.NotContains(t, got, "/abs/heartbeat-stop", name)
	}
}

func TestUninstallTakesOursOutOfEveryEvent(t *testing.T) {
	file := `{"hooks":{"Notification":[{"matcher":"x","hooks":[{"type":"http"}]},` + entry + `],"Stop":[` + entry + `]}}`
	want := `{"hooks":{"Notification":[{"matcher":"x","hooks":[{"type":"http"}]}]}}`
	alike(t, want, uninstall(t, file, stopOnly()))
}
