package session_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/long"
)

// pages says how many pages the database of a host may have.
func (r *rig) pages(n int) {
	r.t.Helper()
	next := r.path("pages.next")
	require.NoError(r.t, os.WriteFile(next, []byte(strconv.Itoa(n)), 0o600))
	require.NoError(r.t, os.Rename(next, r.path("pages")))
}

// least is how many pages the empty tables have.
const least = 11

// long40k has the client print a message of 40 kB.
var long40k = "print:" + fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"text","text":"%040000d"}]}}`, 0)

// A disk that fills up at any moment of a session's life: the guild is told nothing until
// the end can be kept, and then once, with the whole transcript.
func TestDiskFull(t *testing.T) {
	for n := least; n <= 40; n += long.Rounds(6, 1) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, long40k+" "+long40k+" hello")
			r.pages(n)
			cmd := r.command()
			cmd.Env = append(cmd.Env, spaceVariable+"="+r.path("pages"))
			require.NoError(t, cmd.Start())
			r.until("the end is kept, or cannot be", func() bool {
				log, _ := os.ReadFile(r.path("logs/ses-1.log"))
				s, err := r.folder().Read()
				return contains(log, "the session's end cannot be kept") || err == nil && s.EndedAt != nil
			})
			full := r.state().EndedAt == nil
			if s, _ := r.guild.Session("ses-1"); full {
				assert.Zero(t, s.Record.Applied)
				assert.NoFileExists(t, r.path("dlq/ses-1.json"))
				assert.NoError(t, attach.Host{Folder: r.folder().Dir()}.Cancel(t.Context(), attach.End{Warm: true, Grace: -1}), "nothing is in flight")
			}
			assert.True(t, full || n > least)
			require.NoError(t, os.Remove(r.path("pages")))
			require.NoError(t, cmd.Wait())
			r.alone()
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, 1, s.Record.Applied)
			assert.Zero(t, s.Record.Repeated)
			assert.Equal(t, "completed", s.Status)
			assert.Equal(t, 3, s.Messages)
			assert.Equal(t, 3, r.messages("ses-1"))
			r.isClean()
		})
	}
}

// A host that is ended, or killed, before it could keep the end leaves that to its
// guardian, which says what is lost.
func TestDiskFullAndKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, long40k+" hello")
			r.pages(least)
			cmd := r.command()
			cmd.Env = append(cmd.Env, spaceVariable+"="+r.path("pages"))
			require.NoError(t, cmd.Start())
			r.until("the end cannot be kept", func() bool {
				log, _ := os.ReadFile(r.path("logs/ses-1.log"))
				return contains(log, "the session's end cannot be kept")
			})
			require.NoError(t, cmd.Process.Signal(sig))
			_ = cmd.Wait()
			r.alone()
			s, _ := r.guild.Session("ses-1")
			assert.Equal(t, 1, s.Record.Applied)
			r.isClean()
		})
	}
}

// refusing has a guild refuse each record.
var refusing = guild.Fault{On: "record", Do: guild.Answer, Status: 403, Times: -1}

func contains(text []byte, part string) bool { return strings.Contains(string(text), part) }
