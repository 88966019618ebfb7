package guild

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/testing/crash"
	testguild "heartbeat/internal/testing/guild"
)

func TestDrainSendsRunningReportsFirst(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{Strict: true})
	b := newBox(t)
	for _, id := range []string{"ses-b", "ses-a"} {
		g.Expect(id)
		b.record(id, nil)
		b.running(id)
		time.Sleep(2 * time.Millisecond) // they have the times of different milliseconds
	}
	assert.Equal(t, []string{"running ses-b sent", "running ses-a sent", "record ses-b sent", "record ses-a sent"}, b.drain(DrainOptions{GuildURL: at(url)}))
	for _, id := range []string{"ses-b", "ses-a"} {
		s, _ := g.Session(id)
		assert.Equal(t, 1, s.Running.Applied)
		assert.Equal(t, 1, s.Record.Applied)
		assert.Equal(t, 1, s.Messages)
	}
	b.nothingLeft()
	assert.Empty(t, b.drain(DrainOptions{GuildURL: at(url)}))
}

func TestDrainWithoutAnyReport(t *testing.T) {
	dir := t.TempDir()
	outcomes, err := Drain(t.Context(), DrainOptions{DB: filepath.Join(dir, "nexus.db")})
	require.NoError(t, err)
	assert.Empty(t, outcomes)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAReportThatWasRefusedIsNotSentAgain(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{})
	b := newBox(t)
	b.record("ses-1", nil)
	b.running("ses-1")
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 400, Times: 2})
	refused := []string{"running ses-1 refused", "record ses-1 refused"}
	assert.Equal(t, refused, b.drain(DrainOptions{GuildURL: at(url)}))
	assert.FileExists(t, b.Path("ses-1"))
	outcomes, err := Drain(t.Context(), DrainOptions{DB: b.guild, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Equal(t, refused, whats(outcomes), "the guild would take it now")
	assert.Contains(t, outcomes[1].Why, `, and --refused sends it again: HTTP 400: {"error":"fault 400"}`)
	assert.Equal(t, b.Path("ses-1"), outcomes[1].Path)
	assert.Equal(t, 400, outcomes[1].Refused.Status)
	assert.Equal(t, []string{"running ses-1 sent", "record ses-1 sent"}, b.drain(DrainOptions{GuildURL: at(url), Refused: true}))
	b.nothingLeft()
}

// The file of a record that waits holds the whole record; who takes it away has told the
// guild.
func TestTheFileIsTaken(t *testing.T) {
	b := newBox(t)
	b.record("ses-1", func(r *Record) { r.Status, r.Error = folder.Failed, "why" })
	_, err := b.Deliver(t.Context(), b.client("http://127.0.0.1:1", "ses-1"), store.Record, "ses-1")
	var away *Unreachable
	require.ErrorAs(t, err, &away)
	text, err := os.ReadFile(b.Path("ses-1"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"sessionId":"ses-1","status":"failed","error":"why","exitCode":0,"transcript":[{"type":"user"}]}`, string(text))
	r, kept, err := b.Report(t.Context(), "ses-1")
	require.NoError(t, err)
	assert.True(t, kept && r.State == store.Waiting)
	require.NoError(t, os.Remove(b.Path("ses-1")))
	assert.Equal(t, []string{"record ses-1 sent"}, b.drain(DrainOptions{}), "no guild has to be asked")
	b.nothingLeft()
}

// A guild that has cancelled the session refuses its reports. At its next start it
// drains the folder itself.
func TestTheBabysittersGuildTakesWhatItRefused(t *testing.T) {
	b := newBox(t)
	options := testguild.Options{State: filepath.Join(t.TempDir(), "state"), Strict: true, DeadLetters: b.dir}
	g, url := emptyGuild(t, options)
	g.Expect("ses-1")
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 403, Times: -1})
	b.running("ses-1")
	b.record("ses-1", func(r *Record) { r.Status, r.Error = "cancelled", "SIGTERM" })
	assert.Equal(t, []string{"running ses-1 refused", "record ses-1 refused"}, b.drain(DrainOptions{GuildURL: at(url)}))

	g, url = emptyGuild(t, options)
	s, _ := g.Session("ses-1")
	assert.Equal(t, "cancelled", s.Status)
	assert.Equal(t, 1, s.Record.Applied)
	assert.Equal(t, []string{"running ses-1 refused", "record ses-1 sent"}, b.drain(DrainOptions{GuildURL: at(url)}))
	s, _ = g.Session("ses-1")
	assert.Equal(t, 1, s.Record.Applied)
	b.nothingLeft()
}

func TestAGuildThatIsAwayIsWaitedForOnce(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{})
	b := newBox(t)
	for _, id := range []string{"ses-1", "ses-2", "ses-3"} {
		b.record(id, nil)
		time.Sleep(2 * time.Millisecond) // they have the times of different milliseconds
	}
	g.Break(testguild.Fault{Do: testguild.Reset, Times: -1})
	clock := &testguild.Clock{}
	assert.Equal(t, []string{"record ses-1 left", "record ses-2 left", "record ses-3 left"}, b.drain(DrainOptions{GuildURL: at(url), Clock: clock}))
	assert.Len(t, clock.Seconds(), 10)
	g.Mend()
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 500, Times: 12})
	clock = &testguild.Clock{}
	assert.Equal(t, []string{"record ses-1 left", "record ses-2 left", "record ses-3 sent"}, b.drain(DrainOptions{GuildURL: at(url), Clock: clock}))
	assert.Len(t, clock.Seconds(), 10)
}

// Files of the babysitter and of older releases are taken over; what is none stays.
func TestAdopt(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{Cancelled: false})
	b := newBox(t)
	g.Expect("old")
	write(t, filepath.Join(b.dir, "old.json"), `{"sessionId":"old","status":"cancelled","error":"SIGTERM","transcript":[1,2]}`)
	write(t, filepath.Join(b.dir, "running", "old.json"), `{"sessionId":"old","cancelHandle":{"kind":"local-pgid","pgid":7}}`)
	write(t, filepath.Join(b.dir, "refused", "record-old.mark"), `{}`)
	write(t, filepath.Join(b.dir, "cut.json"), `{"sessionId":"cut","status":"failed"`)
	write(t, filepath.Join(b.dir, "other.json"), `{"sessionId":"cut","status":"failed"}`)
	write(t, filepath.Join(b.dir, "..", "secret"), `{"sessionId":"link","status":"failed"}`)
	require.NoError(t, os.Symlink("../secret", filepath.Join(b.dir, "link.json")))
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "folder.json"), 0o700))
	write(t, filepath.Join(b.dir, "notes.txt"), `no report`)

	outcomes, err := Drain(t.Context(), DrainOptions{DB: b.guild})
	require.NoError(t, err)
	why := map[string]string{}
	for _, o := range outcomes {
		why[fmt.Sprint(o.Kind, filepath.Base(o.Path))] = o.What + ": " + o.Why
	}
	for name, want := range map[string]string{
		"running.":       "left: the address of the session's guild is not known",
		"recordold.json": "left: the address of the session's guild is not known",
		"cut.json":       "bad: it is no report",
		"other.json":     `bad: the file is about session "cut", and its name is not that session's`,
		"link.json":      "bad: ",
		"folder.json":    "bad: ",
	} {
		assert.Contains(t, why[name], want, name)
	}
	assert.Len(t, why, 6)
	assert.NoDirExists(t, filepath.Join(b.dir, "refused"))
	assert.NoFileExists(t, filepath.Join(b.dir, "running", "old.json"))

	_, err = Drain(t.Context(), DrainOptions{DB: b.guild, GuildURL: at(url)})
	require.NoError(t, err)
	s, _ := g.Session("old")
	assert.Equal(t, "failed", s.Status)
	assert.JSONEq(t, `"cancelled: SIGTERM"`, string(s.Report["error"]))
	assert.Equal(t, 2, s.Messages)
	assert.NoFileExists(t, filepath.Join(b.dir, "old.json"))
	assert.FileExists(t, filepath.Join(b.dir, "cut.json"))
}

func TestReportsThatAreNotSent(t *testing.T) {
	_, url := emptyGuild(t, testguild.Options{})
	b := newBox(t)
	for _, id := range []string{"busy", "nonsense", "unknown"} {
		b.record(id, nil)
	}
	outcomes, err := Drain(t.Context(), DrainOptions{
		DB:       b.guild,
		Busy:     func(id string) bool { return id == "busy" },
		GuildURL: func(id string) string { return map[string]string{"busy": url, "nonsense": "nonsense"}[id] },
	})
	require.NoError(t, err)
	why := map[string]string{}
	for _, o := range outcomes {
		why[o.SessionID] = o.What + ": " + o.Why
	}
	assert.Contains(t, why["busy"], "left: the session's host runs")
	assert.Contains(t, why["nonsense"], `left: call the guild at "nonsense"`)
	assert.Contains(t, why["unknown"], "left: the address of the session's guild is not known")
}

func TestManyDrainersAtOnce(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{})
	b := newBox(t)
	const reports, drainers = 20, 5
	for i := range reports {
		b.record("ses-"+string(rune('a'+i)), nil)
	}
	var wait sync.WaitGroup
	for range drainers {
		wait.Go(func() {
			for {
				_, err := Drain(t.Context(), DrainOptions{DB: b.guild, GuildURL: at(url)})
				if !errors.Is(err, ErrDraining) {
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	wait.Wait()
	for i := range reports {
		s, _ := g.Session("ses-" + string(rune('a'+i)))
		assert.Equal(t, testguild.Count{Applied: 1}, s.Record)
	}
	b.nothingLeft()
	lock, err := disk.AcquireLock(t.Context(), filepath.Join(folder.Root(b.guild), "drain-lock"), time.Minute)
	require.NoError(t, err)
	_, err = Drain(t.Context(), DrainOptions{DB: b.guild})
	require.ErrorIs(t, err, ErrDraining)
	require.NoError(t, lock.Release())
}

func TestADrainStopsWithItsContext(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{})
	b := newBox(t)
	b.record("ses-1", nil)
	b.record("ses-2", nil)
	g.Break(testguild.Fault{Do: testguild.Reset, Times: -1})
	ctx, cancel := context.WithCancel(t.Context())
	clock := &testguild.Clock{Woken: func(int) { cancel() }}
	outcomes, err := Drain(ctx, DrainOptions{DB: b.guild, GuildURL: at(url), Clock: clock})
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, outcomes, 1)
	assert.FileExists(t, b.Path(outcomes[0].SessionID), "it is written all the same")
}

func TestNoReport(t *testing.T) {
	b := newBox(t)
	_, err := b.Deliver(t.Context(), b.client("http://127.0.0.1:1", "ses-1"), store.Record, "ses-1")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// end delivers the record of a session beside a database (argument 2) to a guild
// (argument 1).
func end() int {
	box := OutboxBeside(filepath.Join(os.Args[2], "nexus.db"))
	defer box.Close()
	client, err := New(Options{URL: os.Args[1], SessionID: "ses-1", Once: true})
	if err != nil {
		return 1
	}
	var refused *Refused
	if _, err = box.Deliver(context.Background(), client, store.Record, "ses-1"); !errors.As(err, &refused) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Whoever writes a record's file may be killed at each call: the guild gets the record
// once, and no file is left.
func TestKilledAtEachCall(t *testing.T) {
	g, url := emptyGuild(t, testguild.Options{})
	s := crash.Scenario{
		Setup: func(tb testing.TB, dir string) {
			require.NoError(tb, folder.MakeRoot(filepath.Join(dir, "nexus.db")))
			b := OutboxBeside(filepath.Join(dir, "nexus.db"))
			defer b.Close()
			_, _, err := b.Decide(context.Background(), &Record{Summary: folder.Summary{Status: folder.Failed}, SessionID: "ses-1"}, "", 0, nil)
			require.NoError(tb, err)
			g.Break(testguild.Fault{On: "record", Do: testguild.Answer, Status: 400, Times: -1})
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "end", Args: []string{url, dir}} },
	}
	s.EveryKill(t, func(t *testing.T, c crash.Crash) {
		b := &box{OutboxBeside(filepath.Join(c.Dir, "nexus.db")), t, filepath.Join(c.Dir, "nexus.db")}
		defer b.Close()
		g.Mend()
		b.drain(DrainOptions{GuildURL: at(url), Refused: true})
		b.nothingLeft()
		got, _ := g.Session("ses-1")
		assert.Equal(t, "failed", got.Status)
		assert.Equal(t, 1, got.Record.Applied)
	})
}

// A folder with more files than one pass looks at is no success.
func TestMoreFilesThanAreLookedAt(t *testing.T) {
	b := newBox(t)
	for i := range maxReports + 1 {
		write(t, filepath.Join(b.dir, fmt.Sprint(i)), "")
	}
	_, err := Drain(t.Context(), DrainOptions{DB: b.guild})
	require.ErrorContains(t, err, "holds more than 10000 files, and the rest was not read: run heartbeat-host drain-dlq --once until it is")
}
