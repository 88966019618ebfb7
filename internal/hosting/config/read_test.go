package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
)

// A large prompt is no problem.
func TestLargest(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 64 MiB")
	}
	prompt := strings.Repeat("x", config.MaxSize-len(whole)+len("do it"))
	large := []byte(strings.Replace(whole, "do it", prompt, 1))
	require.Len(t, large, config.MaxSize)
	c, err := config.Parse(large)
	require.NoError(t, err)
	assert.Len(t, c.Prompt, len(prompt))
	_, err = config.Parse(append(large, ' '))
	assert.Equal(t, "the config on stdin is larger than 64 MiB", problem(t, err).Error())
}

// A config that would take gigabytes to take apart is refused before that.
func TestManyMembers(t *testing.T) {
	many := strings.Repeat(",0", 100_000)
	for path, text := range map[string]string{
		"tools":      strings.Replace(whole, `"tools": [`, `"tools": [0`+many+`, `, 1),
		"claudeArgs": strings.Replace(whole, `"claudeArgs": [`, `"claudeArgs": [0`+many+`, `, 1),
		"env":        strings.Replace(whole, `"env": {`, `"env": {"a": 0`+strings.ReplaceAll(many, "0", `"b":0`)+`, `, 1),
		"":           strings.Replace(whole, `"more"`, `"a": 0`+strings.ReplaceAll(many, "0", `"b":0`)+`, "more"`, 1),
	} {
		_, err := config.Parse([]byte(text))
		assert.Equal(t, &config.Problem{Path: path, Reason: "must have at most 100000 members, and has more"}, problem(t, err))
	}
	c, err := config.Parse([]byte(strings.Replace(whole, "[1, 2]", "[0"+many+`, "[\"", ",,"]`, 1)))
	require.NoError(t, err, "what is passed on is not taken apart")
	assert.Len(t, c.Extra, 1)
}
