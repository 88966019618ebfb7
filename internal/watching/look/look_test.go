package look_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/watching/finder"
	"heartbeat/internal/watching/look"
)

func BenchmarkLook(b *testing.B) {
	root := b.TempDir()
	line := strings.Repeat("x", 60)
	for i := range 50 {
		dir := filepath.Join(root, fmt.Sprintf("box-%02d", i))
		require.NoError(b, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "inbox.jsonl")
		box, err := inbox.Open(path, inbox.Options{})
		require.NoError(b, err)
		var all []inbox.Message
		for n := range 10_000 {
			all = append(all, inbox.Message{ID: fmt.Sprint("job-", n), Text: line})
		}
		_, err = box.AppendAll(b.Context(), all, 0)
		require.NoError(b, err)
	}
	at := time.Now()
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			_, _ = look.New(finder.New(root)).Look(b.Context(), at, nil)
		}
	})
	l := look.New(finder.New(root))
	_, _ = l.Look(b.Context(), at, nil)
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			at = at.Add(time.Second)
			_, _ = l.Look(b.Context(), at, nil)
		}
	})
}
