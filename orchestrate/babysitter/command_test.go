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

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
)

// The note about another version says what is known of it.
func TestVersionIsSaid(t *testing.T) {
	for version, want := range map[string]string{
		effect.MeasuredVersion: "", "0.0.174": "delivered three times", "1.2.3": "nothing is known of it",
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

// Of two bad labels the first is named, each time.
func TestCreateNamesTheFirstBadLabel(t *testing.T) {
	for range 20 {
		_, err := (&babysitter.CLI{}).Create(t.Context(), babysitter.CreateOptions{ProcessID: "p", Revision: "-v", Request: "-r"})
		require.ErrorContains(t, err, `"-v" is no revision of a process`)
	}
}
