package guild

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	testguild "heartbeat/internal/testing/guild"
)

// TestALargeRecordIsNotHeldInMemory sends a record of 16 MiB, which the guild first
// refuses, and then loses on the way.
func TestALargeRecordIsNotHeldInMemory(t *testing.T) {
	p, err := testguild.Launch(testguild.Options{State: filepath.Join(t.TempDir(), "state")})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	require.NoError(t, p.Break(testguild.Fault{On: "record", Step: testguild.WhenRead, Do: testguild.Reset, Skip: 1}))
	file, err := os.Create(filepath.Join(t.TempDir(), "record"))
	require.NoError(t, err)
	defer file.Close()
	message := append([]byte(`{"type":"user","message":"`), bytes.Repeat([]byte("x"), 1<<20)...)
	message = append(message, `"}`...)
	_, err = file.WriteString(`{"sessionId":"` + session + `","status":"cancelled","transcript":[`)
	for i := 0; i < 16 && err == nil; i++ {
		if i > 0 {
			_, err = file.WriteString(",")
		}
		if err == nil {
			_, err = file.Write(message)
		}
	}
	require.NoError(t, err)
	_, err = file.WriteString("]}")
	require.NoError(t, err)
	info, err := file.Stat()
	require.NoError(t, err)

	c := newClient(t, p.URL(), &testguild.Clock{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer, err := c.Record(t.Context(), Body{From: file, Size: info.Size()})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Equal(t, Failed, answer.As)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "bytes allocated in all")
	sessions, err := p.Sessions()
	require.NoError(t, err)
	assert.Equal(t, testguild.Count{Applied: 1, Refused: 1}, sessions[session].Record)
	assert.Equal(t, 16, sessions[session].Messages)
}

// TestALargeRecordThatTheGuildDoesNotRead: nothing reads the file any more once the
// answer is there.
func TestALargeRecordThatTheGuildDoesNotRead(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	g.Break(testguild.Fault{On: "record", Do: testguild.Answer, Status: 413, Times: -1})
	text := append([]byte(`{"sessionId":"`+session+`","status":"failed","transcript":["`), bytes.Repeat([]byte("x"), 16<<20)...)
	from := &counted{Reader: bytes.NewReader(append(text, `"]}`...))}
	_, err := newClient(t, url, &testguild.Clock{}).Record(t.Context(), Body{From: from, Size: from.Size()})
	require.Error(t, err)
	from.over.Store(true)
	assert.Zero(t, from.late.Load())
}

// counted counts reads after it is over.
type counted struct {
	*bytes.Reader
	over atomic.Bool
	late atomic.Int64
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	if c.over.Load() {
		c.late.Add(1)
	}
	return c.Reader.ReadAt(b, off)
}
