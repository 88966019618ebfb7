package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/guild"
)

// A line of 60 MB is held twice at most, with all that a host needs beside it, from the
// client's output to the guild.
func TestLargeLine(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system does not tell the peak of a process's memory")
	}
	for _, kind := range []string{"user", "assistant"} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, "large:"+kind+",60")
			cmd := r.command()
			cmd.Env = append(cmd.Env, peakVariable+"="+r.path("peak"))
			require.NoError(t, cmd.Run())
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, "completed", s.Status)
			assert.Equal(t, 2, s.Messages)
			r.needed(200 << 10)
			r.isClean()
		})
	}
}

// A large record that the guild refuses is a file in dlq, and the host needs no more for it.
func TestLargeRecordRefused(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system does not tell the peak of a process's memory")
	}
	r := newRig(t, "large:assistant,60")
	r.guild.Break(guild.Fault{On: "record", Do: guild.Answer, Status: 422, Times: -1})
	cmd := r.command()
	cmd.Env = append(cmd.Env, peakVariable+"="+r.path("peak"))
	require.NoError(t, cmd.Run())
	info, err := os.Stat(filepath.Join(filepath.Dir(r.folder().DB), "dlq", "ses-1.json"))
	require.NoError(t, err)
	assert.Greater(t, info.Size(), int64(60<<20))
	r.needed(200 << 10)
}

// needed checks that the host had no more than so many KiB at once.
func (r *rig) needed(most int) {
	r.t.Helper()
	text, err := os.ReadFile(r.path("peak"))
	require.NoError(r.t, err)
	_, line, found := strings.Cut(string(text), "VmHWM:")
	require.True(r.t, found)
	var peak int
	_, err = fmt.Sscan(line, &peak)
	require.NoError(r.t, err)
	if !testing.Short() { // the race detector, with which short tests run, needs more
		assert.Less(r.t, peak, most, "KiB")
	}
	r.t.Logf("%d KiB", peak)
}
