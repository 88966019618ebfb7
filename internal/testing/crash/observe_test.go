package crash_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// TestFail shows which calls each observer refuses, by announcing a write, a
// sync, a write and a remove to it.
func TestFail(t *testing.T) {
	ops := []disk.Op{
		{Kind: disk.OpWrite, Data: []byte("ab")}, {Kind: disk.OpSync},
		{Kind: disk.OpWrite, Data: []byte("c")}, {Kind: disk.OpRemove},
	}
	for _, test := range []struct {
		name     string
		observer disk.Observer
		want     []bool
	}{
		{"at", crash.FailAt(2, unix.EIO), []bool{false, true, false, false}},
		{"from", crash.FailFrom(2, unix.EIO), []bool{false, true, true, true}},
		{"from, kinds", crash.FailFrom(2, unix.EIO, crash.NeedsSpace...), []bool{false, false, true, false}},
		{"tear one byte", crash.TearAt(3, unix.EIO), []bool{false, false, true, false}},
		{"chain", crash.Chain(crash.FailAt(2, unix.EIO), crash.FailAt(2, unix.EIO)), []bool{false, true, true, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, op := range ops {
				err := test.observer(op)
				assert.Equal(t, test.want[i], err != nil, "call %d: %v", i+1, err)
			}
		})
	}
}

func TestTearAt(t *testing.T) {
	dir := t.TempDir()
	stop := crash.Observe(t, crash.TearAt(3, unix.ENOSPC)) // after remove and create
	err := disk.Publish(dir+"/f", []byte("content"), false)
	stop()
	require.ErrorIs(t, err, unix.ENOSPC)
	var pathError *fs.PathError
	require.ErrorAs(t, err, &pathError)
	assert.Equal(t, "write", pathError.Op)
	require.NoError(t, disk.Create(dir+"/f"), "no observer is left")
}

func TestTearAtWritesHalf(t *testing.T) {
	dir := t.TempDir()
	crash.Observe(t, crash.TearAt(2, unix.ENOSPC))
	f, _, err := disk.OpenWrite(dir + "/f")
	require.NoError(t, err)
	require.ErrorIs(t, f.WriteAt([]byte("content"), 0), unix.ENOSPC)
	require.NoError(t, f.Close())
	assert.Equal(t, "con", read(t, dir, "f"))
}
