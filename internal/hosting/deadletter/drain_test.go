package deadletter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	testguild "heartbeat/internal/testing/guild"
)

func TestDrainSendsRunningReportsFirst(t *testing.T) {
	g, url := newGuild(t, testguild.Options{Strict: true})
	db, box := newBox(t)
	for _, id := range []string{"ses-b", "ses-a"} {
		g.Expect(id)
		require.NoError(t, box.PutRecord(recordOf(id)))
		require.NoError(t, box.PutRunning(runningOf(id)))
	}
	outcomes, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Equal(t, []string{"running ses-b sent", "running ses-a sent", "record ses-b sent", "record ses-a sent"}, whats(outcomes))
	for _, id := range []string{"ses-b", "ses-a"} {
		s, _ := g.Session(id)
		assert.Equal(t, 1, s.Running.Applied)
		assert.Equal(t, 1, s.Record.Applied)
	}
	nothingLeft(t, filepath.Dir(db))
	outcomes, err = Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Empty(t, outcomes)
}

func TestDrainWithoutAnyLetter(t *testing.T) {
	db, box := newBox(t)
	outcomes, err := Drain(t.Context(), Options{DB: db, Cwds: []string{t.TempDir(), "/nowhere"}})
	require.NoError(t, err)
	assert.Empty(t, outcomes)
	assert.NoDirExists(t, box.Dir())
}

func TestALetterThatWasRefusedIsNotSentAgain(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 400})
	drain := func(again bool) []string {
		outcomes, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url), Refused: again})
		require.NoError(t, err)
		return whats(outcomes)
	}
	refused := []string{"record ses-1 refused"}
	assert.Equal(t, refused, drain(false))
	outcomes, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Equal(t, refused, whats(outcomes), "the guild would take it now")
	assert.Contains(t, outcomes[0].Why, `HTTP 400: {"error":"fault 400"}`)
	assert.Equal(t, []string{"record ses-1 sent"}, drain(true))

	require.NoError(t, box.PutRecord(recordOf("ses-2")))
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 400})
	assert.Equal(t, []string{"record ses-2 refused"}, drain(false))
	other := recordOf("ses-2")
	other.Error = "another letter"
	require.NoError(t, box.PutRecord(other))
	assert.Equal(t, []string{"record ses-2 sent"}, drain(false))

	require.NoError(t, box.PutRecord(recordOf("ses-3")))
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 400})
	assert.Equal(t, []string{"record ses-3 refused"}, drain(false))
	require.NoError(t, os.Remove(box.Path(Record, "ses-3")), "the guild of the babysitter drained it")
	assert.Empty(t, drain(false))
	marks, err := os.ReadDir(filepath.Join(box.Dir(), "refused"))
	require.NoError(t, err)
	assert.Empty(t, marks)
}

func TestARefusedRunningReportGoesWithItsRecord(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	require.NoError(t, box.PutRunning(runningOf("ses-1")))
	g.Break(testguild.Fault{On: "running", Do: testguild.Answer, Status: 400})
	outcomes, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Equal(t, []string{"running ses-1 refused", "record ses-1 sent"}, whats(outcomes))
	nothingLeft(t, filepath.Dir(db))
}

func TestAGuildThatIsAwayIsWaitedForOnce(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	for _, id := range []string{"ses-1", "ses-2", "ses-3"} {
		require.NoError(t, box.PutRecord(recordOf(id)))
	}
	g.Break(testguild.Fault{Do: testguild.Reset, Times: -1})
	clock := &testguild.Clock{}
	outcomes, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url), Clock: clock})
	require.NoError(t, err)
	assert.Equal(t, []string{"record ses-1 left", "record ses-2 left", "record ses-3 left"}, whats(outcomes))
	assert.Len(t, clock.Seconds(), 10)

	g.Mend()
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 500, Times: 12})
	clock = &testguild.Clock{}
	outcomes, err = Drain(t.Context(), Options{DB: db, GuildURL: at(url), Clock: clock})
	require.NoError(t, err)
	assert.Equal(t, []string{"record ses-1 left", "record ses-2 left", "record ses-3 sent"}, whats(outcomes))
	assert.Len(t, clock.Seconds(), 10)
}

func TestLettersThatAreNotSent(t *testing.T) {
	_, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	for _, id := range []string{"busy", "unknown", "nonsense"} {
		require.NoError(t, box.PutRecord(recordOf(id)))
	}
	write(t, filepath.Join(box.Dir(), "cut.json"), `{"sessionId":"cut","status":"failed"`)
	write(t, filepath.Join(box.Dir(), "other.json"), `{"sessionId":"cut","status":"failed"}`)
	write(t, filepath.Join(box.Dir(), "running", "ended.json"), `{"sessionId":"cut"}`)
	require.NoError(t, os.Mkdir(filepath.Join(box.Dir(), "folder.json"), 0o700))
	write(t, filepath.Join(box.Dir(), "notes.txt"), `no letter`)
	outcomes, err := Drain(t.Context(), Options{
		DB:   db,
		Busy: func(id string) bool { return id == "busy" },
		GuildURL: func(id string) string {
			return map[string]string{"busy": url, "nonsense": "nonsense"}[id]
		},
	})
	require.NoError(t, err)
	why := map[string]string{}
	for _, o := range outcomes {
		why[filepath.Base(o.Path)] = o.What + ": " + o.Why
	}
	for name, want := range map[string]string{
		"busy.json":     "left: the session's host runs",
		"unknown.json":  "left: the address of the session's guild is not known",
		"nonsense.json": `left: call the guild at "nonsense"`,
		"cut.json":      "bad: read the report, byte 36: it ends early",
		"other.json":    `bad: the file is named after another session than "cut"`,
		"ended.json":    `bad: the file is named after another session than "cut"`,
		"folder.json":   "bad: open ",
	} {
		assert.Contains(t, why[name], want, name)
	}
	assert.Len(t, why, 7)
}

func TestManyDrainersAtOnce(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	const letters, drainers = 20, 5
	for i := range letters {
		require.NoError(t, box.PutRecord(recordOf("ses-"+string(rune('a'+i)))))
	}
	var wait sync.WaitGroup
	for range drainers {
		wait.Go(func() {
			for {
				_, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
				if !errors.Is(err, ErrDraining) {
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	wait.Wait()
	for i := range letters {
		s, _ := g.Session("ses-" + string(rune('a'+i)))
		assert.Equal(t, testguild.Count{Applied: 1}, s.Record)
	}
	nothingLeft(t, filepath.Dir(db))
}

func TestADrainIsNotWaitedFor(t *testing.T) {
	db, box := newBox(t)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	lock, err := disk.AcquireLock(t.Context(), filepath.Join(box.Dir(), ".drain-lock"), time.Minute)
	require.NoError(t, err)
	_, err = Drain(t.Context(), Options{DB: db})
	require.ErrorIs(t, err, ErrDraining)
	require.NoError(t, lock.Release())
}

func TestADrainStopsWithItsContext(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	db, box := newBox(t)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	require.NoError(t, box.PutRecord(recordOf("ses-2")))
	g.Break(testguild.Fault{Do: testguild.Reset, Times: -1})
	ctx, cancel := context.WithCancel(t.Context())
	clock := &testguild.Clock{Woken: func(int) { cancel() }}
	outcomes, err := Drain(ctx, Options{DB: db, GuildURL: at(url), Clock: clock})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"record ses-1 left"}, whats(outcomes))
}

// TestALetterThatWasReplacedWhileItWasSent stays: nobody sent the new one.
func TestALetterThatWasReplacedWhileItWasSent(t *testing.T) {
	_, url := newGuild(t, testguild.Options{})
	_, box := newBox(t)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	l := Letter{Kind: Record, SessionID: "ses-1", Path: box.Path(Record, "ses-1")}
	f, err := l.open()
	require.NoError(t, err)
	require.NoError(t, box.PutRecord(recordOf("ses-1")))
	require.NoError(t, l.remove(f))
	assert.FileExists(t, l.Path)
	require.NoError(t, f.Close())
	_, err = box.Deliver(t.Context(), newClient(t, url, "ses-1", nil), Record, "ses-1")
	require.NoError(t, err)
	assert.NoFileExists(t, l.Path)
}

// TestTheBabysittersGuildTakesWhatItRefused: it has cancelled the session, so the
// session may report nothing more. At its next start it drains the folder itself.
func TestTheBabysittersGuildTakesWhatItRefused(t *testing.T) {
	db, box := newBox(t)
	state := filepath.Join(t.TempDir(), "state")
	options := testguild.Options{State: state, Strict: true, DeadLetters: box.Dir()}
	g, url := newGuild(t, options)
	g.Expect("ses-1") // and nothing runs: the running report is refused below
	g.Break(testguild.Fault{Do: testguild.Answer, Status: 403, Times: -1})
	require.NoError(t, box.PutRunning(runningOf("ses-1")))
	cancelled := recordOf("ses-1")
	cancelled.Status, cancelled.Error = "cancelled", "SIGTERM"
	require.NoError(t, box.PutRecord(cancelled))
	outcomes, err := Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Equal(t, []string{"running ses-1 refused", "record ses-1 refused"}, whats(outcomes))

	g, url = newGuild(t, options)
	s, _ := g.Session("ses-1")
	assert.Equal(t, "cancelled", s.Status)
	assert.Equal(t, 1, s.Record.Applied)
	assert.Zero(t, s.Running)
	outcomes, err = Drain(t.Context(), Options{DB: db, GuildURL: at(url)})
	require.NoError(t, err)
	assert.Empty(t, outcomes, "the running report is of no use now")
	nothingLeft(t, filepath.Dir(db))
	marks, err := filepath.Glob(filepath.Join(box.Dir(), "refused", "*"))
	require.NoError(t, err)
	assert.Empty(t, marks)
}
