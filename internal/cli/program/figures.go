package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Kinds of figures.
const (
	Gauge   = "gauge"
	Counter = "counter"
)

// Figures are written in the text format that Prometheus reads, version 0.0.4. The series of a
// name stand together, also where those of another inbox come between.
type Figures struct {
	// Labels are those of every series, names and values by turns.
	Labels []string

	names  []string // in the order in which they began
	blocks map[string]*strings.Builder
	now    *strings.Builder
}

// String is the whole text.
func (t *Figures) String() string {
	var all strings.Builder
	for _, name := range t.names {
		all.WriteString(t.blocks[name].String())
	}
	return all.String()
}

// Head begins a figure, or goes on with it.
func (t *Figures) Head(name, kind, help string) {
	if t.now = t.blocks[name]; t.now != nil {
		return
	}
	if t.blocks == nil {
		t.blocks = map[string]*strings.Builder{}
	}
	t.now = &strings.Builder{}
	t.blocks[name], t.names = t.now, append(t.names, name)
	t.now.WriteString("# HELP " + name + " " + escapeHelp(help) + "\n# TYPE " + name + " " + kind + "\n")
}

// Series is one line of the figure that was begun last; labels are names and values by turns.
func (t *Figures) Series(name string, v float64, labels ...string) {
	t.now.WriteString(name + "{")
	comma := ""
	for _, all := range [][]string{t.Labels, labels} {
		for i := 0; i < len(all); i += 2 {
			t.now.WriteString(comma + all[i] + `="` + escapeLabel(all[i+1]) + `"`)
			comma = ","
		}
	}
	t.now.WriteString("} " + Value(v) + "\n")
}

// One is a figure of one line.
func (t *Figures) One(name, kind, help string, v float64) {
	t.Head(name, kind, help)
	t.Series(name, v)
}

// Maybe is a gauge that is absent where v is nil.
func (t *Figures) Maybe(name, help string, v *float64) {
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

// Label is a label's value as the format can hold it: paths may have bytes that are not
// UTF-8, the format may not.
func Label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func escapeLabel(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(Label(s))
}

func escapeHelp(s string) string { return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(s) }

// WriteFigures replaces a file, so that a collector sees the old one or the new one,
// never a half. It refuses what is no regular file: a link itself would be replaced,
// not the file that it leads to.
func WriteFigures(path string, content []byte) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("write figures: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("write figures: %s is a symbolic link, which is not followed: name the file itself", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("write figures: %s is not a regular file: choose another name", path)
	}
	// A collector reads *.prom, so the name of a part must not end in that.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
