// Picture draws a recorded terminal session as an animated SVG. It uses CSS and no
// script, because a page that shows the SVG as an image runs none.
//
//	go run ./scripts/picture < session.cast > docs/session.svg
//
// It reads asciicast v2, as heartbeat-launch --record writes it.
package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hinshun/vt10x"

	"heartbeat/internal/screen"
)

const (
	pause   = 2 * time.Second  // the longest: a longer one is cut to it
	ending  = 5 * time.Second  // how long the last frame stays
	fastest = time.Second / 15 // frames come no faster, and slower where there would be too many
	frames  = 400
	maxSide = 500 // rows or columns of a recording, which somebody else may have made

	cellWidth, cellHeight = 8.4, 18 // in the picture's own units, as is what follows
	baseline, margin      = 13.5, 12
)

func main() {
	title := flag.String("title", "A recorded terminal session", "what a screen reader says of the picture")
	flag.Parse()
	picture, err := draw(os.Stdin, *title)
	if err == nil {
		_, err = os.Stdout.Write(picture)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture: draw the recording on stdin:", err)
		os.Exit(1)
	}
}

// frame is what each row of the screen shows, as SVG at the origin, from a time on.
type frame struct {
	at   time.Duration
	rows []string
}

// draw returns the picture of a recording. The same recording always gives the same
// bytes, so that a repeated picture shows no difference in git.
func draw(recording io.Reader, title string) ([]byte, error) {
	in := json.NewDecoder(recording)
	var head struct{ Version, Width, Height int }
	if err := in.Decode(&head); err != nil {
		return nil, fmt.Errorf("its first line: %w", err)
	}
	if head.Version != 2 {
		return nil, fmt.Errorf("it is version %d of asciicast, and only version 2 is read", head.Version)
	}
	if min(head.Width, head.Height) < 1 || max(head.Width, head.Height) > maxSide {
		return nil, fmt.Errorf("a terminal of %dx%d cannot be drawn", head.Width, head.Height)
	}
	terminal := screen.New(head.Height, head.Width)
	all := []frame{{rows: shown(terminal.Picture())}}
	for event := 1; ; event++ {
		var seconds float64
		var kind, text string
		err := in.Decode(&[]any{&seconds, &kind, &text})
		if kind == "r" {
			err = errors.New("the terminal changed its size: record the session in one size")
		}
		if errors.Is(err, io.EOF) {
			return film(all, head.Width, title), nil
		}
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", event, err)
		}
		if kind == "o" {
			_, _ = terminal.Write([]byte(text)) // it has no error
			all = append(all, frame{time.Duration(seconds * float64(time.Second)), shown(terminal.Picture())})
		}
	}
}

// thin leaves one frame to an interval in which something changed, the last one, and cuts
// pauses.
func thin(all []frame) (kept []frame) {
	for interval := fastest; len(kept) == 0 || len(kept) > frames; interval = interval * 3 / 2 {
		kept = kept[:0]
		for i, f := range all {
			followed := i > 0 && i+1 < len(all) && all[i+1].at/interval == f.at/interval
			if !followed && (i == 0 || !slices.Equal(f.rows, kept[len(kept)-1].rows)) {
				kept = append(kept, f)
			}
		}
	}
	var before, cut time.Duration
	for i := range kept {
		at := kept[i].at
		cut += max(0, at-before-pause)
		kept[i].at, before = at-cut, at
	}
	return kept
}

// film draws each row as a strip: all that it ever shows lies side by side, and the strip
// moves by whole widths behind a window one row high. What is shown more than once, in a
// row or in another, is drawn once. For a reader who asked for reduced motion all stand
// still at the end.
func film(all []frame, cols int, title string) []byte {
	all = thin(all)
	length := all[len(all)-1].at + ending
	inner := int(float64(cols)*cellWidth + 0.5)
	width, height := inner+2*margin, len(all[0].rows)*cellHeight+2*margin
	var rules, drawn, strips bytes.Buffer
	names := map[string]string{"": ""}
	for y := range all[0].rows {
		places, at, turns := map[string]int{}, -1, ""
		fmt.Fprintf(&strips, `<svg y="%d" width="%d" height="%d"><g id="s%d" class="s">`, y*cellHeight, inner, cellHeight, y)
		for _, f := range all {
			show := f.rows[y]
			place, known := places[show]
			if !known {
				place = len(places)
				places[show] = place
				if names[show] == "" && show != "" {
					names[show] = fmt.Sprintf("d%d", len(names))
					fmt.Fprintf(&drawn, "<g id=%q>%s</g>\n", names[show], show)
				}
				if show != "" {
					fmt.Fprintf(&strips, `<use href="#%s" x="%d"/>`, names[show], place*width)
				}
			}
			if place != at {
				at = place
				turns += fmt.Sprintf("%s%%{transform:translateX(%dpx)}", number(100*f.at.Seconds()/length.Seconds()), -at*width)
			}
		}
		fmt.Fprint(&strips, "</g></svg>\n")
		if len(places) > 1 {
			fmt.Fprintf(&rules, "#s%d{animation-name:k%[1]d;transform:translateX(%dpx)}@keyframes k%[1]d{%[3]s}\n", y, -at*width, turns)
		}
	}
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" xml:space="preserve"><title>%s</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:%s;white-space:pre}
g.s{animation-duration:%.2fs;animation-timing-function:step-end;animation-iteration-count:infinite}
%s@media (prefers-reduced-motion:reduce){g.s{animation:none!important}}
</style>
<defs>%s</defs>
<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>
<svg x="%d" y="%[12]d" width="%d" height="%d">
%s</svg>
</svg>
`, width, height, escape(title), colour(vt10x.DefaultFG), length.Seconds(), &rules, &drawn,
		width-1, height-1, colour(vt10x.DefaultBG), colour(8), margin, inner, height-2*margin, &strips)
	return svg.Bytes()
}

// shown draws each row in runs of one look. A run states its length, which keeps the
// columns in line whatever font the reader has. A visible cursor swaps the colours.
func shown(p screen.Picture) []string {
	if p.Cursor {
		at := &p.Rows[p.Y][p.X].Look
		at.FG, at.BG = at.BG, at.FG
	}
	all := make([]string, len(p.Rows))
	for y, row := range p.Rows {
		for x := 0; x < len(row); {
			look, from, text := row[x].Look, x, ""
			for ; x < len(row) && (row[x].Char == 0 || row[x].Look == look); x++ {
				if row[x].Char != 0 { // the second half of a wide one goes with the first
					text += string(row[x].Char)
				}
			}
			all[y] += run(from, x-from, text, look)
		}
	}
	return all
}

func run(x, cells int, text string, look screen.Look) (svg string) {
	if look.BG != vt10x.DefaultBG {
		svg = fmt.Sprintf(`<rect x="%s" width="%s" height="%d" fill="%s"/>`, column(x), column(cells), cellHeight, colour(look.BG))
	}
	body := strings.TrimLeft(text, " ")
	x, cells = x+len(text)-len(body), cells-(len(text)-len(body))
	cells -= len(body) - len(strings.TrimRight(body, " "))
	if body = strings.TrimRight(body, " "); body == "" {
		return svg
	}
	svg += fmt.Sprintf(`<text x="%s" y="%s" textLength="%s"`, column(x), number(baseline), column(cells))
	if look.FG != vt10x.DefaultFG {
		svg += fmt.Sprintf(` style="fill:%s"`, colour(look.FG))
	}
	// The bits of the emulator, which it does not export.
	for bit, attribute := range []string{1: ` text-decoration="underline"`, 2: ` font-weight="bold"`, 4: ` font-style="italic"`} {
		if look.Mode&(1<<bit) != 0 {
			svg += attribute
		}
	}
	return svg + ">" + escape(body) + "</text>"
}

// colour is one of the emulator's in CSS. The window is dark, with a border, so that it
// stands out from light and from dark pages.
func colour(c vt10x.Color) string {
	switch {
	case c == vt10x.DefaultFG:
		return "#e6edf3"
	case c == vt10x.DefaultBG:
		return "#161b22"
	case c < 16:
		return strings.Fields("#484f58 #ff7b72 #3fb950 #d29922 #58a6ff #bc8cff #39c5cf #b1bac4 #6e7681 #ffa198 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd #ffffff")[c]
	case c < 232:
		cube := [6]int{0, 95, 135, 175, 215, 255}
		return fmt.Sprintf("#%02x%02x%02x", cube[(c-16)/36], cube[(c-16)/6%6], cube[(c-16)%6])
	case c < 256:
		return fmt.Sprintf("#%02x%02[1]x%02[1]x", 8+10*(c-232))
	}
	return fmt.Sprintf("#%06x", uint32(c)&0xffffff)
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
