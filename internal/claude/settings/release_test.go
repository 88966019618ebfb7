package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func TestParseRelease(t *testing.T) {
	for text, want := range map[string]settings.Release{
		"2.1.329 (Claude Code)\n": {2, 1, 329},
		"2.1.329":                 {2, 1, 329},
		"v2.0.0":                  {2, 0, 0},
		" 10.20.30-beta.1 x":      {10, 20, 30},
		"2.1.0-20260101.1":        {2, 1, 0},
	} {
		got, err := settings.ParseRelease(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "claude", "2.1", "2.1.3.4", "2.1.x", "2..3", "-1.2.3", "+1.2.3", "2.1.99999999999", "Claude Code 2.1.3",
		strings.Repeat("9", 1000),
	} {
		_, err := settings.ParseRelease(text)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), "is no version")
		assert.Less(t, len(err.Error()), 200)
	}
}

func TestReleaseOrder(t *testing.T) {
	ordered := []settings.Release{
		{1, 9, 999}, {2, 1, 3}, {2, 1, 47}, settings.ExecForm, {2, 1, 143}, settings.Measured, {2, 2, 0}, {3, 0, 0},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			assert.Equal(t, i < j, a.Before(b), "%s before %s", a, b)
		}
	}
	assert.Equal(t, "2.1.329", settings.Measured.String())
}

// TestReleaseTables checks that the documents say about releases what the list does.
func TestReleaseTables(t *testing.T) {
	table := "| Claude Code | brought | before that |\n|---|---|---|\n"
	for _, f := range settings.Features {
		without := f.Without
		if without == "" {
			without = "nothing is missing"
		}
		table += fmt.Sprintf("| %s | %s | %s |\n", f.Since, f.What, without)
	}
	measured, needed := settings.Measured.String(), settings.ExecForm.String()+" or later"
	for path, wants := range map[string][]string{
		"README.md":         {needed},
		"docs/reference.md": {needed, measured},
		"docs/sessions.md":  {table, measured},
	} {
		text, err := os.ReadFile(filepath.Join("../../..", path))
		require.NoError(t, err)
		for _, want := range wants {
			assert.Contains(t, string(text), want, path)
		}
	}
}

func TestReleaseLacks(t *testing.T) {
	assert.Empty(t, settings.Measured.Lacks())
	assert.Empty(t, settings.Release{2, 1, 196}.Lacks())
	assert.Len(t, settings.Release{2, 1, 195}.Lacks(), 1)
	lacks := settings.Release{2, 1, 46}.Lacks()
	require.Len(t, lacks, 4)
	assert.Contains(t, lacks[0], "prompt_id")
	assert.Contains(t, lacks[0], "since 2.1.196")
	assert.Contains(t, lacks[3], "last_assistant_message")
}
