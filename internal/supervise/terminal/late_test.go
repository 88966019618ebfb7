package terminal

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the session printed is read, however late this process comes to that, and although somebody
// outside it still has the terminal open.
func TestLateReading(t *testing.T) {
	usual := drainPatience
	t.Cleanup(func() { drainPatience = usual })
	drainPatience = -time.Second // it is over before each read
	terminal, open, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = terminal.Close(), open.Close() })
	_, err = open.WriteString("its last words")
	require.NoError(t, err)

	var said []byte
	s := &session{
		Options: Options{Watchers: Watchers{Watch: func(b []byte) { said = append(said, b...) }}},
		display: display{ptmx: terminal, out: NewPump(io.Discard, func(error) {}), read: make(chan struct{})},
	}
	s.draining.Store(true)
	s.readTerminal()
	assert.Equal(t, "its last words", string(said))
}
