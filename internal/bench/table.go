package main

import (
	"fmt"
	"strings"
)

// table is the result of a measure, for docs/benchmarks.md.
type table struct {
	title  string
	how    string // how it was measured
	header []string
	rows   [][]string
	result string // a sentence, with the target
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns Markdown. The first column has names, the others figures.
func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", t.title, t.how)
	rule := append([]string{"---"}, make([]string, len(t.header)-1)...)
	for i := range rule[1:] {
		rule[i+1] = "---:"
	}
	for _, row := range append([][]string{t.header, rule}, t.rows...) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	if t.result != "" {
		fmt.Fprintf(&b, "\n%s\n", t.result)
	}
	return b.String()
}
