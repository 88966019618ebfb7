package layout

import (
	"slices"
	"strings"

	"heartbeat/internal/words"
)

const gap = "  " // separates two columns

// minText is the least width of a text column. A table that needs more room becomes wider than the terminal.
const minText = 16

// Column is one column of a [Table].
type Column struct {
	Title string
	Right bool // align to the right, for numbers
	// Text marks a column that gives way on a narrow terminal: its cells are wrapped, or cut if Cut
	// is set too. Several text columns share the room that the others leave.
	Text  bool
	Cut   bool
	Least int  // the least width, for a table that continues with rows not known yet
	Most  int  // the greatest width of a text column at a terminal
	IfAny bool // hide the column while all its cells are empty
	// Late drops an empty last cell from a program's line: programs had learned to read the others before.
	Late bool
	// Keep ranks the column on a screen without room for all: the lowest rank is left out first. See [Table.Screen].
	Keep  int
	Style func(cell string) Style // of a cell's text, nil for Plain
}

// Table collects rows until their widths are known. A table whose columns have titles is a list: see [Output.Table].
type Table struct {
	columns []Column
	rows    []row
	shown   []int // the column widths of what was already printed
	screen  bool  // no line may be wider than the terminal: columns are left out
}

type row struct {
	cells []string
	fit   fit
}

// fit decides what happens to a text that is wider than its column.
type fit int

const (
	byColumn fit = iota // the column's Text and Cut decide
	cut
	whole
)

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Add adds a row. Missing cells are empty. Line breaks and control sequences are removed from each cell.
func (t *Table) Add(cells ...string) { t.add(cells, byColumn) }

// AddLine is [Table.Add] for a row of one line: its texts are cut where they would be wrapped.
func (t *Table) AddLine(cells ...string) { t.add(cells, cut) }

// AddWhole is [Table.Add] for a row to copy from, such as a command: its texts are neither wrapped nor cut.
func (t *Table) AddWhole(cells ...string) { t.add(cells, whole) }

func (t *Table) add(cells []string, fit fit) {
	r := row{make([]string, len(t.columns)), fit}
	for i := range min(len(r.cells), len(cells)) {
		r.cells[i] = strings.TrimSpace(words.Line(cells[i]))
	}
	t.rows = append(t.rows, r)
}

// Len returns how many rows were added since the table was last printed.
func (t *Table) Len() int { return len(t.rows) }

// flush lays out and removes the collected rows. Only the first call includes the titles.
func (t *Table) flush(width int, palette Palette) string {
	defer func() { t.rows = nil }()
	var b strings.Builder
	if width == 0 && t.isList() { // for programs: one row a line, cells between tabs
		for _, row := range t.rows {
			cells := row.cells
			for last := len(cells) - 1; t.columns[last].Late && cells[last] == ""; last-- {
				cells = cells[:last]
			}
			b.WriteString(strings.Join(cells, "\t") + "\n")
		}
		return b.String()
	}
	first := t.shown == nil
	t.widths(width)
	if first && t.isList() {
		t.line(&b, row{cells: t.titles()}, func(int, string) Style { return Bold }, palette)
	}
	for _, row := range t.rows {
		t.line(&b, row, t.style, palette)
	}
	return b.String()
}

// Screen returns the titles and count rows from first on, as a screen of that width shows them.
// Cells without room are cut. The chosen row gets a mark that shows without colour too.
func (t *Table) Screen(width, first, count, chosen int, palette Palette) (lines []string) {
	part := Table{columns: slices.Clone(t.columns), rows: t.rows, screen: true}
	for i := range part.columns {
		part.columns[i].Text, part.columns[i].Cut = true, true
	}
	part.widths(width - 2)
	draw := func(mark string, r row, style func(int, string) Style) {
		var b strings.Builder
		part.line(&b, r, style, palette)
		lines = append(lines, mark+strings.TrimSuffix(b.String(), "\n"))
	}
	draw("  ", row{cells: t.titles()}, func(int, string) Style { return Bold })
	for n := first; n < min(len(t.rows), first+count); n++ {
		if n != chosen {
			draw("  ", t.rows[n], t.style)
			continue
		}
		draw(palette.Paint(Bold, ">")+" ", t.rows[n], func(i int, cell string) Style {
			if t.columns[i].Style != nil {
				return t.style(i, cell)
			}
			return Bold
		})
	}
	return lines
}

func (t *Table) isList() bool { return strings.Join(t.titles(), "") != "" }

func (t *Table) titles() []string {
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	return titles
}

func (t *Table) style(column int, cell string) Style {
	if style := t.columns[column].Style; style != nil {
		return style(cell)
	}
	return Plain
}

const absent = -1 // the width of a column that is left out

func (t *Table) widths(width int) {
	before := t.shown
	t.shown = make([]int, len(t.columns))
	total, out := -len(gap), t.noRoom(width)
	for i, c := range t.columns {
		widest := c.Least
		for _, row := range t.rows {
			widest = max(widest, Width(row.cells[i]))
		}
		if c.Most > 0 && c.Text && width > 0 {
			widest = min(widest, c.Most)
		}
		if before != nil {
			widest = max(widest, before[i])
		}
		if c.IfAny && widest <= 0 || out[i] {
			t.shown[i] = absent
			continue
		}
		t.shown[i] = max(widest, Width(c.Title))
		total += t.shown[i] + len(gap)
	}
	if width > 0 {
		t.narrow(total-width, width)
	}
}

// noRoom returns the columns that a screen must leave out, since all at their least width would be too wide.
func (t *Table) noRoom(width int) map[int]bool {
	out := map[int]bool{}
	for t.screen {
		total, lowest := -len(gap), -1
		for i, c := range t.columns {
			if out[i] {
				continue
			}
			total += c.Least + len(gap)
			if lowest < 0 || c.Keep < t.columns[lowest].Keep {
				lowest = i
			}
		}
		if total <= width || len(out) == len(t.columns)-1 {
			break
		}
		out[lowest] = true
	}
	return out
}

// narrow takes the excess width off the text columns, always off the widest.
func (t *Table) narrow(over, width int) {
	for ; over > 0; over-- {
		widest := -1
		for i, c := range t.columns {
			least := minText
			if t.screen {
				least = max(1, min(c.Least, width))
			}
			if c.Text && t.shown[i] > least && (widest < 0 || t.shown[i] >= t.shown[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.shown[widest]--
	}
}

// line prints a row on as many lines as its texts need.
func (t *Table) line(b *strings.Builder, row row, style func(int, string) Style, palette Palette) {
	cells, height := make([][]string, len(row.cells)), 1
	for i, cell := range row.cells {
		cells[i] = []string{cell}
		switch c := t.columns[i]; {
		case !c.Text || row.fit == whole:
		case c.Cut || row.fit == cut:
			cells[i][0] = Cut(cell, t.shown[i])
		default:
			cells[i] = Wrap(cell, t.shown[i])
		}
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var parts []string
		for i, cell := range row.cells {
			if t.shown[i] == absent {
				continue
			}
			part := ""
			if y < len(cells[i]) {
				part = cells[i][y]
			}
			padded := palette.Paint(style(i, cell), part)
			if blanks := strings.Repeat(" ", max(0, t.shown[i]-Width(part))); t.columns[i].Right {
				padded = blanks + padded
			} else {
				padded += blanks
			}
			parts = append(parts, padded)
		}
		b.WriteString(strings.TrimRight(strings.Join(parts, gap), " ") + "\n")
	}
}
