package main

import (
	"fmt"
	"slices"
	"time"
)

// sample is how long each of several runs took.
type sample []time.Duration

func (s sample) median() time.Duration { return median(s) }
func (s sample) min() time.Duration    { return slices.Min(s) }
func (s sample) max() time.Duration    { return slices.Max(s) }

func (s sample) sum() (d time.Duration) {
	for _, one := range s {
		d += one
	}
	return d
}

// over is the median of the ratios of each run to the run of other that was taken with
// it: what slows the machine for a while slows both.
func (s sample) over(other sample) float64 {
	ratios := make([]float64, len(s))
	for i := range s {
		ratios[i] = float64(s[i]) / float64(other[i])
	}
	return median(ratios)
}

// median of a list that is not empty.
func median[S ~[]N, N ~int64 | ~float64](s S) N {
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// met says, for a table, whether a target was met.
func met(ok bool) string {
	if ok {
		return "met"
	}
	return "**missed**"
}
