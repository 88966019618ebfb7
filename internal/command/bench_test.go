package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/script"
)

// BenchmarkWaiters has 50 processes of send --wait on one inbox get their answers from a
// session, each its own; and a session drain as many entries with nobody waiting.
func BenchmarkWaiters(b *testing.B) {
	const crowd, asleep = 50, 5 * time.Second
	hook, err := exec.LookPath("heartbeat-stop")
	require.NoError(b, err)
	answer := func(question string) string { return "answer to " + question }
	drain := func(b *testing.B, path string) {
		a := agent.Agent{Hook: []string{hook, "--inbox", path}, Transcript: filepath.Join(filepath.Dir(path), "transcript.jsonl"), Answer: answer}
		require.NoError(b, a.Run(b.Context(), "say ready"))
	}
	b.Run("nobody", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			path := filepath.Join(b.TempDir(), "inbox.jsonl")
			for i := range crowd {
				require.NoError(b, exec.Command("heartbeat", "send", "--inbox", path, fmt.Sprintf("question %02d", i)).Run())
			}
			b.StartTimer()
			drain(b, path)
		}
	})
	b.Run("crowd", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			path := filepath.Join(b.TempDir(), "inbox.jsonl")
			all, said, ended := make([]*exec.Cmd, crowd), make([]bytes.Buffer, crowd), make([]time.Time, crowd)
			for i := range all {
				all[i] = exec.Command("heartbeat", "send", "--inbox", path, "--wait", "--timeout", "1h", fmt.Sprintf("question %02d", i))
				all[i].Stdout = &said[i]
				require.NoError(b, all[i].Start())
			}
			used := func() (sum time.Duration) {
				for _, one := range all {
					cpu, err := script.CPUTime(one.Process.Pid)
					require.NoError(b, err)
					sum += cpu
				}
				return sum
			}
			for _, one := range all {
				require.Eventually(b, func() bool { return script.Watches(one.Process.Pid) }, script.Patience, time.Millisecond)
			}
			before := used()
			time.Sleep(asleep)
			b.ReportMetric(float64(used()-before)/1e6/asleep.Seconds(), "cpu-ms/s-asleep")
			done := make(chan error)
			for i, one := range all {
				go func() {
					err := one.Wait()
					ended[i] = time.Now()
					done <- err
				}()
			}
			b.StartTimer()
			drain(b, path)
			for range all {
				require.NoError(b, <-done)
			}
			var late []time.Duration
			results, err := os.ReadFile(filepath.Join(filepath.Dir(path), ".results.jsonl"))
			require.NoError(b, err)
			for line := range strings.Lines(string(results)) {
				var result struct {
					Reply string
					At    time.Time `json:"acknowledged_at"`
				}
				require.NoError(b, json.Unmarshal([]byte(line), &result))
				i := slices.IndexFunc(said, func(one bytes.Buffer) bool { return one.String() == result.Reply+"\n" })
				require.GreaterOrEqual(b, i, 0, "nobody waited for it: %s", line)
				late = append(late, ended[i].Sub(result.At))
			}
			require.Len(b, late, crowd)
			slices.Sort(late)
			b.ReportMetric(float64(late[crowd/2])/1e6, "exit-ms")
			b.ReportMetric(float64(late[crowd-1])/1e6, "exit-worst-ms")
		}
	})
}
