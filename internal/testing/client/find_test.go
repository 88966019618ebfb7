package client

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// verdict is a testing.TB that remembers how a test was ended.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(args ...any) {
	v.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// find runs Find on a goroutine that it may end.
func find(t *testing.T, value string) (path string, v *verdict) {
	t.Setenv(Variable, value)
	v = &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		path = Find(v)
	}()
	<-done
	return path, v
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	program, plain := filepath.Join(dir, "claude"), filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	require.NoError(t, os.WriteFile(plain, nil, 0o600))

	path, v := find(t, program)
	assert.Equal(t, program, path)
	assert.Empty(t, v.skipped+v.failed)

	_, v = find(t, "")
	assert.Contains(t, v.skipped, "set HEARTBEAT_CLAUDE to the absolute path")

	for value, words := range map[string]string{
		"bin/claude":               "must be an absolute path",
		filepath.Join(dir, "none"): "no such file",
		plain:                      "not an executable file",
		dir:                        "not an executable file",
	} {
		_, v = find(t, value)
		assert.Contains(t, v.failed, words, value)
		assert.Empty(t, v.skipped, value)
	}
}
