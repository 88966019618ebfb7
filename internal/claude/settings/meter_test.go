package settings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// statusOf returns a file with that status line.
func statusOf(t testing.TB, command string, members ...string) string {
	t.Helper()
	text, err := json.Marshal(command)
	require.NoError(t, err)
	return `{"statusLine":{"type":"command","command":` + string(text) + strings.Join(members, "") + `}}`
}

// Both installing and uninstalling take out the meter of the inbox that an earlier release has put before the status line,
// and leave what is a person's.
func TestTheMeterOfEarlierReleasesGoes(t *testing.T) {
	const old, ours = "/abs/heartbeat-meter --inbox /x/inbox.jsonl", "/abs/heartbeat-stop meter --inbox /x/inbox.jsonl"
	const other = "/abs/heartbeat-stop meter --inbox /y.jsonl"
	mine := func(line string, members ...string) string { return statusOf(t, line, members...) }
	every := `,"refreshInterval":5`
	for name, c := range map[string]struct{ file, want string }{
		"nothing else":                   {mine(ours, every), `{}`},
		"by its old name":                {mine(old, every), `{}`},
		"quoted otherwise":               {mine("'/abs/heartbeat-meter' --inbox='/x/inbox.jsonl' --then='l'"), mine("l")},
		"a person's line":                {mine(ours+` --then 'echo '\''a'\'' "b"'`, `,"padding":2`, every), mine(`echo 'a' "b"`, `,"padding":2`)},
		"one that was empty":             {mine(ours+" --then ''", every), mine("")},
		"an interval of a person's":      {mine(ours+" --then l", `,"refreshInterval":60`), mine("l", `,"refreshInterval":60`)},
		"the line of another file":       {mine(ours+" --then 'theirs' # shows the status line of another settings file", `,"padding":7`, every), `{}`},
		"before that of another inbox":   {mine(ours+" --then '"+other+"'", every), mine(other, every)},
		"behind that of another inbox":   {mine(other+" --then '"+ours+"'", every), mine(other, every)},
		"between two":                    {mine(other+` --then '`+ours+` --then l'`, every), mine(other+" --then 'l'", every)},
		"of another inbox":               {mine(other+" --then l", every), mine(other+" --then l", every)},
		"in a person's line":             {mine(ours + " | tee log"), mine(ours + " | tee log")},
		"two lines of a person's":        {mine(ours + " # first\nline.sh"), mine(ours + " # first\nline.sh")},
		"its name in a person's line":    {mine("tail /var/log/heartbeat-meter"), mine("tail /var/log/heartbeat-meter")},
		"longer than an argument can be": {mine(strings.Repeat("y", 2<<20)), mine(strings.Repeat("y", 2<<20))},
		"no line of a command":           {`{"statusLine":null}`, `{"statusLine":null}`},
	} {
		assert.Equal(t, c.want, uninstall(t, c.file, stopOnly()), name)
		y := install(t, c.file, stopOnly())
		assert.Equal(t, y, install(t, y, stopOnly()), name)
		assert.Equal(t, c.want, uninstall(t, y, stopOnly()), name)
	}
}
