package babysitter_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/words"
	"heartbeat/orchestrate/babysitter"
)

func TestParseCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	blank := filepath.Join(dir, "a folder", "baby sitter")
	require.NoError(t, os.Mkdir(filepath.Dir(blank), 0o700))
	require.NoError(t, os.WriteFile(blank, nil, 0o700))
	for line, want := range map[string][]string{
		"babysitter":                   {"babysitter"},
		babysitter.Npx:                 {"npx", "-y", "-p", "@a5c-ai/babysitter-sdk@" + babysitter.Measured, "babysitter"},
		blank:                          {blank},
		"a folder/baby sitter":         {blank},
		"'" + blank + "' --verbose":    {blank, "--verbose"},
		`"a folder/baby sitter" -x`:    {blank, "-x"},
		`a\ folder/baby\ sitter`:       {blank},
		"./babysitter.sh '' \"$HOME\"": {filepath.Join(dir, "babysitter.sh"), "", "$HOME"},
	} {
		got, err := babysitter.ParseCommand(line)
		require.NoError(t, err, line)
		assert.Equal(t, want, got)
		again, err := babysitter.ParseCommand(words.Shell(got...))
		require.NoError(t, err, line)
		assert.Equal(t, want, again, "a settings file has it spelt for a shell")
	}
	for _, line := range []string{"", " ", "'babysitter", "babysitter; rm x", "babysitter && rm x", "babysitter > out", "a | b"} {
		_, err := babysitter.ParseCommand(line)
		require.ErrorIs(t, err, babysitter.ErrInvalid, line)
	}
}

// TestVersionIsSaid holds that what is known of another version is said.
func TestVersionIsSaid(t *testing.T) {
	for version, want := range map[string]string{
		babysitter.Measured: "", "0.0.174": "delivered three times", "1.2.3": "nothing is known of it",
	} {
		path := filepath.Join(t.TempDir(), "babysitter")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho "+version+"\n"), 0o700))
		var notes []string
		cli := babysitter.CLI{Command: []string{path}, Note: func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }}
		got, err := cli.Version(context.Background())
		require.NoError(t, err)
		assert.Equal(t, version, got)
		if want == "" {
			assert.Empty(t, notes)
			continue
		}
		assert.Contains(t, strings.Join(notes, "\n"), want)
		assert.Contains(t, strings.Join(notes, "\n"), version)
	}
}
