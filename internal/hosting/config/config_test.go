package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
)

const whole = `{"sessionId":"ses-1","guildToolUrl":"http://127.0.0.1:7471/","dbPath":"/g/.nexus/nexus.db","logDir":"/g/logs",
"claudeArgs":["--model","x"],"cwd":"/w","env":{"A":"b"},"prompt":"hi","tools":[{"name":"writ-list","description":"d","params":{"properties":{}},"method":"GET"},{"name":"signal"}],
"startedAt":"2026-05-01T12:00:00.123Z","provider":"claude-code","metadata":{"a":1},"systemPromptTmpDir":"/tmp/x","more":[1]}`

func TestParse(t *testing.T) {
	c, err := config.Parse([]byte(whole))
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:7471", c.GuildToolURL)
	assert.Equal(t, "POST", c.Tools[1].Method)
	assert.Equal(t, `[1]`, string(c.Extra["more"]))
}

func TestProblemHasPath(t *testing.T) {
	_, err := config.Parse([]byte(`{"sessionId":"a b"}`))
	var p *config.Problem
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "sessionId", p.Path)
}
