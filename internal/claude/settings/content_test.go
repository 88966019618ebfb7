package settings_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func look(t testing.TB, file string) settings.Content {
	t.Helper()
	c, err := settings.ReadContent([]byte(file), "/opt/hb")
	require.NoError(t, err)
	return c
}

func TestLookFindsWhatInstallWrites(t *testing.T) {
	w := wiring()
	c := look(t, install(t, "", w))
	require.Len(t, c.Hooks, 2)
	f := c.Hooks[0]
	assert.Equal(t, settings.Found{
		Command: w.Command, Args: w.Args,
		Event: settings.Stop, Member: "hooks.Stop[0].hooks[0]", Timeout: 600 * time.Second,
		Inbox: inbox, Binary: w.Command, Flags: w.Args, Exact: true,
	}, f)
	assert.Equal(t, settings.StopFailure, c.Hooks[1].Event)
	assert.Equal(t, map[string]string{settings.BlockCapEnv: "0"}, c.Env)
	assert.Zero(t, c.Lax)

	c = look(t, install(t, "", rewake()))
	require.Len(t, c.Hooks, 2)
	assert.True(t, c.Hooks[0].Wakes)
	assert.Equal(t, 365*24*time.Hour, c.Hooks[0].Timeout)
	assert.True(t, c.Hooks[1].Background)
	assert.Empty(t, c.Env)
}

func TestLookJudgesForms(t *testing.T) {
	tests := []struct {
		hook          string
		found, exact  bool
		inbox, binary string
	}{
		{`"command":"/a/heartbeat-stop","args":["--inbox","/x"]`, true, true, "/x", "/a/heartbeat-stop"},
		{`"command":"/a/hb","args":["--inbox=/x"]`, true, true, "/x", "/a/hb"},
		{`"command":"/a/heartbeat-stop","args":[]`, true, true, "", "/a/heartbeat-stop"},
		{`"command":"heartbeat-stop --inbox /x"`, true, true, "/x", "heartbeat-stop"},
		{`"command":"'/a b/heartbeat-stop' --inbox \"/x y\""`, true, true, "/x y", "/a b/heartbeat-stop"},
		{`"command":"heartbeat-stop --inbox $X"`, true, false, "$X", "heartbeat-stop"},
		{`"command":"cd /p && heartbeat-stop --inbox /x >> log"`, true, false, "/x", "heartbeat-stop"},
		{`"command":"/bin/nice","args":["/a/heartbeat-stop","--inbox","/x"]`, true, false, "/x", "/a/heartbeat-stop"},
		{`"command":"/a/heartbeat-stop","args":["recover","--inbox","/x"]`, false, false, "", ""},
		{`"command":"heartbeat-stop recover --inbox /x"`, false, false, "", ""},
		{`"command":"tail /var/log/heartbeat-stop"`, false, false, "", ""},
		{`"command":"/a/other","args":["--inbox","/x"]`, false, false, "", ""},
		{`"command":""`, false, false, "", ""},
		{`"command":"/a/heartbeat-stop","args":[5]`, false, false, "", ""},
	}
	for _, test := range tests {
		c := look(t, `{"hooks":{"Stop":[{"hooks":[{"type":"command",`+test.hook+`}]}]}}`)
		if !test.found {
			assert.Empty(t, c.Hooks, test.hook)
			continue
		}
		require.Len(t, c.Hooks, 1, test.hook)
		f := c.Hooks[0]
		assert.Equal(t, test.exact, f.Exact, test.hook)
		assert.Equal(t, test.inbox, f.Inbox, test.hook)
		assert.Equal(t, test.binary, f.Binary, test.hook)
	}
}

func TestLookReadsMembers(t *testing.T) {
	const hook = `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"heartbeat-stop","args":[]`
	assert.Equal(t, 90*time.Second, look(t, hook+`,"timeout":90}]}]}}`).Hooks[0].Timeout)
	assert.Equal(t, 500*time.Millisecond, look(t, hook+`,"timeout":0.5}]}]}}`).Hooks[0].Timeout)
	assert.Zero(t, look(t, hook+`,"timeout":"90"}]}]}}`).Hooks[0].Timeout)
	assert.Equal(t, 365*24*time.Hour, look(t, hook+`,"timeout":31536000}]}]}}`).Hooks[0].Timeout)
	assert.Greater(t, look(t, hook+`,"timeout":1e300}]}]}}`).Hooks[0].Timeout, 365*24*time.Hour)
	for members, want := range map[string]struct{ background, wakes bool }{
		`"async":true`:                      {true, false},
		`"asyncRewake":true`:                {true, true},
		`"asyncRewake":true,"async":true`:   {true, true},
		`"asyncRewake":true,"async":false`:  {true, true},
		`"asyncRewake":false,"async":true`:  {true, false},
		`"asyncRewake":false,"async":false`: {false, false},
		`"asyncRewake":"true"`:              {false, false},
		`"once":true`:                       {false, false},
	} {
		f := look(t, hook+","+members+`}]}]}}`).Hooks[0]
		assert.Equal(t, want.background, f.Background, members)
		assert.Equal(t, want.wakes, f.Wakes, members)
	}

	c := look(t, `{"env":{"A":"a","B":0,"C":true,"D":null,"E":[1]},"disableAllHooks":true,"model":"opus","x":false}`)
	assert.Equal(t, map[string]string{"A": "a", "B": "0", "C": "true"}, c.Env)
	assert.Equal(t, map[string]bool{"disableAllHooks": true, "x": false}, c.Switches)
}

func TestLookTellsWhatIsNoPlainJSON(t *testing.T) {
	for file, line := range map[string]int{
		"":                      0,
		"{}":                    0,
		"\ufeff{}\n":            0,
		"{\n  \"a\": 1\n}\n":    0,
		"{ // mine\n}":          1,
		"{\n\"a\": 1 // one\n}": 2,
		"{\n\"a\": 1,\n}":       3,
		"{}\n/* end */":         2,
		"{} // end":             1,
	} {
		assert.Equal(t, line, look(t, file).Lax, "%q", file)
	}
}

func TestLookRefusesWhatInstallRefuses(t *testing.T) {
	for file, says := range map[string]string{
		`{"a":`:         "not valid JSON",
		`[]`:            "top level at line 1",
		"\ufeff":        "not valid JSON",
		`{"hooks":[]}`:  "hooks at line 1",
		"{\n\"env\":5}": "env at line 2",
	} {
		_, err := settings.ReadContent([]byte(file), "")
		assert.ErrorContains(t, err, says, file)
	}
	for name, file := range documents {
		_, err := settings.ReadContent([]byte(file), "")
		assert.NoError(t, err, name)
	}
}
