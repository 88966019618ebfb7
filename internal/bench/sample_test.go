package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSample(t *testing.T) {
	s := sample{5, 1, 9}
	assert.EqualValues(t, 5, s.median())
	assert.EqualValues(t, 1, s.min())
	assert.EqualValues(t, 9, s.max())
	assert.EqualValues(t, 15, s.sum())
	assert.EqualValues(t, 3, append(s[:2:2], 1, 10).median())
	assert.Equal(t, sample{5, 1, 9}, s, "as it was")
	assert.InDelta(t, 0.5, s.over(sample{10, 1, 90}), 1e-9)
}

func TestTable(t *testing.T) {
	got := table{title: "T", how: "How.", header: []string{"", "a"}, rows: [][]string{{"x", "1"}}, result: "Target: met."}
	assert.Equal(t, "## T\n\nHow.\n\n|  | a |\n| --- | ---: |\n| x | 1 |\n\nTarget: met.\n", got.String())
	assert.Equal(t, "12.35 ms", ms(12_345_678))
	assert.Equal(t, "500.0 MB", megabytes(500_000_000))
	assert.Equal(t, "**missed**", met(false))
}
