package session_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			text, err := os.ReadFile(r.path("peak"))
			require.NoError(t, err)
			_, line, found := strings.Cut(string(text), "VmHWM:")
			require.True(t, found)
			var peak int
			_, err = fmt.Sscan(line, &peak)
			require.NoError(t, err)
			if !testing.Short() { // the race detector, with which short tests run, needs more
				assert.Less(t, peak, 200<<10, "KiB")
			}
			r.isClean()
		})
	}
}
