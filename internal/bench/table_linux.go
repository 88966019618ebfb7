package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sample is how long each of several runs took.
type sample []time.Duration

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

// table is the result of a measure, for docs/benchmarks.md. The first column has names,
// the others figures.
type table struct {
	title   string
	rows    [][6]string
	targets []string
}

// row adds the runs of one thing. Others may be compared with what took floor.
func (t *table) row(name string, s, floor sample) {
	ratio := ""
	if floor != nil {
		ratio = fmt.Sprintf("%.3f", s.over(floor))
	}
	t.rows = append(t.rows, [6]string{name, fmt.Sprint(len(s)), ms(median(s)), ms(slices.Min(s)), ms(slices.Max(s)), ratio})
}

// figure adds something that is not the time of several runs.
func (t *table) figure(name, format string, args ...any) {
	t.rows = append(t.rows, [6]string{name, "", fmt.Sprintf(format, args...)})
}

// way is one of several things that are timed in turn.
type way struct {
	name string
	once func() time.Duration
}

// turns are the runs of several ways.
type turns []sample

// ratio is that of the first to the last.
func (t turns) ratio() float64 { return t[0].over(t[len(t)-1]) }

// inTurn times each way n times, one after the other, and adds a row for each, which is
// compared with the last one.
func (t *table) inTurn(n int, ways ...way) turns {
	took := make(turns, len(ways))
	for range n {
		for i, w := range ways {
			took[i] = append(took[i], w.once())
		}
	}
	floor := took[len(ways)-1]
	for i, w := range ways {
		t.row(w.name, took[i], floor)
	}
	return took
}

// target says whether one was met.
func (t *table) target(ok bool, format string, args ...any) {
	met := "met"
	if !ok {
		met = "**missed**"
	}
	t.targets = append(t.targets, fmt.Sprintf(format, args...)+": "+met)
}

func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n|  | runs | median | min | worst | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", t.title)
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row[:], " | "))
	}
	if t.targets != nil {
		fmt.Fprintf(&b, "\nTargets: %s.\n", strings.Join(t.targets, "; "))
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
