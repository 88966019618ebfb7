package layout

import (
	"strings"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/words"
)

// gap is what stands between two columns.
const gap = "  "

// minText is the narrowest that a column of text is made before the table
// becomes wider than the terminal.
const minText = 16

// Column is one column of a [Table].
type Column struct {
	Title string
	// Right aligns numbers.
	Right bool
	// Text marks the column that gives way where the terminal is too narrow: its
	// cells are wrapped at words, or cut if Cut is set as well. One column of a
	// table may have it, the last one as a rule.
	Text bool
	Cut  bool
	// Style paints a cell by what it says.
	Style func(cell string) colour.Style
}

// Table collects rows until their widths are known. Without a title in any
// column it is printed without a header.
type Table struct {
	columns []Column
	rows    [][]string
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Add adds a row. Missing cells are empty. Each cell is one line: line breaks
// and what a terminal would act on are taken out of it.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.columns))
	for i := range min(len(row), len(cells)) {
		row[i] = strings.TrimSpace(words.Line(cells[i]))
	}
	t.rows = append(t.rows, row)
}

// Empty reports whether no row was added.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// render lays the table out for that many columns of a terminal; 0 is for no
// limit.
func (t *Table) render(width int, palette colour.Palette) string {
	widths := t.widths(width)
	var b strings.Builder
	if titles := t.titles(); titles != nil {
		t.line(&b, titles, widths, func(int, string) colour.Style { return colour.Bold }, palette)
	}
	for _, row := range t.rows {
		t.line(&b, row, widths, t.style, palette)
	}
	return b.String()
}

func (t *Table) titles() []string {
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	if strings.Join(titles, "") == "" {
		return nil
	}
	return titles
}

func (t *Table) style(column int, cell string) colour.Style {
	if style := t.columns[column].Style; style != nil {
		return style(cell)
	}
	return colour.Plain
}

// widths is how wide each column is. The column of text takes what the others
// leave.
func (t *Table) widths(width int) []int {
	widths, total, text := make([]int, len(t.columns)), 0, -1
	for i, c := range t.columns {
		widths[i] = Width(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		total += widths[i] + len(gap)
		if c.Text {
			text = i
		}
	}
	if over := total - len(gap) - width; width > 0 && over > 0 && text >= 0 {
		widths[text] = max(widths[text]-over, min(widths[text], minText))
	}
	return widths
}

// line prints a row, on as many lines as its text needs.
func (t *Table) line(b *strings.Builder, row []string, widths []int, style func(int, string) colour.Style, palette colour.Palette) {
	cells, height := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = []string{cell}
		switch c := t.columns[i]; {
		case c.Text && c.Cut:
			cells[i][0] = Cut(cell, widths[i])
		case c.Text:
			cells[i] = Wrap(cell, widths[i])
		}
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var parts []string
		for i := range row {
			part := ""
			if y < len(cells[i]) {
				part = cells[i][y]
			}
			padded := palette.Paint(style(i, row[i]), part)
			if blanks := strings.Repeat(" ", max(0, widths[i]-Width(part))); t.columns[i].Right {
				padded = blanks + padded
			} else {
				padded += blanks
			}
			parts = append(parts, padded)
		}
		b.WriteString(strings.TrimRight(strings.Join(parts, gap), " ") + "\n")
	}
}
