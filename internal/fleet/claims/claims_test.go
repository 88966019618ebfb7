package claims_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/testing/crash"
)

var mine = claims.Binding{Agent: "one", Stream: "WORK", Subject: "work.>"}

func claim(id string) claims.Claim {
	return claims.Claim{ID: id, Entry: id, Stream: "WORK", Seq: 7, Subject: "work.a", Ack: "$JS.ACK.x", Copy: 1, Appended: 1, At: time.Unix(1, 0).UTC()}
}

func open(t *testing.T, inbox string) *claims.Ledger {
	l, err := claims.Open(inbox, mine)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestClaimsStay(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	assert.Empty(t, l.All())
	require.NoError(t, l.Put(claim("a")))
	require.NoError(t, l.Put(claim("b")))
	again := claim("a")
	again.Copy = 3
	require.NoError(t, l.Put(again))
	require.NoError(t, l.Drop("b"))
	require.NoError(t, l.Drop("nobody"))
	require.NoError(t, l.Update("a", func(c *claims.Claim) { c.Refused = "empty" }))
	require.NoError(t, l.Update("nobody", func(c *claims.Claim) { c.Refused = "empty" }))
	again.Refused = "empty"
	require.NoError(t, l.Close())
	assert.Equal(t, []claims.Claim{again}, open(t, inbox).All())
}

// The file follows what is forgotten, by itself, with the next change, or at the end.
func TestWhatIsForgotten(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	has := func(want ...string) bool {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(inbox), claims.FileName))
		require.NoError(t, err)
		var file struct{ Claims []claims.Claim }
		require.NoError(t, json.Unmarshal(raw, &file))
		var got []string
		for _, c := range file.Claims {
			got = append(got, c.Entry)
		}
		return slices.Equal(want, got)
	}
	for _, entry := range []string{"a", "b", "c"} {
		require.NoError(t, l.Put(claim(entry)))
	}
	l.Forget("a")
	l.Forget("nobody")
	assert.Equal(t, 2, l.Len())
	require.Eventually(t, func() bool { return has("b", "c") }, time.Minute, time.Millisecond)
	l.Forget("b")
	require.NoError(t, l.Put(claim("d")))
	assert.True(t, has("c", "d"))
	l.Forget("c")
	require.NoError(t, l.Close())
	assert.True(t, has("d"))
}

// What could not be written is tried again.
func TestWhatIsForgottenOnAFullDisk(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	require.NoError(t, l.Put(claim("a")))
	path := filepath.Join(filepath.Dir(inbox), claims.FileName) + ".tmp"
	require.NoError(t, os.Mkdir(path, 0o700)) // nothing can be published
	require.NoError(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
	l.Forget("a")
	require.Error(t, l.Put(claim("b")))
	require.Eventually(t, func() bool { return l.Behind() != nil }, time.Minute, time.Millisecond)
	require.NoError(t, os.RemoveAll(path))
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(inbox), claims.FileName))
		return err == nil && !strings.Contains(string(raw), `"entry":"a"`)
	}, time.Minute, time.Millisecond)
	assert.NoError(t, l.Behind())
}

func TestAnInboxOfAnotherAgentIsRefused(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	l := open(t, inbox)
	_, err := claims.Open(inbox, mine)
	require.ErrorIs(t, err, claims.ErrBusy)
	require.NoError(t, l.Put(claim("a")))
	require.NoError(t, l.Close())

	other := mine
	other.Agent = "two"
	_, err = claims.Open(inbox, other)
	require.ErrorContains(t, err, `holds messages of agent "one"`)
	_, err = claims.Open(filepath.Join(dir, "other.jsonl"), mine)
	require.ErrorContains(t, err, `is about the inbox "inbox.jsonl"`)

	l = open(t, inbox)
	require.NoError(t, l.Drop("a"))
	require.NoError(t, l.Close())
	l, err = claims.Open(inbox, other) // nothing is owed
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestALedgerThatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, open(t, inbox).Close())
	path := filepath.Join(dir, claims.FileName)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, c := range []struct{ content, says string }{
		{"{", "unexpected end"},
		{strings.Replace(string(whole), `"v":1`, `"v":2`, 1), "has version 2"},
		{strings.Replace(string(whole), `"lock":"`, `"lock":"9`, 1), "came with a copy"},
		{strings.Replace(string(whole), `"claims":null`, `"claims":[{"id":"a"}]`, 1), "without an entry"},
	} {
		require.NotEqual(t, string(whole), c.content)
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		_, err := claims.Open(inbox, mine)
		require.ErrorContains(t, err, c.says)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("/dev/zero", path))
	_, err = claims.Open(inbox, mine)
	require.ErrorIs(t, err, disk.ErrForeign)
}

func TestAFullDiskChangesNothing(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	require.NoError(t, l.Put(claim("a")))
	stop := crash.Observe(t, crash.FailFrom(1, unix.ENOSPC, crash.NeedsSpace...))
	err := l.Put(claim("b"))
	stop()
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, []claims.Claim{claim("a")}, l.All())
	require.NoError(t, l.Put(claim("b")))
	assert.Len(t, l.All(), 2)
}
