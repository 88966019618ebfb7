package effect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
)

func TestParseCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	blank := filepath.Join(dir, "a folder", "baby sitter")
	require.NoError(t, os.Mkdir(filepath.Dir(blank), 0o700))
	require.NoError(t, os.WriteFile(blank, nil, 0o700))
	for line, want := range map[string][]string{
		"babysitter":                   {"babysitter"},
		effect.Npx:                     {"npx", "-y", "-p", "@a5c-ai/babysitter-sdk@" + effect.MeasuredVersion, "babysitter"},
		blank:                          {blank},
		"a folder/baby sitter":         {blank},
		"'" + blank + "' --verbose":    {blank, "--verbose"},
		`"a folder/baby sitter" -x`:    {blank, "-x"},
		`a\ folder/baby\ sitter`:       {blank},
		"./babysitter.sh '' \"$HOME\"": {filepath.Join(dir, "babysitter.sh"), "", "$HOME"},
	} {
		got, err := effect.ParseCommand(line)
		require.NoError(t, err, line)
		assert.Equal(t, want, got)
		again, err := effect.ParseCommand(words.Shell(got...))
		require.NoError(t, err, line)
		assert.Equal(t, want, again, "a settings file has it spelt for a shell")
	}
	for _, line := range []string{"", " ", "'babysitter", "babysitter; rm x", "babysitter && rm x", "babysitter > out", "a | b"} {
		_, err := effect.ParseCommand(line)
		require.ErrorContains(t, err, "the command of babysitter", line)
	}
}
