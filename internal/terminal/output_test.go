package terminal

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSlowerThanTheCommand has a reader that takes little at a time get everything.
func TestSlowerThanTheCommand(t *testing.T) {
	r, w := io.Pipe()
	o := newOutput(w, func(err error) { t.Errorf("something was dropped: %v", err) })
	go o.write()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 4*outputLimit/16)
	go func() {
		for rest := sent; len(rest) > 0; rest = rest[4096:] {
			o.put(rest[:4096])
		}
		o.flush(nil)
		assert.NoError(t, w.Close())
	}()
	var got bytes.Buffer
	_, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{r}, make([]byte, 512))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(sent, got.Bytes()), "%d bytes came of %d", got.Len(), len(sent))
}

// TestNeverTaken has nothing pile up, and is said once.
func TestNeverTaken(t *testing.T) {
	_, w := io.Pipe()
	var said []error
	o := newOutput(w, func(err error) { said = append(said, err) })
	go o.write()
	for range 4 * outputLimit / 4096 {
		o.put(make([]byte, 4096))
		o.mu.Lock()
		waiting := len(o.waiting)
		o.mu.Unlock()
		require.LessOrEqual(t, waiting, outputLimit)
	}
	assert.Equal(t, []error{errSlow}, said)
}

// TestTakenAgain goes on where a disk was full for a while.
func TestTakenAgain(t *testing.T) {
	disk := &fullDisk{}
	said := 0
	o := newOutput(disk, func(error) { said++ })
	go o.write()
	for i, text := range []string{"one ", "two ", "three "} {
		o.put([]byte(text))
		for o.takenNow() == i { // until it was written, or refused
			<-o.step
		}
		disk.full = !disk.full
	}
	o.flush(nil)
	assert.Equal(t, "one three ", disk.String())
	assert.Equal(t, 1, said)
}

func (o *output) takenNow() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.taken
}

// fullDisk refuses while it is full.
type fullDisk struct {
	bytes.Buffer
	full bool
}

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.full {
		return 0, errors.New("no space")
	}
	return d.Buffer.Write(b)
}
