package orchestrate_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
	recovery "heartbeat/recover"
)

const (
	anEffect = "01M7ZXJS9PCZ8XV40RD11J2RP4"
	another  = "01M7ZXJS97GA4EF6KASFJTJW82"
)

// working is a run that waits, and the entry of an effect of it, with which a session s1 that
// lives is at work.
func working(t *testing.T) (*orchestrate.Bridge, *inbox.Delivery) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "waiting")
	require.NoError(t, os.CopyFS(dir, os.DirFS("run/testdata/waiting")))
	r, err := run.Open(dir)
	require.NoError(t, err)
	client := exec.Command("cat")
	in, err := client.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	t.Cleanup(func() { _ = in.Close(); _ = client.Wait() })

	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	line, err := json.Marshal(map[string]string{"prompt": "do it", "id": "waiting/" + anEffect, "run": "waiting", "run_dir": dir, "effect": anEffect})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(line, '\n'), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	next, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	e := recovery.Evidence{Process: inbox.ProcessOf(client.Process.Pid)}
	d, err := tx.Deliver(next, inbox.Recipient{SessionID: "s1", Evidence: e.Encode()})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	return &orchestrate.Bridge{Box: box, Run: r}, d
}

// While an agent works on an effect's entry, no other agent's result is taken.
func TestWhoseResultIsTaken(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
	b, _ := working(t)
	t.Setenv("CLAUDE_CODE_SESSION_ID", "s2")
	err := b.HandOver(os.Getpid(), anEffect, []byte("1"), nil)
	require.ErrorContains(t, err, "session s1 has it, and this is of session s2")
	err = b.HandOver(os.Getpid(), anEffect, nil, &babysitter.Failure{Name: "E", Message: "why"})
	require.ErrorContains(t, err, "is another session's")
	err = b.HandOver(os.Getpid(), another, []byte("1"), nil)
	require.ErrorContains(t, err, "session s2, which does not work on this inbox")
	t.Setenv("CLAUDE_CODE_SESSION_ID", "s1")
	require.NoError(t, b.HandOver(os.Getpid(), anEffect, []byte("1"), nil), "the agent's own command")

	b, _ = working(t)
	t.Setenv("CLAUDE_CODE_SESSION_ID", "")
	require.NoError(t, b.HandOver(os.Getpid(), anEffect, []byte("1"), nil), "a person")
	require.NoError(t, b.HandOver(os.Getpid(), another, []byte("1"), nil), "a person")
}

// An agent of this inbox may hand over what nobody works on, as after parallel effects.
func TestResultOfAnIdleEffect(t *testing.T) {
	b, _ := working(t)
	tx, err := b.Box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.In("s3").Start(0, nil))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	t.Setenv("CLAUDE_CODE_SESSION_ID", "s3")
	require.NoError(t, b.HandOver(os.Getpid(), another, []byte("1"), nil))
}

// An agent's command hands over no file that is elsewhere; a person's reads any.
func TestWhichFilesAreHandedOver(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
	b, _ := working(t)
	elsewhere := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(elsewhere, []byte("{}"), 0o600))
	dirs, err := b.Readable(os.Getpid(), anEffect)
	require.NoError(t, err)
	require.Empty(t, dirs)

	t.Setenv("CLAUDE_CODE_SESSION_ID", "s1")
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, effect := range []string{anEffect, "../../" + anEffect} {
		dirs, err = b.Readable(os.Getpid(), effect)
		require.NoError(t, err)
		require.Equal(t, []string{here, filepath.Join(b.Run.Dir(), "tasks", anEffect)}, dirs)
	}
	_, err = disk.ReadBelow(elsewhere, 100, dirs...)
	require.ErrorIs(t, err, fs.ErrPermission)
	own := filepath.Join(b.Run.Dir(), "tasks", anEffect, "output.txt")
	require.NoError(t, os.WriteFile(own, []byte("done"), 0o600))
	text, err := disk.ReadBelow(own, 100, dirs...)
	require.NoError(t, err)
	assert.Equal(t, "done", string(text))
}

// However a result is handed over, the first one counts.
func TestOneResultByThreeWays(t *testing.T) {
	b, d := working(t)
	require.ErrorIs(t, b.HandOver(os.Getpid(), another, []byte("{"), nil), orchestrate.ErrNotJSON)
	require.NoError(t, orchestrate.HandOverReported(b.Box, d, "done, I say"))
	require.NoError(t, orchestrate.HandOverReported(b.Box, d, "and again"), "the last word counts for the entry")
	assert.Empty(t, orchestrate.AcceptReply(b.Box, d, "my last message"))
	require.ErrorContains(t, b.HandOver(os.Getpid(), anEffect, []byte("2"), nil), "an effect has one result")
	kept, err := filepath.Glob(filepath.Join(b.Box.Dir(), ".run-*.json.result-"+anEffect))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	text, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), `"value":"done, I say"`)
}
