package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"heartbeat/internal/screen"
)

// Sizes in the picture, in its own units.
const (
	cellWidth  = 8.4
	cellHeight = 18
	baseline   = 13.5 // of a row's text, from its top
	margin     = 12
)

// strip is one row of the screen through the whole film. Everything that the row
// ever shows lies side by side, and the strip moves behind a window one row high.
type strip struct {
	shows []string // SVG, drawn at the origin
	turns []turn
}

// turn is a moment at which a strip moves.
type turn struct {
	share float64 // of the film, in percent
	show  int
}

// write prints the SVG. The same recording always gives the same bytes, so that a
// repeated picture shows no difference in git.
func (f *film) write(w io.Writer, title string) {
	styles := newStyles()
	strips := make([]strip, f.rows)
	uses := map[string]int{}
	for y := range strips {
		strips[y] = f.strip(y, styles)
		for _, show := range strips[y].shows {
			uses[show]++
		}
	}
	width, height := f.width(), f.rows*cellHeight+2*margin
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" xml:space="preserve">`, width, height)
	fmt.Fprintf(w, "<title>%s</title>\n<style>\n", escape(title))
	fmt.Fprintf(w, "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:%s;white-space:pre}\n", foreground)
	fmt.Fprintf(w, "g.s{animation-duration:%.2fs;animation-timing-function:step-end;animation-iteration-count:infinite}\n", f.length.Seconds())
	f.animate(w, strips)
	styles.write(w)
	fmt.Fprint(w, "@media (prefers-reduced-motion:reduce){g.s{animation:none!important}}\n</style>\n")
	names := define(w, strips, uses)
	fmt.Fprintf(w, `<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, background, border)
	fmt.Fprintf(w, `<svg x="%d" y="%d" width="%d" height="%d">`+"\n", margin, margin, width-2*margin, height-2*margin)
	for y, s := range strips {
		f.place(w, y, s, names)
	}
	fmt.Fprint(w, "</svg>\n</svg>\n")
}

func (f *film) width() int { return int(float64(f.cols)*cellWidth+0.5) + 2*margin }

// strip collects what a row shows.
func (f *film) strip(y int, styles *styles) strip {
	var s strip
	known := map[string]int{}
	for _, frame := range f.frames {
		drawn := drawRow(frame.cells[y], styles)
		show, seen := known[drawn]
		if !seen {
			show = len(s.shows)
			known[drawn] = show
			s.shows = append(s.shows, drawn)
		}
		if n := len(s.turns); n > 0 && s.turns[n-1].show == show {
			continue
		}
		s.turns = append(s.turns, turn{100 * frame.at.Seconds() / f.length.Seconds(), show})
	}
	return s
}

// animate moves the strips by whole widths. For a reader who asked for reduced
// motion they stand still at the end.
func (f *film) animate(w io.Writer, strips []strip) {
	for y, s := range strips {
		last := s.turns[len(s.turns)-1].show
		if len(s.turns) == 1 {
			continue
		}
		fmt.Fprintf(w, "#s%d{animation-name:k%[1]d;transform:translateX(%dpx)}@keyframes k%[1]d{", y, -last*f.width())
		for _, t := range s.turns {
			fmt.Fprintf(w, "%s%%{transform:translateX(%dpx)}", number(t.share), -t.show*f.width())
		}
		fmt.Fprint(w, "}\n")
	}
}

// define names what more than one row shows. When a screen scrolls that is nearly
// everything.
func define(w io.Writer, strips []strip, uses map[string]int) map[string]string {
	names := map[string]string{}
	fmt.Fprint(w, "<defs>")
	for _, s := range strips {
		for _, show := range s.shows {
			if show == "" || uses[show] < 2 || names[show] != "" {
				continue
			}
			names[show] = fmt.Sprintf("d%d", len(names))
			fmt.Fprintf(w, "<g id=%q>%s</g>\n", names[show], show)
		}
	}
	fmt.Fprint(w, "</defs>\n")
	return names
}

// place draws a strip where its row is.
func (f *film) place(w io.Writer, y int, s strip, names map[string]string) {
	fmt.Fprintf(w, `<svg y="%d" width="%d" height="%d"><g id="s%d" class="s">`, y*cellHeight, f.width()-2*margin, cellHeight, y)
	for i, show := range s.shows {
		at := i * f.width()
		switch {
		case show == "":
		case names[show] != "":
			fmt.Fprintf(w, `<use href="#%s" x="%d"/>`, names[show], at)
		case at == 0:
			fmt.Fprint(w, show)
		default:
			fmt.Fprintf(w, `<g transform="translate(%d)">%s</g>`, at, show)
		}
	}
	fmt.Fprint(w, "</g></svg>\n")
}

// drawRow draws a row in runs of one style. Each run states its length, which keeps
// the columns in line whatever font the reader has.
func drawRow(row []screen.Cell, styles *styles) string {
	var b strings.Builder
	for x := 0; x < len(row); {
		end := x + 1
		for end < len(row) && sameRun(row[x], row[end]) {
			end++
		}
		drawRun(&b, x, row[x:end], styles)
		x = end
	}
	return b.String()
}

// sameRun reports whether two cells are drawn alike. The second half of a wide
// character goes with the first.
func sameRun(a, b screen.Cell) bool {
	return b.Char == 0 || a.FG == b.FG && a.BG == b.BG && a.Bold == b.Bold && a.Italic == b.Italic && a.Underline == b.Underline
}

func drawRun(b *strings.Builder, x int, run []screen.Cell, styles *styles) {
	if fill := backgroundOf(run[0].BG); fill != "" {
		fmt.Fprintf(b, `<rect x="%s" width="%s" height="%d" fill="%s"/>`, column(x), column(len(run)), cellHeight, fill)
	}
	var text strings.Builder
	for _, c := range run {
		if c.Char != 0 {
			text.WriteRune(c.Char)
		}
	}
	shown := strings.TrimRight(text.String(), " ")
	if shown == "" {
		return
	}
	blanks := len(text.String()) - len(shown)
	body := strings.TrimLeft(shown, " ")
	x += len(shown) - len(body)
	cells := len(run) - blanks - (len(shown) - len(body))
	fmt.Fprintf(b, `<text x="%s" y="%s"`, column(x), number(baseline))
	if cells > 1 {
		fmt.Fprintf(b, ` textLength="%s"`, column(cells))
	}
	if class := styles.class(run[0]); class != "" {
		fmt.Fprintf(b, ` class="%s"`, class)
	}
	fmt.Fprintf(b, ">%s</text>", escape(body))
}

func column(x int) string { return number(float64(x) * cellWidth) }

// number is short: at most three digits behind the point, and none in vain.
func number(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", f), "0"), ".")
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}
