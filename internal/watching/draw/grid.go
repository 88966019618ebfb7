package draw

import (
	"slices"
	"strings"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
)

const gap = "  "

// column is one column of a list.
type column struct {
	title string
	right bool
	// least is the narrowest that it is drawn. It gets as much as its cells need if there
	// is room, and most at most unless that is 0.
	least, most int
	// keep says how long it stays in a terminal that is narrow: the lowest goes first.
	keep  int
	style func(row int) colour.Style
}

// grid is a list, or the part of one that fits.
type grid struct {
	columns []column
	rows    [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// lines draws the titles and the rows from first on, count at most. The row that is
// chosen has a mark, which shows without colour too.
func (g *grid) lines(width, first, count, chosen int, paint colour.Palette) []string {
	widths := g.widths(width - 2)
	var all []string
	all = append(all, "  "+g.line(widths, func(i int) string { return g.columns[i].title }, func(int) colour.Style { return colour.Bold }, paint))
	for n := first; n < len(g.rows) && n < first+count; n++ {
		mark := "  "
		if n == chosen {
			mark = paint.Paint(colour.Bold, ">") + " "
		}
		all = append(all, mark+g.line(widths, func(i int) string { return g.rows[n][i] }, func(i int) colour.Style {
			if style := g.columns[i].style; style != nil {
				return style(n)
			}
			if n == chosen {
				return colour.Bold
			}
			return colour.Plain
		}, paint))
	}
	return all
}

func (g *grid) line(widths []int, cell func(int) string, style func(int) colour.Style, paint colour.Palette) string {
	var b strings.Builder
	for i, c := range g.columns {
		if widths[i] == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(gap)
		}
		text := layout.Cut(cell(i), widths[i])
		pad := strings.Repeat(" ", widths[i]-layout.Width(text))
		if c.right {
			b.WriteString(pad)
		}
		b.WriteString(paint.Paint(style(i), text))
		if !c.right {
			b.WriteString(pad)
		}
	}
	return b.String()
}

// widths decides how wide each column is, 0 for one that is left out.
func (g *grid) widths(width int) []int {
	shown := make([]bool, len(g.columns))
	for i := range shown {
		shown[i] = true
	}
	for g.total(shown) > width {
		least := -1
		for i, c := range g.columns {
			if shown[i] && (least < 0 || c.keep < g.columns[least].keep) {
				least = i
			}
		}
		if shown[least] = false; !slices.Contains(shown, true) {
			shown[least] = true // alone, and cut
			widths := make([]int, len(g.columns))
			widths[least] = max(1, width)
			return widths
		}
	}
	widths := make([]int, len(g.columns))
	left := width - g.total(shown)
	for i, c := range g.columns {
		if shown[i] {
			widths[i] = c.least
		}
	}
	for left > 0 {
		grew := false
		for i := range g.columns {
			if shown[i] && left > 0 && widths[i] < g.need(i) {
				widths[i]++
				left--
				grew = true
			}
		}
		if !grew {
			break
		}
	}
	return widths
}

func (g *grid) total(shown []bool) int {
	sum := -len(gap)
	for i, c := range g.columns {
		if shown[i] {
			sum += c.least + len(gap)
		}
	}
	return sum
}

// need is how wide the column's cells are.
func (g *grid) need(column int) int {
	need := layout.Width(g.columns[column].title)
	for _, row := range g.rows {
		need = max(need, layout.Width(row[column]))
	}
	if most := g.columns[column].most; most > 0 {
		return min(need, most)
	}
	return need
}
