package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
)

// failing stands in for a test that is meant to fail.
type failing struct {
	testing.TB
	said   strings.Builder
	failed bool
}

func (f *failing) Errorf(format string, args ...any) {
	f.failed = true
	fmt.Fprintf(&f.said, format+"\n", args...)
}
func (f *failing) Fatal(args ...any)                 { f.Errorf("%s", fmt.Sprint(args...)); panic(f) }
func (f *failing) Fatalf(format string, args ...any) { f.Errorf(format, args...); panic(f) }
func (f *failing) Logf(format string, args ...any)   { fmt.Fprintf(&f.said, format+"\n", args...) }
func (f *failing) Failed() bool                      { return f.failed }

// sayFatal runs f, which must end its test, and returns what it said.
func sayFatal(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	tb := &failing{TB: t}
	assert.PanicsWithValue(t, tb, func() { f(tb) })
	return tb.said.String()
}

func TestVerifyFindsUnannouncedChanges(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"changed", "removed"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))
	}
	rec := Record(t, dir, func() {
		require.NoError(t, disk.Publish(filepath.Join(dir, "fine"), []byte("x"), true))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "changed"), []byte("new"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "made"), nil, 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "removed")))
	})
	said := sayFatal(t, func(tb testing.TB) { rec.verify(tb) })
	assert.Contains(t, said, `changed: the announced calls leave 3 bytes "old"`)
	assert.Contains(t, said, `made: the announced calls leave nothing, and the run left 0 bytes ""`)
	assert.Contains(t, said, `removed: the announced calls leave 3 bytes "old"`)
	assert.Contains(t, said, "otherwise than through package disk")
	assert.NotContains(t, said, "fine")
}

// TestFailing is run by the next test alone, and is meant to fail.
func TestFailing(t *testing.T) {
	how := os.Getenv("DISKTEST_FAIL")
	if how == "" {
		t.Skip("only TestWhatFailuresSay runs this")
	}
	dir := t.TempDir()
	rec := Record(t, dir, func() {
		assert.NoError(t, disk.Publish(filepath.Join(dir, "f"), []byte("x"), true))
		if how == "verify" {
			assert.NoError(t, os.Remove(filepath.Join(dir, "f")))
		}
	})
	EveryPowerLoss(t, rec, 42, 10, func(t *testing.T, c Crash) {
		assert.NotEqual(t, 3, c.Made)
		assert.NotEqual(t, len(c.Ops), c.Made)
	})
}

func TestWhatFailuresSay(t *testing.T) {
	for how, want := range map[string][]string{
		"check": {
			"--- FAIL: TestFailing/003-write-f.tmp-worst", "--- FAIL: TestFailing/003-write-f.tmp-lengths",
			"seed 42; the power loss left:", `f.tmp: 1 bytes "x"`, `f.tmp: 1 bytes "\x00"`, "stopping after 5 failures",
		},
		"verify": {`f: the announced calls leave 1 bytes "x"`, "and the run left nothing"},
	} {
		r := Command{Args: []string{"-test.run=^TestFailing$"}, Env: []string{"DISKTEST_FAIL=" + how}}.Run(t)
		assert.Equal(t, 1, r.ExitCode)
		for _, text := range want {
			assert.Contains(t, r.Stdout, text)
		}
	}
}

func TestOneObserver(t *testing.T) {
	Observe(t, (&Recorder{}).Observe)
	said := sayFatal(t, func(tb testing.TB) { Record(tb, t.TempDir(), func() {}) })
	assert.Contains(t, said, "another observer is at work")
}

func TestRecordNeedsCalls(t *testing.T) {
	s := Scenario{Run: func(string) Command { return Command{Name: "exit"} }}
	assert.Contains(t, sayFatal(t, func(tb testing.TB) { s.Record(tb) }), "exit status 7")
	s.Want = func(t testing.TB, r Result) { assert.Equal(t, 7, r.ExitCode) }
	assert.Contains(t, sayFatal(t, func(tb testing.TB) { s.Record(tb) }), "made no call")
}

func TestExplain(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), []byte("a\x00"), 0o600))
	m := mixture{"worst", Snapshot(t, dir)}
	tb := &failing{TB: t}
	m.explain(tb, 42)
	assert.Empty(t, tb.said.String(), "a test that passed needs no explanation")
	tb.failed = true
	m.explain(tb, 42)
	assert.Contains(t, tb.said.String(), "seed 42")
	assert.Contains(t, tb.said.String(), `log: 2 bytes "a\x00"`)
}

func TestLineOfChildThatEnded(t *testing.T) {
	r := Command{Name: "exit"}.Start(t)
	assert.Contains(t, sayFatal(t, func(tb testing.TB) { r.Line(tb) }), "child exit ended (exit status 7)")
}
