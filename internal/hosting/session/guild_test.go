package session_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/long"
)

// A guild that is killed at any step of a report, and started again, has the report
// applied once. So it is if the host is killed too.
func TestGuildKilled(t *testing.T) {
	hosts := []string{"", "ended", "kept"}
	for _, on := range []string{"running", "record"} {
		for i, at := range guild.Steps {
			for j, host := range hosts {
				if !long.Wanted() && i%len(hosts) != j {
					continue
				}
				t.Run(on+" "+at+" "+host, func(t *testing.T) {
					t.Parallel()
					r := newRig(t, "hello")
					g, err := guild.Launch(guild.Options{State: r.path("guild"), Cancelled: true})
					require.NoError(t, err)
					t.Cleanup(g.Kill)
					require.NoError(t, g.Expect("ses-1"))
					require.NoError(t, g.Break(guild.Fault{On: on, Step: at, Do: guild.Die}))
					r.Config.GuildToolURL = g.URL()
					cmd := r.command()
					if host != "" {
						cmd.Env = append(cmd.Env, killVariable+"="+host)
					}
					require.NoError(t, cmd.Start())
					g.Wait()
					require.NoError(t, g.Start())
					_ = cmd.Wait() // it may be killed
					r.applied(g)
				})
			}
		}
	}
}

// applied checks that the guild has the session's end, once.
func (r *rig) applied(g *guild.Program) {
	r.t.Helper()
	r.until("nobody works on the session", func() bool { return r.state().Host == nil && r.folder().Holder() == 0 })
	r.alone()
	_, err := session.Drain(r.t.Context(), session.DrainOptions{DB: r.Config.DBPath, Refused: true})
	require.NoError(r.t, err)
	all, err := g.Sessions()
	require.NoError(r.t, err)
	assert.Equal(r.t, 1, all["ses-1"].Record.Applied)
	assert.Equal(r.t, "completed", all["ses-1"].Status)
	r.isClean()
}

// A guild that is gone, in the full rounds for an hour, gets everything once it is back, and
// nobody has to run a command.
func TestGuildGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	r.inRealTime()
	g, err := guild.Launch(guild.Options{State: r.path("guild")})
	require.NoError(t, err)
	t.Cleanup(g.Kill)
	require.NoError(t, g.Expect("ses-1"))
	g.Kill()
	r.Config.GuildToolURL = g.URL()
	r.endWhileReporting()
	assert.FileExists(t, r.path("dlq/ses-1.json"))
	r.lasts(time.Hour)
	require.NoError(t, g.Start())
	r.brought()
	all, err := g.Sessions()
	require.NoError(t, err)
	assert.Equal(t, 1, all["ses-1"].Record.Applied)
	assert.NoFileExists(t, r.path("dlq/ses-1.json"))
	r.applied(g)
}

// inRealTime has the session's guardian try as often as it does where hours are to run.
func (r *rig) inRealTime() {
	if long.Full() {
		r.Again = session.Defaults().Again
	}
}

// lasts lets a fault last for so long there, and otherwise not at all.
func (r *rig) lasts(d time.Duration) {
	if long.Full() {
		time.Sleep(d)
	}
}

// brought waits until the guardian has brought everything and ended.
func (r *rig) brought() {
	over := time.Now()
	r.alone()
	r.t.Logf("everything has arrived %v after the fault was over", time.Since(over).Round(time.Millisecond))
}

// endWhileReporting hosts the session, and has its host try no longer to report the end.
func (r *rig) endWhileReporting() {
	r.t.Helper()
	cmd := r.command()
	require.NoError(r.t, cmd.Start())
	r.until("the report is kept", func() bool {
		s, err := r.folder().Read()
		return err == nil && s.EndedAt != nil
	})
	require.NoError(r.t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(r.t, cmd.Wait())
	assert.Equal(r.t, folder.DeadLettered, r.state().TerminalReport.State)
}

// A host that has nothing left to do but to tell a guild that is gone ends when it is
// asked to: its guardian brings the report.
func TestSignalledWhileReporting(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello")
	for _, on := range []string{"running", "record"} {
		r.guild.Break(guild.Fault{On: on, Do: guild.Hang, Times: -1})
	}
	r.endWhileReporting()
	assert.Contains(t, r.state().RunningReport.Reason, "the session ended before the guild had answered")
	assert.Equal(t, folder.Completed, r.state().Status)
	assert.FileExists(t, r.path("dlq/ses-1.json"))
	r.guild.Mend()
	r.alone() // its guardian has brought it
	r.isClean()
}
