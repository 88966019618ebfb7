package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestTakeFlag(t *testing.T) {
	for name, c := range map[string]struct {
		args, rest []string
		value      string
	}{
		"none":            {[]string{"begin"}, []string{"begin"}, ""},
		"apart":           {[]string{"--settings", "a", "begin"}, []string{"begin"}, "a"},
		"joined":          {[]string{"-c", "--settings=a"}, []string{"-c"}, "a"},
		"twice":           {[]string{"--settings", "a", "-c", "--settings=b", "begin"}, []string{"-c", "begin"}, "b"},
		"in the prompt":   {[]string{"--", "--settings", "a"}, []string{"--", "--settings", "a"}, ""},
		"without a value": {[]string{"--settings"}, []string{"--settings"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rest, value := settings.TakeFlag(c.args)
			assert.Equal(t, c.rest, rest)
			assert.Equal(t, c.value, value)
		})
	}
}

func TestReadFlag(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.json"), []byte(`{"a":1}`), 0o600))
	for value, want := range map[string]string{"": "", ` {"b":2}`: ` {"b":2}`, "s.json": `{"a":1}`, filepath.Join(dir, "s.json"): `{"a":1}`} {
		text, err := settings.ReadFlag(value, dir)
		require.NoError(t, err, value)
		assert.Equal(t, want, string(text))
	}
	_, err := settings.ReadFlag("none.json", dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSwitchedOffBy(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	user, project := filepath.Join(home, ".claude", "settings.json"), filepath.Join(dir, ".claude", "settings.json")
	for _, path := range []string{user, project} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	}
	environ := []string{"HOME=" + home}
	by := func(given string) *settings.Off { return settings.SwitchedOffBy(environ, dir, []byte(given)) }
	assert.Nil(t, by(""))
	require.NoError(t, os.WriteFile(user, []byte(`{"disableAllHooks":true}`), 0o600))
	assert.Equal(t, &settings.Off{Path: user, Member: "disableAllHooks"}, by(`{"allowManagedHooksOnly":true}`))
	assert.Nil(t, by(`{"disableAllHooks":false}`))
	require.NoError(t, os.WriteFile(project, []byte(`{"disableAllHooks":false}`), 0o600))
	assert.Nil(t, by(""))
	assert.EqualError(t, errors.New(by(`{"disableAllHooks":true}`).String()), "hooks are disabled by disableAllHooks in --settings of the command: take it out")
	require.NoError(t, os.WriteFile(project, []byte(`{"disableAllHooks":true,}`), 0o600))
	require.NoError(t, os.WriteFile(user, nil, 0o600))
	assert.Nil(t, by(""), "the client loads nothing of such a file")
}

func TestHooksOffByAnAdministrator(t *testing.T) {
	managed := t.TempDir()
	path := filepath.Join(managed, "managed-settings.json")
	off := func(own bool) *settings.Off {
		return settings.HooksOff(settings.Files(t.TempDir(), t.TempDir(), "", managed), settings.File.Loaded, own)
	}
	require.NoError(t, os.WriteFile(path, []byte(`{"allowManagedHooksOnly":true}`), 0o600))
	assert.Equal(t, &settings.Off{Path: path, Member: "allowManagedHooksOnly"}, off(false))
	assert.Nil(t, off(true))
	require.NoError(t, os.WriteFile(path, []byte(`{"disableAllHooks":true}`), 0o600))
	assert.Equal(t, &settings.Off{Path: path, Member: "disableAllHooks"}, off(true))
}

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
