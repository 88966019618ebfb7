package process_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/process"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

func start(t *testing.T, script string, change func(*process.Options)) *process.Process {
	t.Helper()
	mark, err := machine.RandomName()
	require.NoError(t, err)
	o := process.Options{
		Path: "/bin/sh", Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Mark: mark, Stderr: io.Discard,
		Env: guardian.Marked([]string{"PATH=/usr/bin:/bin"}, mark),
	}
	if change != nil {
		change(&o)
	}
	p, err := process.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.End(0)
		<-p.Gone()
		p.EndRest()
		assert.Empty(t, guardian.Members(mark))
	})
	return p
}

// untilUp waits for a process that is to survive its request to end.
const untilUp = "until [ -e up ]; do sleep 0.01; done; "

func TestStreams(t *testing.T) {
	var stderr bytes.Buffer
	input := strings.Repeat("0123456789abcde\n", 1<<16)
	p := start(t, "cat; echo complaint >&2; exit 3", func(o *process.Options) {
		o.Stdin, o.Stderr = []byte(input), &stderr
	})
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	<-p.Gone()
	require.NoError(t, p.Finish())
	assert.Equal(t, input, string(out))
	assert.Equal(t, "complaint\n", stderr.String())
	assert.Equal(t, process.Exit{Code: 3}, p.Exit())
	assert.Zero(t, p.EndRest())
}

// A client that closes its input early is no reason to die, or to fail.
func TestInputNotTaken(t *testing.T) {
	p := start(t, "exec <&-; echo done", func(o *process.Options) { o.Stdin = make([]byte, 4<<20) })
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	<-p.Gone()
	assert.ErrorContains(t, p.Finish(), "broken pipe")
	assert.Equal(t, "done\n", string(out))
	assert.Zero(t, p.Exit().Code)
}

// Whoever holds the streams open after the client's end delays nothing.
func TestGrandchildHoldsStreams(t *testing.T) {
	p := start(t, "sleep 1000 & setsid sh -c 'trap \"\" TERM; >up; while :; do sleep 1000; done' & "+untilUp+"echo out; exit 0", nil)
	out, err := io.ReadAll(p.Stdout()) // hangs for 1000 s otherwise
	require.NoError(t, err)
	assert.Equal(t, "out\n", string(out))
	<-p.Gone()
	_ = p.Finish() // there is no input
	assert.Positive(t, p.EndRest())
}

// What the client wrote is read, however late this process comes to that.
func TestLateReader(t *testing.T) {
	p := start(t, "setsid sh -c 'trap \"\" TERM; >up; while :; do sleep 1000; done' & "+untilUp+"echo out; exit 0", nil)
	<-p.Gone()
	_ = p.Finish() // its other stream is over, and so is the time for this one
	out, err := io.ReadAll(iotest.OneByteReader(p.Stdout()))
	require.NoError(t, err)
	assert.Equal(t, "out\n", string(out))
	assert.Positive(t, p.EndRest())
}

func TestEnd(t *testing.T) {
	t.Run("asked", func(t *testing.T) {
		p := start(t, "trap 'exit 143' TERM; echo up; while :; do sleep 0.01; done", nil)
		_, err := p.Stdout().Read(make([]byte, 3))
		require.NoError(t, err)
		p.End(time.Hour)
		<-p.Gone()
		assert.Equal(t, process.Exit{Code: 143}, p.Exit())
	})
	t.Run("in its sleep", func(t *testing.T) {
		p := start(t, "echo up; kill -STOP $$", nil)
		_, err := p.Stdout().Read(make([]byte, 3))
		require.NoError(t, err)
		p.End(time.Hour)
		<-p.Gone()
		assert.Equal(t, process.Exit{Code: -1, Signal: "SIGTERM"}, p.Exit())
	})
	t.Run("killed", func(t *testing.T) {
		p := start(t, "trap '' TERM; (setsid sh -c 'while :; do sleep 1000; done' &); echo up; while :; do sleep 1000; done", nil)
		_, err := p.Stdout().Read(make([]byte, 3))
		require.NoError(t, err)
		p.End(time.Hour)
		p.End(0) // the second request is in a hurry
		<-p.Gone()
		assert.Equal(t, process.Exit{Code: -1, Signal: "SIGKILL"}, p.Exit())
	})
	t.Run("asked again, which gives it no more time", func(t *testing.T) {
		p := start(t, "trap '' TERM; echo up; while :; do sleep 1000; done", nil)
		_, err := p.Stdout().Read(make([]byte, 3))
		require.NoError(t, err)
		p.End(100 * time.Millisecond)
		p.End(time.Hour)
		<-p.Gone()
		assert.Equal(t, process.Exit{Code: -1, Signal: "SIGKILL"}, p.Exit())
	})
}

// What kills a client late is over before another client can start: it kills all children.
func TestKillMeetsNoOther(t *testing.T) {
	for range 5 {
		p := start(t, "trap '' TERM; echo up; while :; do sleep 1000; done", nil)
		_, err := p.Stdout().Read(make([]byte, 3))
		require.NoError(t, err)
		p.End(0)
		<-p.Gone()
		p.EndRest()
		next := start(t, "sleep 0.2; exit 4", nil)
		<-next.Gone()
		require.Equal(t, process.Exit{Code: 4}, next.Exit())
		next.EndRest()
	}
}

func TestCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		o    process.Options
		want string
	}{
		"no program": {process.Options{Path: "/nowhere", Command: []string{"x"}, Dir: "/"}, "start /nowhere: it, what would run it (its first line or its loader), or the folder / is not there"},
		"no folder":  {process.Options{Path: "/bin/sh", Command: []string{"x"}, Dir: "/nowhere"}, "the folder /nowhere is not there"},
		"a folder":   {process.Options{Path: "/tmp", Command: []string{"x"}, Dir: "/"}, "permission denied"},
		"too long":   {process.Options{Path: "/bin/sh", Command: []string{"x", strings.Repeat("x", 1<<20)}, Dir: "/"}, "too long"},
	} {
		_, err := process.Start(c.o)
		assert.ErrorContains(t, err, c.want, name)
	}
}

func TestMemoryMax(t *testing.T) {
	p := start(t, `grep 'Max data size' /proc/self/limits; exit 5`, func(o *process.Options) { o.MemoryMax = 512 << 20 })
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	<-p.Gone()
	assert.Regexp(t, `^Max data size +536870912 +536870912 `, string(out))
	assert.Equal(t, 5, p.Exit().Code)
}

// A process that left the session, lost its mark and whose parent died is found by its
// adopter.
func TestOrphanWithoutMark(t *testing.T) {
	p := start(t, "(env -i setsid sh -c 'trap \"\" TERM; echo $$; >up; exec >&- 2>&- <&-; while :; do sleep 1000; done' &); "+untilUp, nil)
	var pid int
	_, err := fmt.Fscan(p.Stdout(), &pid)
	require.NoError(t, err)
	<-p.Gone()
	require.NotZero(t, machine.ProcessStart(pid))
	life := machine.WatchProcess(pid)
	assert.Positive(t, p.EndRest())
	<-life.Died()
}
