package queue

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/hosting/folder"
)

func TestCommandMergesSettings(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "theirs.json"), []byte(`{"model":"m","hooks":{"Stop":[{"hooks":[{"type":"command","command":"lint"}]}]}}`), 0o600))
	argv, err := r.Command([]string{"--settings", "theirs.json", "--print"}, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"claude", "--settings", filepath.Join(r.dir, "settings.json"), "--session-id", r.Queue.round.session, "--print"}, argv)
	text, err := os.ReadFile(argv[2])
	require.NoError(t, err)
	for _, part := range []string{`"model":"m"`, `"lint"`, "--launched", "--start", r.round0().start} {
		assert.Contains(t, string(text), part)
	}
	info, err := os.Stat(argv[2])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, r.Close())
	assert.FileExists(t, argv[2], "who has not claimed the inbox only looks at it")
	require.NoError(t, r.Claim(t.Context()))
	require.NoError(t, r.Close())
	assert.NoFileExists(t, argv[2])
}

func (r *rig) round0() round { return r.Queue.round }

func TestCommandNeedsItsHook(t *testing.T) {
	r := newRig(t)
	for name, args := range map[string][]string{
		"--bare": {"--bare"}, "--safe-mode": {"-p", "--safe-mode"}, "disableAllHooks": {`--settings={"disableAllHooks":true}`},
		"no such file": {"--settings", "none.json"}, "not valid JSON": {"--settings", "{"},
	} {
		_, err := r.Command(args, "")
		require.ErrorContains(t, err, name)
	}
	r.o.Env = append(r.o.Env, "CLAUDE_CODE_SAFE_MODE=1")
	_, err := r.Command(nil, "")
	require.ErrorContains(t, err, "CLAUDE_CODE_SAFE_MODE")
}

func TestEnviron(t *testing.T) {
	r := newRig(t)
	r.o.Background = 90_000_000_000
	assert.Equal(t, []string{"A=1", "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS=90000", "HEARTBEAT_LAUNCHED=" + r.Path()},
		r.Environ([]string{"HEARTBEAT_LAUNCHED=/elsewhere", "A=1"}))
	assert.Equal(t, []string{"CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS=1", "HEARTBEAT_LAUNCHED=" + r.Path()},
		r.Environ([]string{"CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS=1"}))
}

// An entry of a run takes more than its text: the hook delivers it.
func TestKickOff(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.WriteFile(r.Path(), []byte(`{"prompt":"x","run_dir":"/w/r1","kind":"run failed"}`+"\n"), 0o600))
	_, p := r.round("")
	assert.Equal(t, KickOff, p)
	assert.Equal(t, queued, r.fates())
}

func TestPromptsAreWhole(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for name, text := range map[string]string{"not UTF-8": "a\xff\xffb", "with NUL": `"a\u0000b"`, "a surrogate": `"\ud800"`, "too long": long} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			require.NoError(t, os.WriteFile(r.Path(), []byte(text+"\n"), 0o600))
			c, p := r.round("")
			c.start()
			c.submit(p)
			assert.Empty(t, c.stop("done", false))
			assert.Equal(t, answered, r.fates())
			assert.Less(t, len(p), 2<<20)
		})
	}
}

func TestNothingToStartFor(t *testing.T) {
	r := newRig(t)
	none := func() {
		t.Helper()
		_, err := r.Command(nil, "")
		require.NoError(t, err)
		_, ok, err := r.First(t.Context())
		require.NoError(t, err)
		assert.False(t, ok)
	}
	none()
	_, ok, err := r.Put(t.Context(), "", " \n")
	require.NoError(t, err)
	assert.False(t, ok, "a blank prompt is no entry")
	none()
	_, _, err = r.Put(t.Context(), "a", "A")
	require.NoError(t, err)
	again, ok, err := r.Put(t.Context(), "a", "A")
	require.NoError(t, err)
	assert.True(t, ok && !again.Appended)
	require.NoError(t, r.transact(t.Context(), func(tx *inbox.Tx) error {
		_, err := tx.Holds().Pause("lunch", nil)
		require.NoError(t, err)
		return tx.Commit()
	}))
	none()
	n, err := r.Waiting(t.Context())
	require.NoError(t, err)
	assert.True(t, n.Waits && n.Any() && n.Paused.Reason == "lunch")
}

func TestNotStarted(t *testing.T) {
	r := newRig(t, "A")
	r.Queue.round = round{}
	_, p := r.round("")
	require.NoError(t, r.NotStarted(t.Context()))
	assert.Equal(t, queued, r.fates())
	_, again := r.round("")
	assert.Equal(t, p, again)
	_, _, err := r.First(t.Context())
	require.ErrorIs(t, err, ErrInFlight)
}

// A given inbox has entries of before, which are not the session's unless they wait.
func TestGivenInbox(t *testing.T) {
	dir := t.TempDir()
	o := options(dir)
	o.Own, o.Inbox = false, filepath.Join(dir, "given.jsonl")
	require.NoError(t, os.WriteFile(o.Inbox, []byte("\"\"\nold\n\"\"\nwaits\n"), 0o600))
	r := &rig{t: t, dir: dir}
	var err error
	r.Queue, err = Open(o)
	require.NoError(t, err)
	c, p := r.round("")
	c.start()
	c.submit(p)
	require.Equal(t, "waits", c.stop("old done", false))
	r.settle(Exit{}) // the entry that was in flight becomes a dead letter
	require.NoError(t, os.WriteFile(o.Inbox, append([]byte("\"\"\nold\n\"\"\nwaits\n"), "more\n"...), 0o600))

	r.Queue, err = Open(o)
	require.NoError(t, err)
	require.NoError(t, r.Claim(t.Context()))
	assert.Equal(t, []int{0, 0, 0, 0}, r.fates(), "the session has not begun")
	before, err := r.CountBefore(t.Context())
	require.NoError(t, err)
	o.Before = &before
	busy, err := Open(o)
	require.NoError(t, err)
	require.ErrorAs(t, busy.Claim(context.Background()), new(claim.BusyError))
	assert.Equal(t, queued, r.fates(), "what was settled before is nobody's here")
	_, _, err = r.Put(t.Context(), "p", "prompt")
	require.NoError(t, err)
	c, p = r.round("")
	assert.Equal(t, "more", p)
	c.start()
	c.submit(p)
	assert.Equal(t, "prompt", c.stop("more done", false))
	r.Queue, err = Open(o) // whoever finishes for a dead host
	require.NoError(t, err)
	r.settle(Exit{})
	f, err := r.Fates(nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 0, 0, 1}, r.fates())
	require.Len(t, f.Each, 2)
	assert.Equal(t, "answered", f.Each[0].Fate)
	assert.Equal(t, folder.Entry{ID: "p", Fate: "dead-lettered", Why: "orphaned"}, f.Each[1])

	// One that a person requeues is no dead letter any more.
	text, err := os.ReadFile(r.box.DeadLetterPath())
	require.NoError(t, err)
	text = bytes.TrimSpace(text)
	l, _, ok := inbox.ParseLetter(text[bytes.LastIndexByte(text, '\n')+1:])
	require.True(t, ok)
	require.NoError(t, r.transact(t.Context(), func(tx *inbox.Tx) error {
		_, err := tx.Requeue(l, inbox.Mark{})
		return errors.Join(err, tx.Commit())
	}))
	assert.Equal(t, []int{1, 1, 0, 0}, r.fates())
}
