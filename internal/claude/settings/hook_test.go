package settings_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestOurs(t *testing.T) {
	hook := func(kind, command string, args ...string) string {
		text, err := json.Marshal(map[string]any{"type": kind, "command": command, "args": append([]string{}, args...)})
		require.NoError(t, err)
		return string(text)
	}
	tests := []struct {
		name string
		hook string
		want bool
	}{
		{"as written", hook("command", "/abs/heartbeat-stop", "--inbox", inbox), true},
		{"other directory", hook("command", "/else/heartbeat-stop", "--inbox", inbox), true},
		{"other flags", hook("command", "/abs/heartbeat-stop", "--park", "--inbox="+inbox, "--wait=1s"), true},
		{"one dash", hook("command", "/abs/heartbeat-stop", "-inbox", inbox), true},
		{"path not clean", hook("command", "/abs/heartbeat-stop", "--inbox", "/x/./y/../inbox.jsonl"), true},
		{"last flag counts", hook("command", "/abs/heartbeat-stop", "--inbox", "/a", "--inbox", inbox), true},
		{"named like the command", hook("command", "/abs/hb", "--inbox", inbox), true},
		{"other inbox", hook("command", "/abs/heartbeat-stop", "--inbox", "/y/inbox.jsonl"), false},
		{"last flag is another", hook("command", "/abs/heartbeat-stop", "--inbox", inbox, "--inbox", "/a"), false},
		{"longer path", hook("command", "/abs/heartbeat-stop", "--inbox", inbox+".old"), false},
		{"no inbox", hook("command", "/abs/heartbeat-stop"), false},
		{"flag without value", hook("command", "/abs/heartbeat-stop", "--inbox"), false},
		{"relative inbox", hook("command", "/abs/heartbeat-stop", "--inbox", "inbox.jsonl"), false},
		{"other binary", hook("command", "/abs/heartbeat-stop2", "--inbox", inbox), false},
		{"other type", hook("prompt", "/abs/heartbeat-stop", "--inbox", inbox), false},
		{"shell form", `{"type":"command","command":"heartbeat-stop --inbox ` + inbox + `"}`, false},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, settings.Ours(test.hook, inbox, "/opt/hb"), test.name)
	}
	assert.False(t, settings.Ours(hook("command", "/abs/hb", "--inbox", inbox), inbox, ""))
}

func TestInstallRefusesASecondReader(t *testing.T) {
	shell := func(line string) string {
		quoted, err := json.Marshal(line)
		require.NoError(t, err)
		return `"command": ` + string(quoted)
	}
	const certain, perhaps, foreign = "already serves", "may already serve", ""
	tests := []struct{ hook, want string }{
		{shell("heartbeat-stop --inbox /x/inbox.jsonl"), certain},
		{shell("/usr/bin/heartbeat-stop --wait 5 --inbox='/x/inbox.jsonl'"), certain},
		{shell(`cd /tmp && exec "/a b/heartbeat-stop" --inbox "/x/inbox.jsonl" >>/tmp/log 2>&1`), certain},
		{shell(`A=1 timeout 5 heartbeat-stop --inbox /x/\inbox.jsonl;true`), certain},
		{shell(`bash -lc 'heartbeat-stop --inbox "/x/inbox.jsonl"'`), certain},
		{`"command": "/bin/sh", "args": ["-c", "heartbeat-stop --inbox /x/inbox.jsonl"]`, certain},
		{`"command": "/usr/bin/nice", "args": ["heartbeat-stop", "--inbox", "/x/inbox.jsonl"]`, certain},
		{shell(`"$HB"/heartbeat-stop --inbox "$HOME/inbox.jsonl"`), perhaps},
		{shell("heartbeat-stop --inbox ~/q/inbox.jsonl"), perhaps},
		{shell("heartbeat-stop --inbox inbox.jsonl"), perhaps},
		{shell("heartbeat-stop --inbox $INBOX"), perhaps},
		{shell("heartbeat-stop"), perhaps},
		{`"command": "/abs/heartbeat-stop", "args": []`, perhaps},
		{`"command": "/abs/heartbeat-stop", "args": ["--inbox", "inbox.jsonl"]`, perhaps},
		{shell("heartbeat-stop --inbox /y/inbox.jsonl"), foreign},
		{shell("heartbeat-stop --inbox ~/other.jsonl"), foreign},
		{shell("tail -1 /var/log/heartbeat-stop"), foreign},
		{shell("echo 'heartbeat-stop has run'"), foreign},
		{shell("say done"), foreign},
		{`"command": "/abs/heartbeat-stop", "args": ["--inbox", 5]`, foreign},
		{`"command": "/abs/heartbeat-stop", "args": "--inbox"`, foreign},
	}
	for _, test := range tests {
		file := fmt.Sprintf("{\"hooks\": {\"Stop\": [{}, {\"hooks\": [\n{\"type\": \"command\", %s}]}]}}", test.hook)
		_, err := settings.Install([]byte(file), stopOnly())
		if test.want == foreign {
			assert.NoError(t, err, test.hook)
			continue
		}
		require.ErrorContains(t, err, "hooks.Stop[1].hooks[0] at line 2 "+test.want+" inbox /x/inbox.jsonl (")
		assert.Equal(t, file, uninstall(t, file, stopOnly()), "it is not ours to remove")

		elsewhere := stopOnly()
		elsewhere.Events = []string{settings.SessionEnd}
		_, err = settings.Install([]byte(file), elsewhere)
		assert.NoError(t, err, "in an event that is not wired it takes nothing away")
	}
}

func TestShellWords(t *testing.T) {
	tests := map[string][]string{
		``:                   nil,
		" \t":                nil,
		`a  b`:               {"a", "b"},
		`a'b c'"d e"f`:       {"ab cd ef"},
		`'' ""`:              {"", ""},
		`a\ b \'c`:           {"a b", "'c"},
		`"a \"b\" $C"`:       {`a "b" $C`},
		`a;b|c&&d>e(f)`:      {"a", "b", "c", "d", "e", "f"},
		`'a"b' "c'd"`:        {`a"b`, `c'd`},
		`unclosed 'a b`:      {"unclosed", "a b"},
		`ends in backslash\`: {"ends", "in", `backslash\`},
	}
	for line, want := range tests {
		assert.Equal(t, want, settings.ShellWords(line), line)
	}
}
