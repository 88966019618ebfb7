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

// However many lines of 60 MB a session has, a host holds one of them twice at most, with all that it needs beside it,
// from the client's output to the guild, or to the file of a report that the guild refuses.
func TestLargeLines(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system does not tell the peak of a process's memory")
	}
	for prompt, messages := range map[string]int{
		"large:user,60": 2, "large:assistant,60": 2, "large:user,60 large:assistant,60 large:user,60 large:user,60": 5,
	} {
		for _, refused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", prompt, refused), func(t *testing.T) {
				r := newRig(t, prompt)
				if refused {
					r.guild.Break(guild.Fault{On: "record", Do: guild.Answer, Status: 422, Times: -1})
				}
				cmd := r.command()
				cmd.Env = append(cmd.Env, peakVariable+"="+r.path("peak"))
				require.NoError(t, cmd.Run())
				if s, _ := r.guild.Session("ses-1"); refused {
					info, err := os.Stat(filepath.Join(filepath.Dir(r.folder().DB), "dlq", "ses-1.json"))
					require.NoError(t, err)
					assert.Greater(t, info.Size(), int64(messages-1)*60<<20)
				} else {
					assert.Equal(t, "completed", s.Status)
					assert.Equal(t, messages, s.Messages)
					r.isClean()
				}
				r.needed(200 << 10)
			})
		}
	}
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
