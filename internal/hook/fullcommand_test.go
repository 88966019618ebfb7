package hook

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHandover lets one hook read what another wrote: the input byte for byte, however long, and
// the hook's task.
func TestHandover(t *testing.T) {
	for name, input := range map[string]string{
		"nothing read": "", "short": `{"session_id":"s"}`, "long": `{"x":"` + strings.Repeat("y", 2<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			was := handover{
				began: 12, parent: 34, waiter: "w", idleUntil: 56, paused: "for lunch",
				notes: "two\n\"lines\"\n", inputSize: int64(len(input)),
			}
			stdin, err := withoutName([]byte(input), was.encode())
			require.NoError(t, err)
			o, args, err := cutHandover([]string{handedOverFlag + was.arg(), "--inbox", "x"}, stdin)
			require.NoError(t, err)
			assert.Equal(t, []string{"--inbox", "x"}, args)
			assert.Equal(t, was, *o)
			left, err := io.ReadAll(io.NewSectionReader(stdin, 0, o.inputSize))
			require.NoError(t, err)
			assert.Equal(t, input, string(left))
		})
	}
}

func TestHandoverBeforeTheInput(t *testing.T) {
	was := handover{began: 12, parent: 34, inputSize: -1}
	o, _, err := cutHandover([]string{handedOverFlag + was.arg()}, nil)
	require.NoError(t, err)
	assert.Equal(t, was, *o)
	o, args, err := cutHandover([]string{"--inbox", "x"}, nil)
	require.NoError(t, err)
	assert.Nil(t, o)
	assert.Len(t, args, 2)
}

func TestHandoverOfAnotherRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdin")
	require.NoError(t, os.WriteFile(path, []byte(`{}not an object`), 0o600))
	stdin, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, stdin.Close()) }()
	for _, arg := range []string{"", "1", "1,2", "1,2,x", "1,2,3,4", "1,2,2", "1,2,99"} {
		_, _, err := cutHandover([]string{handedOverFlag + arg}, stdin)
		require.ErrorContains(t, err, "take over from heartbeat-stop: ", arg)
		require.ErrorContains(t, err, ": install all of heartbeat's commands from one release", arg)
	}
}
