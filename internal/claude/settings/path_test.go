package settings_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/claude/settings"
)

func TestPath(t *testing.T) {
	tests := []struct {
		scope                 settings.Scope
		project, home, config string
		want, err             string
	}{
		{settings.Project, "/p", "/h", "/c", "/p/.claude/settings.json", ""},
		{settings.Local, "/p", "", "", "/p/.claude/settings.local.json", ""},
		{settings.User, "/p", "/h", "", "/h/.claude/settings.json", ""},
		{settings.User, "/p", "/h", "/c", "/c/settings.json", ""},
		{settings.User, "", "", "/c", "/c/settings.json", ""},
		{settings.User, "/p", "", "", "", "a person's own settings are in the home directory, and HOME is not set: set it, or CLAUDE_CONFIG_DIR"},
	}
	for _, test := range tests {
		got, err := settings.Path(test.scope, test.project, test.home, test.config)
		assert.Equal(t, test.want, got)
		if test.err == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, test.err)
	}
}
