package watch_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// BenchmarkView is a view of many inboxes in a terminal, from a line that is appended to
// the view that counts it. HEARTBEAT_LONG=1 takes 50 inboxes of 10,000 entries, and looks
// for a minute at what a view costs while nothing changes.
func BenchmarkView(b *testing.B) {
	root, each, entries := b.TempDir(), long.Rounds(100, 10_000), 0
	var inboxes []string
	for i := range long.Rounds(5, 50) {
		path := filepath.Join(root, fmt.Sprintf("box-%02d", i), "inbox.jsonl")
		require.NoError(b, os.Mkdir(filepath.Dir(path), 0o700))
		var lines bytes.Buffer
		for n := range each {
			fmt.Fprintf(&lines, `{"id":"m-%07d","prompt":"question %07[1]d of many"}`+"\n", n)
		}
		require.NoError(b, os.WriteFile(path, lines.Bytes(), 0o600))
		out, err := exec.Command("heartbeat", "resume", "--inbox", path).CombinedOutput()
		require.NoError(b, err, string(out))
		inboxes, entries = append(inboxes, path), entries+each
	}
	began := time.Now()
	s := started(b, "heartbeat", "watch", root)
	counts := func() { s.Sees(fmt.Sprintf(", %d wait,", entries)) }
	counts()
	start := time.Since(began)
	length := time.Duration(long.Rounds(1, 60)) * time.Second
	before, err := script.CPUTime(s.Cmd.Process.Pid)
	require.NoError(b, err)
	time.Sleep(length)
	after, err := script.CPUTime(s.Cmd.Process.Pid)
	require.NoError(b, err)
	for _, n := range []int{1, len(inboxes)} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				for _, path := range inboxes[:n] {
					f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					require.NoError(b, err)
					_, err = f.WriteString("one more\n")
					require.NoError(b, err)
					require.NoError(b, f.Close())
				}
				entries += n
				counts()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
			b.ReportMetric(float64(took[len(took)-1])/1e6, "worst-ms")
			b.ReportMetric(float64(start)/1e6, "start-ms")
			b.ReportMetric(100*float64(after-before)/float64(length), "idle-%")
		})
	}
	require.NoError(b, s.Cmd.Process.Signal(syscall.SIGTERM))
	leaves(b, s, 128+int(syscall.SIGTERM))
}
