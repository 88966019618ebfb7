package meter_test

import (
	"strings"
	"testing"

	"heartbeat/internal/money/meter"
)

// BenchmarkScan counts a turn of 500 answers, each of which has 10 KB of what a tool said behind it.
func BenchmarkScan(b *testing.B) {
	r := newRig(b)
	r.write(prompt("one"))
	for range 500 {
		r.write(r.answer(10, 1), strings.Replace(toolResult, "ok", strings.Repeat("w", 10_000), 1))
	}
	b.ReportAllocs()
	b.SetBytes(5 << 20)
	for b.Loop() {
		if c, err := meter.Scan(meter.Range{Transcript: r.path}); err != nil || c.Requests != 500 {
			b.Fatal(err)
		}
	}
}
