package folder_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/testing/crash"
)

func TestWriteRead(t *testing.T) {
	f, lock := claimed(t)
	cost := 0.25
	self := folder.ProcessOf(os.Getpid())
	want := folder.State{
		Config: folder.Config{
			Version: 1, SessionID: id, GuildToolURL: "http://127.0.0.1:7471", Metadata: json.RawMessage(`{"a":"<&>"}`),
			Extra: map[string]json.RawMessage{"more": json.RawMessage(`[1]`)}, HostedAt: longAgo,
		},
		Facts:   folder.Facts{Host: &self},
		Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.RateLimited, CostUSD: &cost, Output: "done\u2028<>"}, Exit: &folder.Exit{Code: 1, Signal: "SIGTERM", At: longAgo}},
	}
	require.NoError(t, lock.Write(&want))
	got, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, want.Host, got.Host)
	wantJSON, err := json.Marshal(want)
	require.NoError(t, err)
	gotJSON, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(wantJSON), string(gotJSON))
	assert.JSONEq(t, `{"a":"<&>"}`, string(got.Metadata))
	assert.NoFileExists(t, f.StatePath())
}

// Where an older release has its record, that counts until somebody takes the lock.
func TestRecordOfAnOlderRelease(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Write(ended()))
	require.NoError(t, lock.Release())
	require.NoError(t, os.WriteFile(f.StatePath(), []byte(
		`{"version":1,"sessionId":"`+id+`","status":"running","later":{"b":[1,2]},"messages":7,"dbPath":"`+f.DB+`"}`), 0o600))
	for range 2 {
		s, err := f.Read()
		require.NoError(t, err)
		assert.Equal(t, folder.Running, s.Status)
		assert.Equal(t, int64(7), s.Messages)
		lock, err := f.Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, lock.Release())
		assert.NoFileExists(t, f.StatePath())
	}
}

func TestDamagedRecordOfAnOlderRelease(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Release())
	for name, text := range map[string]string{
		"empty":      "",
		"half":       `{"version":1,"sess`,
		"an array":   `[1]`,
		"no members": `{}`,
		"another's":  `{"version":1,"sessionId":"other","status":"running"}`,
		"newer":      `{"version":2,"sessionId":"` + id + `","status":"running"}`,
		"no status":  `{"version":1,"sessionId":"` + id + `"}`,
		"odd status": `{"version":1,"sessionId":"` + id + `","status":"dead"}`,
		"mistyped":   `{"version":1,"sessionId":"` + id + `","status":"running","messages":"many"}`,
	} {
		require.NoError(t, os.WriteFile(f.StatePath(), []byte(text), 0o600))
		_, err := f.Read()
		require.Error(t, err, name)
		assert.ErrorContains(t, err, f.StatePath(), name)
		assert.NotErrorIs(t, err, fs.ErrNotExist, name)
		_, err = f.Lock(t.Context())
		require.ErrorContains(t, err, f.StatePath(), name)
		assert.FileExists(t, f.StatePath())
	}
	require.NoError(t, os.Truncate(f.StatePath(), 1<<40))
	_, err := f.Read()
	require.ErrorIs(t, err, disk.ErrTooLarge)
}

func TestDamagedRecord(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Write(ended()))
	for _, parts := range []store.Parts{
		{"facts": "{"}, {"facts": `{"messages":"many"}`}, {"facts": "{}", "outcome": `{"status":"dead"}`}, {"outcome": `{"status":"failed"}`, "config": `{"sessionId":"other"}`},
	} {
		_, err := lock.DB.Put(t.Context(), id, parts, false)
		require.NoError(t, err)
		_, err = f.Read()
		require.ErrorContains(t, err, lock.DB.Path())
		assert.NotErrorIs(t, err, fs.ErrNotExist)
	}
}

// Another database may have taken the place of that which has most of the record.
func TestRecordIsWholeAgain(t *testing.T) {
	f, lock := claimed(t)
	s := ended()
	s.Cwd = "/work"
	require.NoError(t, lock.Write(s))
	require.NoError(t, lock.DB.Forget(t.Context(), id))
	s.Messages++
	require.NoError(t, lock.Write(s))
	got, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, "/work", got.Cwd)
	assert.Equal(t, int64(1), got.Messages)
}

func TestWriteRefuses(t *testing.T) {
	f, lock := claimed(t)
	require.ErrorContains(t, lock.Write(&folder.State{Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Dead}}}), `"dead" is no status of a session`)
	require.ErrorContains(t, lock.Write(&folder.State{}), "no status")
	big := ended()
	big.Metadata = json.RawMessage(`"` + strings.Repeat("x", 80<<20) + `"`)
	require.ErrorIs(t, lock.Write(big), disk.ErrTooLarge)
	_, err := f.Read()
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The record says what the guild's table lacked at the end; that is over once somebody has sent it.
func TestStoreTroubleIsOver(t *testing.T) {
	f, lock := claimed(t)
	for trouble, waiting := range map[string]int64{"": 1, "the row is too large": 0} {
		s := ended()
		s.Waiting, s.Store = waiting, "the row is too large"
		require.NoError(t, lock.Write(s))
		got, err := f.Read()
		require.NoError(t, err)
		assert.Equal(t, trouble, got.Store)
	}
}

func TestViewWithoutRecord(t *testing.T) {
	f, lock := claimed(t)
	v, err := f.View()
	require.NoError(t, err)
	assert.Equal(t, folder.Pending, v.Status, "its host has only begun")
	assert.Equal(t, os.Getpid(), v.Host)
	require.NoError(t, lock.Release())
	v, err = f.View()
	require.NoError(t, err)
	none := &folder.State{Config: folder.Config{SessionID: f.ID, DB: f.DB}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Pending}}}
	assert.Equal(t, folder.View{Folder: f, State: none, Status: folder.Dead}, v)
}

func TestViewOfEnded(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Write(ended()))
	for range 2 {
		v, err := f.View()
		require.NoError(t, err)
		assert.Equal(t, folder.Completed, v.Status)
		require.NoError(t, lock.Release())
	}
}

func TestUnfinished(t *testing.T) {
	dead := folder.Process{PID: 1 << 22, Start: 1}
	due := folder.Report{State: folder.Waiting}
	for name, c := range map[string]struct {
		state folder.State
		want  bool
	}{
		"killed at work":           {folder.State{Facts: folder.Facts{Host: &dead}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Running}}}, true},
		"killed at its report":     {folder.State{Facts: folder.Facts{Host: &dead, TerminalReport: due}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Completed}}}, true},
		"killed before its report": {folder.State{Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Completed}}}, true},
		"killed at the clean-up":   {folder.State{Facts: folder.Facts{Host: &dead, TerminalReport: folder.Report{State: folder.Delivered}}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Completed}}}, true},
		"done":                     {folder.State{Facts: folder.Facts{TerminalReport: folder.Report{State: folder.DeadLettered}}, Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Completed}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, lock := claimed(t)
			require.NoError(t, lock.Write(&c.state))
			v, err := f.View()
			require.NoError(t, err)
			assert.False(t, v.Unfinished(), "somebody works on it")
			require.NoError(t, lock.Release())
			v, err = f.View()
			require.NoError(t, err)
			assert.Equal(t, c.want, v.Unfinished())
		})
	}
}

// Every member of the record has a row in the manual.
func TestStateIsInTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/advanced/host.md")
	require.NoError(t, err)
	_, record, found := strings.Cut(string(manual), "\n## State record\n")
	require.True(t, found)
	record, _, _ = strings.Cut(record, "\n## ")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[folder.State]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			assert.Contains(t, record, "`"+name+"`")
		}
	}
}

// A record is the old one or the new one, and whatever was promised stays.
func TestStateSurvives(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) { require.NoError(t, at(dir).Make()) },
		Run:   func(dir string) crash.Command { return crash.Command{Name: "host", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		f := at(c.Dir)
		lock, err := f.Claim(t.Context())
		require.NoError(t, err, "nobody holds it any more")
		got, err := f.Read()
		switch {
		case len(c.Promised) == 0 && err != nil:
			require.ErrorIs(t, err, fs.ErrNotExist)
		case len(c.Promised) == 0:
			assert.Contains(t, []folder.Status{folder.Pending, folder.Running}, got.Status)
		default:
			require.NoError(t, err)
			if c.Promised[len(c.Promised)-1] == "running" {
				assert.Equal(t, folder.Running, got.Status)
			}
		}
		require.NoError(t, lock.Write(ended()), "what is left is no hindrance")
		require.NoError(t, lock.Release())
		require.NoError(t, purge(c.Dir))
		assert.NoDirExists(t, f.Dir())
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
}

// BenchmarkWrite is what a change of the record costs.
func BenchmarkWrite(b *testing.B) {
	f := at(b.TempDir())
	lock, err := f.Claim(b.Context())
	require.NoError(b, err)
	defer lock.Release()
	s := ended()
	s.Output = strings.Repeat("x", 4096)
	for b.Loop() {
		s.Messages++
		require.NoError(b, lock.Write(s))
	}
}

func TestStaysInItsFolder(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Write(ended()))
	names, err := filepath.Glob(filepath.Join(filepath.Dir(f.DB), "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{folder.Root(f.DB)}, names)
}

// Older releases keep in a file what a given inbox had counted before.
func TestFormerBefore(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, lock.Write(&folder.State{Outcome: folder.Outcome{Summary: folder.Summary{Status: folder.Running}}}))
	require.NoError(t, os.WriteFile(filepath.Join(f.Dir(), "inbox-mark.json"), []byte(`{"answered":3,"dead_letters":2,"dropped":1,"seq":9}`), 0o600))
	s, err := lock.Read()
	require.NoError(t, err)
	assert.Equal(t, &folder.Before{Answered: 3, DeadLetters: 2, Dropped: 1, Seq: 9}, s.Before)
	require.NoError(t, lock.Release())
}
