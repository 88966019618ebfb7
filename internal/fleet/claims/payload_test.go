package claims_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/testing/crash"
)

// payloads are the files beside an inbox that have payloads.
func payloads(t *testing.T, inbox string) []string {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(inbox), ".nats-payload-*"))
	require.NoError(t, err)
	return all
}

func TestPayloads(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	want := map[string][]byte{"none": nil, "short": []byte("{ \"prompt\":\t\"x\" }\xff"), "long": bytes.Repeat([]byte("{}\n\x00"), 1<<18)}
	for id, data := range want {
		c := claim(id)
		c.Payload = data
		require.NoError(t, l.Put(c))
	}
	require.NoError(t, l.Close())
	info, err := os.Stat(filepath.Join(filepath.Dir(inbox), claims.FileName))
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(4096), "it is written again with each change")
	require.Len(t, payloads(t, inbox), 1)
	left := payloads(t, inbox)[0][:len(payloads(t, inbox)[0])-1] + "_"
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	gone := filepath.Join(filepath.Dir(inbox), ".nats-payload-0123456789abcdef0123456789abcdef")
	for _, name := range []string{gone, gone + ".tmp"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}

	l = open(t, inbox)
	assert.NoFileExists(t, gone, "no claim names it")
	assert.NoFileExists(t, gone+".tmp")
	assert.FileExists(t, left, "it is not of ours")
	require.NoError(t, os.Remove(left))
	for id, data := range want {
		c, there := l.Get(id)
		require.True(t, there)
		got, err := l.Payload(c)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, got), id)
	}
	require.NoError(t, l.Drop("long"))
	assert.Empty(t, payloads(t, inbox))
}

func TestThePayloadOfWhatIsForgotten(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	c := claim("a")
	c.Payload = bytes.Repeat([]byte("x"), 10_000)
	require.NoError(t, l.Put(c))
	l.Forget("a")
	require.NoError(t, l.Put(claim("b")))
	assert.Empty(t, payloads(t, inbox), "it goes with the next write")
	require.NoError(t, l.Put(c))
	l.Forget("a")
	require.NoError(t, l.Put(c))
	c, _ = l.Get("a")
	_, err := l.Payload(c)
	require.NoError(t, err, "it came again")
	l.Forget("a")
	require.NoError(t, l.Close())
	assert.Empty(t, payloads(t, inbox))
}

func TestAPayloadThatSomebodyChanged(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	l := open(t, inbox)
	c := claim("a")
	c.Payload = bytes.Repeat([]byte("x"), 10_000)
	require.NoError(t, l.Put(c))
	c, _ = l.Get("a")
	file := payloads(t, inbox)[0]
	require.NoError(t, os.WriteFile(file, []byte("other"), 0o600))
	_, err := l.Payload(c)
	require.ErrorIs(t, err, claims.ErrNoPayload)
	require.NoError(t, os.Remove(file))
	_, err = l.Payload(c)
	require.ErrorIs(t, err, claims.ErrNoPayload)
	require.NoError(t, os.Symlink("/dev/zero", file))
	_, err = l.Payload(c)
	require.ErrorIs(t, err, claims.ErrNoPayload)
	c.PayloadFile = "../secret"
	_, err = l.Payload(c)
	require.ErrorIs(t, err, claims.ErrNoPayload)
}

func TestNoRoomForAPayload(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	c := claim("a")
	c.Payload = bytes.Repeat([]byte("x"), 10_000)
	stop := crash.Observe(t, crash.FailFrom(1, unix.ENOSPC, crash.NeedsSpace...))
	err := l.Put(c)
	stop()
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Empty(t, l.All())
	require.NoError(t, l.Put(c))
}

// What holding a message costs: a claim, and a payload that is kept for its dead letter.
func BenchmarkClaim(b *testing.B) {
	for name, size := range map[string]int{"text": 0, "object of 4 KiB": 4 << 10, "object of 5 KiB": 5 << 10, "object of 1 MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			l, err := claims.Open(filepath.Join(b.TempDir(), "inbox.jsonl"), mine)
			require.NoError(b, err)
			b.Cleanup(func() { _ = l.Close() })
			c := claim("a")
			c.Payload = bytes.Repeat([]byte("x"), size)
			for b.Loop() {
				require.NoError(b, l.Put(c))
				require.NoError(b, l.Drop("a"))
			}
		})
	}
}
