package message

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKey(t *testing.T) {
	for id, want := range map[string]string{
		"":            "=e",
		"job-17_a":    "job-17_a",
		"a.b":         "a=2Eb",
		"work.>":      "work=2E=3E",
		"*":           "=2A",
		"two words":   "two=20words",
		"ä":           "=C3=A4",
		"=h":          "=3Dh",
		"WORK:7":      "WORK=3A7",
		"a\x00\xff\n": "a=00=FF=0A",
	} {
		assert.Equal(t, want, Key(id), "%q", id)
	}
	long := strings.Repeat("x", maxKey)
	assert.Equal(t, long, Key(long))
	assert.Regexp(t, `^=h[0-9a-f]{32}$`, Key(long+"x"))
	assert.NotEqual(t, Key(long+"x"), Key(long+"y"))
}

func TestNamesFitAServer(t *testing.T) {
	stream, name := strings.Repeat("S", maxStream), strings.Repeat(".", 500)
	require.NoError(t, CheckStream(stream))
	assert.Less(t, len(Consumer(name)), 255)
	assert.Less(t, len("KV_"+Bucket(stream)), 255)
	assert.Equal(t, "hb_work=2Ereview", Consumer("work.review"))
	assert.Equal(t, "_hb.WORK.dead.a=2Eb", DeadSubject("WORK", "a.b"))
	assert.Equal(t, "answer.a=2Eb.one", AnswerKey("a.b", "one"))
}

func TestMessagesWithoutAnID(t *testing.T) {
	stored := time.Date(2026, 11, 22, 21, 33, 20, 123_456_789, time.UTC)
	id := Unnamed("WORK", 5, stored)
	assert.Equal(t, "WORK:5:hoernlxl4w", id)
	assert.Equal(t, id, Unnamed("WORK", 5, stored.In(time.FixedZone("", 3600))))
	assert.NotEqual(t, id, Unnamed("WORK", 5, stored.Add(time.Microsecond)), "a stream that was made anew")
	assert.True(t, IsUnnamed("WORK", id))
	assert.True(t, IsAt("WORK", "WORK:5", id))
	assert.True(t, IsUnnamed("WORK", Unnamed("WORK", 5, time.Time{})))
	for _, other := range []string{
		"", ":", "WORK:5", "WORK:5:", "WORK:05:hoernlxl4w", "WORK:5:HOERNLXL4W", "WORK:5:0hoernlxl4w", "WORK:-5:1", "WORK:5:-1",
		"WORK:5:zzzzzzzzzzzzzzzz", "MORE:5:hoernlxl4w", "x:WORK:5:hoernlxl4w", "WORK:5: hoernlxl4w",
	} {
		assert.False(t, IsUnnamed("WORK", other), "%q", other)
		assert.False(t, IsAt("WORK", "WORK:5", other), "%q", other)
	}
	assert.True(t, IsPlace("WORK", "WORK:5"))
	for _, other := range []string{"", "5", "WORK", "WORK:", "WORK:05", "WORK:5:1", "MORE:5", "WORK:x"} {
		assert.False(t, IsPlace("WORK", other), "%q", other)
	}
}

func TestCheckStream(t *testing.T) {
	require.NoError(t, CheckStream("WORK-2_b"))
	for _, bad := range []string{"", "a.b", "a b", "ä", "a>", strings.Repeat("x", maxStream+1)} {
		assert.Error(t, CheckStream(bad), "%q", bad)
	}
}

func FuzzKey(f *testing.F) {
	for _, id := range []string{"", "a", "=e", "=h00", "a.b", "a=2Eb", "\xff", strings.Repeat(".", 54)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		key := Key(id)
		require.NotEmpty(t, key)
		require.LessOrEqual(t, len(key), maxKey)
		require.NotContains(t, key, ".")
		require.Regexp(t, `^[-_=a-zA-Z0-9]+$`, key)
		if back, whole := decoded(t, key); whole {
			require.Equal(t, id, back)
		}
	})
}

// decoded undoes Key where that can be undone.
func decoded(t *testing.T, key string) (id string, whole bool) {
	if key == "=e" {
		return "", true
	}
	if strings.HasPrefix(key, "=h") {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] != '=' {
			b.WriteByte(key[i])
			continue
		}
		raw, err := hex.DecodeString(key[i+1 : i+3])
		require.NoError(t, err)
		b.Write(raw)
		i += 2
	}
	return b.String(), true
}
