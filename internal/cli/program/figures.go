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

// Kinds of figures, as Prometheus names them.
const (
	Gauge   = "gauge"
	Counter = "counter"
)

// Figures collects metrics in Prometheus's text format 0.0.4. All series of a name stand together,
// even if another inbox's figures were added between them.
type Figures struct {
	Labels []string // of every series: names and values alternate

	names  []string // in order of first use
	blocks map[string]*strings.Builder
	now    *strings.Builder
}

// String returns the whole text.
func (t *Figures) String() string {
	var all strings.Builder
	for _, name := range t.names {
		all.WriteString(t.blocks[name].String())
	}
	return all.String()
}

// Head begins a figure, or continues it.
func (t *Figures) Head(name, kind, help string) {
	if t.now = t.blocks[name]; t.now != nil {
		return
	}
	if t.blocks == nil {
		t.blocks = map[string]*strings.Builder{}
	}
	t.now = &strings.Builder{}
	t.blocks[name], t.names = t.now, append(t.names, name)
	t.now.WriteString("# HELP " + name + " " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help) + "\n# TYPE " + name + " " + kind + "\n")
}

// Series adds a line to the current figure. In labels, names and values alternate. Invalid UTF-8, as in a path, becomes
// U+FFFD, because the format requires UTF-8.
func (t *Figures) Series(name string, v float64, labels ...string) {
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	t.now.WriteString(name + "{")
	comma := ""
	for _, all := range [][]string{t.Labels, labels} {
		for i := 0; i < len(all); i += 2 {
			t.now.WriteString(comma + all[i] + `="` + escape.Replace(strings.ToValidUTF8(all[i+1], "\uFFFD")) + `"`)
			comma = ","
		}
	}
	t.now.WriteString("} " + Value(v) + "\n")
}

// One adds a figure of a single line.
func (t *Figures) One(name, kind, help string, v float64) {
	t.Head(name, kind, help)
	t.Series(name, v)
}

// Value formats a number.
func Value(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Number is 1 for true, 0 for false.
func Number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// WriteFigures replaces a file atomically: a collector sees the old file or the new one, never a part. It refuses
// anything but a regular file, because renaming would replace a link itself and not its target.
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
	// Collectors read *.prom, so a temporary file must not have that ending.
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
