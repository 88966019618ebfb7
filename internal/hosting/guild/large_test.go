package guild

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	testguild "heartbeat/internal/testing/guild"
)

// TestALargeRecordThatTheGuildDoesNotRead: nothing reads the file any more once the
// answer is there.
func TestALargeRecordThatTheGuildDoesNotRead(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	g.Break(testguild.Fault{On: "record", Do: testguild.Answer, Status: 413, Times: -1})
	text := append([]byte(`{"sessionId":"`+session+`","status":"failed","transcript":["`), bytes.Repeat([]byte("x"), 16<<20)...)
	from := &counted{Reader: bytes.NewReader(append(text, `"]}`...))}
	_, err := newClient(t, url, &testguild.Clock{}).Record(t.Context(), folder.Failed, func(folder.Status) (Body, error) {
		return Body{Open: func() io.Reader { return from }, Size: from.Size()}, nil
	})
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

func (c *counted) Read(b []byte) (int, error) {
	if c.over.Load() {
		c.late.Add(1)
	}
	return c.Reader.Read(b)
}
