// Package exposition writes figures in the text format that Prometheus reads, version
// 0.0.4.
package exposition

import (
	"strconv"
	"strings"
)

// Kinds of figures.
const (
	Gauge   = "gauge"
	Counter = "counter"
)

// Text is an exposition that is being written.
type Text struct {
	strings.Builder
	// Labels are those of every series, names and values by turns.
	Labels []string
}

// Head begins a figure.
func (t *Text) Head(name, kind, help string) {
	t.WriteString("# HELP " + name + " " + escapeHelp(help) + "\n# TYPE " + name + " " + kind + "\n")
}

// Series is one line of it; labels are names and values by turns.
func (t *Text) Series(name string, v float64, labels ...string) {
	t.WriteString(name + "{")
	comma := ""
	for _, all := range [][]string{t.Labels, labels} {
		for i := 0; i < len(all); i += 2 {
			t.WriteString(comma + all[i] + `="` + escapeLabel(all[i+1]) + `"`)
			comma = ","
		}
	}
	t.WriteString("} " + Value(v) + "\n")
}

// One is a figure of one line.
func (t *Text) One(name, kind, help string, v float64) {
	t.Head(name, kind, help)
	t.Series(name, v)
}

// Maybe is a gauge that is absent where v is nil.
func (t *Text) Maybe(name, help string, v *float64) {
	if v != nil {
		t.One(name, Gauge, help, *v)
	}
}

// Value spells a number.
func Value(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Number is 1 for true.
func Number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// escapeLabel also replaces bytes that are not UTF-8: paths may have them, the format
// may not.
func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

func escapeHelp(s string) string { return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(s) }
