package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/effect"
)

func TestDirectory(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Dir(w.Inbox)
	w.says("directory", "ok mode 0700")
	require.NoError(t, os.Chmod(dir, 0o777))
	w.says("directory", "warn instructs the agent")
	require.NoError(t, os.Remove(dir))
	w.says("directory", "fail does not exist")
	w.write(dir, "", 0o600)
	w.says("directory", "fail is not a directory")
	w.Inbox = filepath.Join(dir, "deeper", "inbox.jsonl")
	w.says("directory", "fail could not be looked at")
}

func TestDirectoryRights(t *testing.T) {
	plainUser(t)
	w := newWorld(t)
	dir := filepath.Dir(w.Inbox)
	for _, mode := range []os.FileMode{0o500, 0o300, 0o600, 0} {
		require.NoError(t, os.Chmod(dir, mode))
		w.says("directory", "fail permission denied")
		assert.NotEmpty(t, Run(w.Input))
	}
	require.NoError(t, os.Chmod(dir, 0o700))
}

func TestInboxFile(t *testing.T) {
	w := newWorld(t)
	w.says("inbox", "ok is not there yet")
	w.write(w.Inbox, "one\n", 0o600)
	w.says("inbox", "ok is a regular file of 4 B")
	require.NoError(t, os.Chmod(w.Inbox, 0o666))
	w.says("inbox", "warn others may write")
	for name, make := range map[string]func(path string) error{
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		require.NoError(t, os.RemoveAll(w.Inbox), name)
		require.NoError(t, make(w.Inbox), name)
		w.says("inbox", "fail "+w.Inbox)
	}
}

func TestStateFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *world, path string)
		says string
	}{
		"as it should be": {func(w *world, path string) { w.write(path, "", 0o600) }, "ok 1 in"},
		"open to others":  {func(w *world, path string) { w.write(path, "", 0o644) }, "warn has mode 0644"},
		"a link":          {func(w *world, path string) { require.NoError(w.t, os.Symlink("x", path)) }, "fail is a symbolic link"},
		"a directory":     {func(w *world, path string) { require.NoError(w.t, os.Mkdir(path, 0o700)) }, "fail not a regular file"},
		"a FIFO":          {func(w *world, path string) { require.NoError(w.t, syscall.Mkfifo(path, 0o600)) }, "fail not a regular file"},
		"somebody else's": {func(w *world, path string) {
			w.write(path, "", 0o600)
			if os.Geteuid() != 0 {
				w.t.Skip("only root gives files away")
			}
			require.NoError(w.t, os.Chown(path, 12345, 12345))
		}, "fail it belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.make(w, w.file(".inbox-offset"))
			w.says("state-files", c.says)
		})
	}
}

func (w *world) file(name string) string { return filepath.Join(filepath.Dir(w.Inbox), name) }

func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	w.says("leftovers", "ok none")
	w.write(w.file(".inbox-journal.tmp"), "x", 0o600)
	w.write(w.file("mine.tmp"), "x", 0o600)
	w.says("leftovers", "ok none") // it may be a running hook's
	w.Now = time.Now().Add(time.Hour)
	w.says("leftovers", "warn .inbox-journal.tmp was left")
	require.NoError(t, os.Remove(w.file(".inbox-journal.tmp")))

	w.write(w.file(".dead-letter-0-abc.raw"), "x", 0o600)
	w.write(w.file(".dead-letter-9-def.raw"), "x", 0o600)
	w.says("leftovers", "warn .dead-letter-0-abc.raw is the copy", "warn .dead-letter-9-def.raw")
	w.write(w.file(".dead-letter.jsonl"), `{"raw_file":".dead-letter-0-abc.raw"}`+"\nnot JSON\n\n"+`{"raw_file":".dead-letter-9-def.raw"}`+"\n", 0o600)
	w.says("leftovers", "ok none")
	require.NoError(t, os.Remove(w.file(".dead-letter.jsonl")))
	require.NoError(t, syscall.Mkfifo(w.file(".dead-letter.jsonl"), 0o600))
	w.says("leftovers", "fail not a regular file")
	require.NoError(t, os.RemoveAll(filepath.Dir(w.Inbox)))
	w.says("leftovers")
}

func TestState(t *testing.T) {
	const delivery = `{"entry_id":"e","start_offset":0,"end_offset":4,"raw_line":"one","delivered_at":"2026-01-01T00:00:00Z"}`
	w := newWorld(t)
	w.says("state", "ok is valid")
	for file, contents := range map[string]map[string]string{
		".inbox-offset": {
			"12": "ok ", " 7\n": "ok ", "": "fail is no byte offset", "x": "fail is no byte offset", "-1": "fail is no byte offset",
			"99999999999999999999": "fail is no byte offset",
		},
		".in-flight":     {delivery: "ok ", "": "fail not valid: it is empty", "{": "fail not valid", "{}": "fail not valid", "[]": "fail not valid"},
		".inbox-journal": {"": "ok ", "\x00\x00": "ok ", "torn": "ok ", "a\nb\n": "fail no record in it is valid"},
	} {
		for content, says := range contents {
			w.write(w.file(file), content, 0o600)
			w.says("state", says)
		}
		require.NoError(t, os.Remove(w.file(file)))
	}
	require.NoError(t, os.Symlink("x", w.file(".inbox-offset")))
	w.says("state", "fail "+".inbox-offset")
}

// What the queue really writes is what these checks know.
func TestStateOfTheQueue(t *testing.T) {
	w := newWorld(t)
	box, err := inbox.Open(w.Inbox, inbox.Options{})
	require.NoError(t, err)
	_, err = box.Append(context.Background(), inbox.Message{Text: "one"}, 0)
	require.NoError(t, err)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	entry, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(entry, inbox.Recipient{SessionID: "s"})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())

	entries, err := os.ReadDir(filepath.Dir(w.Inbox))
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			assert.True(t, slices.Contains(inbox.StateNames(), e.Name()), e.Name())
		}
	}
	w.says("state", "ok is valid")
	w.says("inbox", "ok regular file")
	w.says("state-files", "ok 5 in")
	w.says("leftovers", "ok none")

	w.Inbox = filepath.Join(filepath.Dir(w.Inbox), "other.jsonl")
	w.says("state", "fail belongs to the inbox inbox.jsonl: give other.jsonl a directory of its own")
	require.NoError(t, os.Remove(w.file("inbox.jsonl")))
	w.says("state", "fail belongs to the inbox inbox.jsonl") // it has an entry in flight
}

func TestFileSystemIsAsked(t *testing.T) {
	w := newWorld(t)
	all := w.checks("file-system")
	require.NotEmpty(t, all)
	assert.NotContains(t, all[0].Evidence, "could not be looked at")
	w.Inbox = "/nowhere/inbox.jsonl"
	all = w.checks("file-system")
	require.Len(t, all, 1)
	assert.NotEqual(t, OK, all[0].State)
}

// What a killed command left of a long entry is told of once it is old, unless
// something names it.
func TestLeftoversOfALongEntry(t *testing.T) {
	w := newWorld(t)
	const named, unnamed = ".entry-0-0123456789ab.txt", ".entry-9-0123456789ab.txt"
	old := w.Now.Add(-2 * fresh)
	for _, name := range []string{named, unnamed, ".inbox-tries", ".events.jsonl.trim.tmp"} {
		w.write(w.file(name), "x", 0o600)
		require.NoError(t, os.Chtimes(w.file(name), old, old))
	}
	w.write(w.file(".dead-letter.jsonl"), `{"entry_id":"x","raw_line":"y","raw_file":"`+named+`"}`+"\n", 0o600)
	w.says("leftovers", "warn .events.jsonl.trim.tmp", "warn "+unnamed, "warn .inbox-tries")
	require.NoError(t, os.Chtimes(w.file(unnamed), w.Now, w.Now))
	w.says("leftovers", "warn .events.jsonl.trim.tmp", "warn .inbox-tries")
}

func TestPrices(t *testing.T) {
	w := newWorld(t)
	w.says("prices")
	t.Setenv("XDG_CONFIG_HOME", w.Home)
	w.write(w.Home+"/heartbeat/prices.toml", "nonsense", 0o600)
	w.says("prices", "warn prices.toml")
}

func TestCheckBabysitter(t *testing.T) {
	w := newWorld(t)
	w.program("babysitter", ": > '"+w.Home+"/asked'; echo "+effect.MeasuredVersion)
	w.says("babysitter")
	assert.NoFileExists(t, filepath.Join(w.Home, "asked"), "no hook drives a run")

	bs := filepath.Join(w.bin, "bs")
	w.program("bs", "echo "+effect.MeasuredVersion)
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--run", "/runs/r1", "--babysitter", bs))
	w.says("babysitter", "ok "+bs+" is version "+effect.MeasuredVersion)
	w.program("bs", "echo 0.0.174")
	w.says("babysitter", "warn is version 0.0.174")
	assert.NoError(t, os.Remove(bs))
	w.says("babysitter", "fail "+bs)
	assert.NoFileExists(t, filepath.Join(w.Home, "asked"))

	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox))
	w.Driven = func(*inbox.Inbox) ([]orchestrate.DrivenRun, []string, error) {
		return []orchestrate.DrivenRun{{Dir: "/runs/r1"}}, []string{".run-x.json"}, nil
	}
	w.says("babysitter", "ok babysitter is version")
	w.says("run", "warn .run-x.json was not made by way of this inbox", "fail /runs/r1")

	w.Driven = func(*inbox.Inbox) ([]orchestrate.DrivenRun, []string, error) {
		return []orchestrate.DrivenRun{{Dir: "/runs/r1", Done: true}}, nil, nil
	}
	w.says("run") // the directory of a run that is done may be removed
}

// A hook that drives runs has heartbeat take over.
func TestCheckBinaryOfRuns(t *testing.T) {
	w := newWorld(t)
	w.says("binary", "ok belongs to this command")
	w.wire(w.projectSettings(), w.hook("--inbox", w.Inbox, "--run", "/runs/r1"))
	w.says("binary", "warn the heartbeat beside the hook cannot be started")
	w.write(filepath.Join(w.bin, "heartbeat"), "#!/bin/sh\n", 0o755)
	w.says("binary", "ok belongs to this command")
}
