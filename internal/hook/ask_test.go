package hook

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// fed returns a pipe that is written piece by piece, and stays open.
func fed(t *testing.T, pieces ...string) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	go func() {
		for _, p := range pieces {
			if _, err := w.WriteString(p); err != nil {
				return // the reader has stopped
			}
		}
	}()
	return r, w
}

// reading returns a hook that reads from f.
func reading(f *os.File) *hook {
	h := &hook{voice: voice{Streams: cli.Streams{In: f}}, carried: carried{Began: machine.SinceBoot()}}
	h.openStdin()
	return h
}

// An object ends at its last byte, in whatever pieces it arrives, and whether or not stdin stays open.
func TestReadInput(t *testing.T) {
	for _, pieces := range [][]string{
		{`{"session_id":"}"}`},
		{" \n", " {", `"session_id"`, `:"}"}`},
		{strings.Repeat(" ", 1<<20), "{", strings.Repeat(" ", 1<<20), `"session_id":"}"}`},
	} {
		r, _ := fed(t, pieces...)
		in, err := reading(r).readInput()
		require.NoError(t, err)
		assert.Equal(t, "}", in.SessionID)
	}
}

func TestReadInputThatEnds(t *testing.T) {
	for text, want := range map[string]string{"": "stdin is empty", " \n\t": "stdin is empty", `{"a":`: "cut off", "{} {}": "not valid JSON", "[]": "hook input"} {
		r, w := fed(t)
		_, err := w.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		_, err = reading(r).readInput()
		assert.ErrorContains(t, err, want)
	}
}

func TestReadInputIsBounded(t *testing.T) {
	pieces := make([]string, maxInput>>20+2)
	for i := range pieces {
		pieces[i] = strings.Repeat(" ", 1<<20)
	}
	r, _ := fed(t, pieces...)
	_, err := reading(r).readInput()
	require.ErrorContains(t, err, "longer than 33554432 bytes")
}

// TestHandover lets one hook read what another wrote: the input byte for byte, however long, and the hook's task.
func TestHandover(t *testing.T) {
	for name, input := range map[string]string{
		"nothing read": "", "short": `{"session_id":"s"}`, "long": `{"session_id":"s","x":"` + strings.Repeat("y", 2<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			was := &hook{carried: carried{Began: 12, Parent: 34, Waiter: "w", IdleUntil: 56, Paused: "for lunch"}, call: call{raw: []byte(input)}, wait: wait{waits: true}}
			was.Err = &words.Head{Most: maxNotes}
			_, _ = io.WriteString(was.Err, "two\n\"lines\"\n")
			b, err := was.handover()
			require.NoError(t, err)
			r, w := fed(t, string(b))
			_ = w
			h := reading(r)
			h.args = []string{handedOverFlag, "--inbox", "x"}
			require.NoError(t, h.takeOver())
			assert.Equal(t, []string{"--inbox", "x"}, h.args)
			assert.Equal(t, was.wait, h.wait)
			was.Notes = "two\n\"lines\"\n"
			assert.Equal(t, was.carried, h.carried)
			if input != "" {
				in, err := h.readInput()
				require.NoError(t, err)
				assert.Equal(t, "s", in.SessionID)
				assert.Equal(t, input, string(h.raw))
			}
		})
	}
}

func TestHandoverOfAnotherRelease(t *testing.T) {
	for _, text := range []string{"{}", "[]", "", `{"session_id":"s"}`} {
		r, w := fed(t)
		_, err := w.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		h := reading(r)
		h.args = []string{handedOverFlag + "=1,2,3"}
		err = h.takeOver()
		require.ErrorContains(t, err, "take over from heartbeat-stop: ")
		require.ErrorContains(t, err, ": install all of heartbeat's commands from one release")
	}
}
