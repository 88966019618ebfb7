package upstream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/crash"
)

var mine = upstream.Binding{Agent: "one", Stream: "WORK", Subject: "work.>"}

func claim(id string) upstream.Claim {
	m := message.Message{ID: id, Entry: id, Stream: "WORK", Seq: 7, Subject: "work.a", Ack: "$JS.ACK.x", Copy: 1}
	return upstream.Claim{Message: m, Agent: "one", Appended: 1, At: time.Unix(1, 0).UTC()}
}

func open(t *testing.T, inbox string) *upstream.Ledger {
	l, err := upstream.OpenLedger(inbox, mine)
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
	l.Forget("b")
	l.Forget("nobody")
	require.NoError(t, l.Flush())
	require.NoError(t, l.Update("a", func(c *upstream.Claim) { c.Refused = "empty" }))
	require.NoError(t, l.Update("nobody", func(c *upstream.Claim) { c.Refused = "empty" }))
	again.Refused = "empty"
	require.NoError(t, l.Close())
	assert.Equal(t, []upstream.Claim{again}, open(t, inbox).All())
}

// The file follows what is forgotten with the next change, when it is asked to, and at the end.
func TestWhatIsForgotten(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	has := func(id string) bool {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(inbox), upstream.FileName))
		require.NoError(t, err)
		return strings.Contains(string(raw), `"entry":"`+id+`"`)
	}
	for _, entry := range []string{"a", "b", "c"} {
		require.NoError(t, l.Put(claim(entry)))
	}
	l.Forget("a")
	assert.Equal(t, 2, l.Len())
	assert.True(t, has("a"))
	stop := crash.Observe(t, crash.FailFrom(1, unix.ENOSPC, crash.NeedsSpace...))
	require.ErrorIs(t, l.Flush(), unix.ENOSPC)
	stop()
	require.NoError(t, l.Flush())
	assert.False(t, has("a"))
	l.Forget("b")
	require.NoError(t, l.Put(claim("d")))
	assert.False(t, has("b"))
	l.Forget("c")
	require.NoError(t, l.Close())
	assert.False(t, has("c"))
	assert.True(t, has("d"))
}

// What is more than the ledger can be read with later is not taken.
func TestALedgerThatWouldBeTooLong(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	for _, id := range []string{"a", "b"} {
		c := claim(id)
		c.Payload = make([]byte, 64<<20)
		if err := l.Put(c); id == "b" {
			require.ErrorContains(t, err, "are the most")
		} else {
			require.NoError(t, err)
		}
	}
	assert.Equal(t, 1, l.Len())
	require.NoError(t, l.Put(claim("c")))
}

func TestAnInboxOfAnotherAgentIsRefused(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	l := open(t, inbox)
	_, err := upstream.OpenLedger(inbox, mine)
	require.ErrorIs(t, err, upstream.ErrBusy)
	require.NoError(t, l.Put(claim("a")))
	require.NoError(t, l.Close())

	other := mine
	other.Agent = "two"
	_, err = upstream.OpenLedger(inbox, other)
	require.ErrorContains(t, err, `holds messages of agent "one"`)
	_, err = upstream.OpenLedger(filepath.Join(dir, "other.jsonl"), mine)
	require.ErrorContains(t, err, `is about the inbox "inbox.jsonl"`)

	l = open(t, inbox)
	l.Forget("a")
	require.NoError(t, l.Flush())
	require.NoError(t, l.Close())
	l, err = upstream.OpenLedger(inbox, other) // nothing is owed
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestALedgerThatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	require.NoError(t, open(t, inbox).Close())
	path := filepath.Join(dir, upstream.FileName)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, c := range []struct{ content, says string }{
		{"{", "unexpected end"},
		{strings.Replace(string(whole), `"v":1`, `"v":2`, 1), "has version 2"},
		{strings.Replace(string(whole), `"lock":"`, `"lock":"9`, 1), "came with a copy"},
		{strings.Replace(string(whole), `"claims":null`, `"claims":[{"id":"a"}]`, 1), "without an id, an entry or an address"},
		{strings.Replace(string(whole), `"claims":null`, `"claims":[{"id":"a","entry":"a","ack":"a","stream":"OTHER"}]`, 1), "of another stream"},
	} {
		require.NotEqual(t, string(whole), c.content)
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		_, err := upstream.OpenLedger(inbox, mine)
		require.ErrorContains(t, err, c.says)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("/dev/zero", path))
	_, err = upstream.OpenLedger(inbox, mine)
	require.ErrorIs(t, err, disk.ErrForeign)
}

func TestAFullDiskChangesNothing(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	require.NoError(t, l.Put(claim("a")))
	stop := crash.Observe(t, crash.FailFrom(1, unix.ENOSPC, crash.NeedsSpace...))
	err := l.Put(claim("b"))
	stop()
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, []upstream.Claim{claim("a")}, l.All())
	require.NoError(t, l.Put(claim("b")))
	assert.Len(t, l.All(), 2)
}

// What holding a message costs: a claim, and a payload that is kept for its dead letter.
func BenchmarkClaim(b *testing.B) {
	for name, size := range map[string]int{"text": 0, "object of 4 KiB": 4 << 10, "object of 5 KiB": 5 << 10, "object of 1 MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			l, err := upstream.OpenLedger(filepath.Join(b.TempDir(), "inbox.jsonl"), mine)
			require.NoError(b, err)
			b.Cleanup(func() { _ = l.Close() })
			c := claim("a")
			c.Payload = bytes.Repeat([]byte("x"), size)
			for b.Loop() {
				require.NoError(b, l.Put(c))
				l.Forget("a")
				require.NoError(b, l.Flush())
			}
		})
	}
}
