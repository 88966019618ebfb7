package terminal

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader that takes little at a time gets everything. The patience is endless here:
// on a busy machine a reader may be that slow.
func TestSlowerThanTheSource(t *testing.T) {
	r, w := io.Pipe()
	p := NewPump(w, func(err error) { t.Errorf("something was dropped: %v", err) })
	p.patience, p.flushPatience = time.Hour, time.Hour
	go p.Run()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 4*limit/16)
	go func() {
		for rest := sent; len(rest) > 0; rest = rest[4096:] {
			p.Put(rest[:4096])
		}
		p.Flush(nil)
		assert.NoError(t, w.Close())
	}()
	var got bytes.Buffer
	_, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{r}, make([]byte, 512))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(sent, got.Bytes()), "%d bytes came of %d", got.Len(), len(sent))
}

// If the writer takes nothing, the pump stays within its limit and reports that once.
func TestNeverTaken(t *testing.T) {
	_, w := io.Pipe()
	var said []error
	p := NewPump(w, func(err error) { said = append(said, err) })
	p.patience = time.Millisecond
	go p.Run()
	for range 4 * limit / 4096 {
		p.Put(make([]byte, 4096))
		p.mu.Lock()
		waiting := len(p.waiting)
		p.mu.Unlock()
		require.LessOrEqual(t, waiting, limit)
	}
	assert.Equal(t, []error{errSlow}, said)
}

// After a time in which the disk was full, the pump continues.
func TestTakenAgain(t *testing.T) {
	disk := &fullDisk{}
	said := 0
	p := NewPump(disk, func(error) { said++ })
	go p.Run()
	for i, text := range []string{"one ", "two ", "three "} {
		p.Put([]byte(text))
		for p.takenNow() == i { // until it was written, or refused
			<-p.step
		}
		disk.full = !disk.full
	}
	p.Flush(nil)
	assert.Equal(t, "one three ", disk.String())
	assert.Equal(t, 1, said)
}

func (p *Pump) takenNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
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
