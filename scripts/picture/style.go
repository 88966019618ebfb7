package main

import (
	"fmt"
	"io"

	"github.com/hinshun/vt10x"

	"heartbeat/internal/screen"
)

// The window is dark, with a border, so that it stands out from light and from
// dark pages.
const (
	foreground = "#e6edf3"
	background = "#161b22"
	border     = "#6e7681"
)

// ansi are the first 16 colours of the palette.
var ansi = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// hex is a colour of the emulator in CSS.
func hex(c vt10x.Color) string {
	switch {
	case c == vt10x.DefaultFG:
		return foreground
	case c == vt10x.DefaultBG:
		return background
	case c < 16:
		return ansi[c]
	case c < 232:
		cube := [6]int{0, 95, 135, 175, 215, 255}
		n := c - 16
		return fmt.Sprintf("#%02x%02x%02x", cube[n/36], cube[n/6%6], cube[n%6])
	case c < 256:
		grey := 8 + 10*(c-232)
		return fmt.Sprintf("#%02x%02[1]x%02[1]x", grey)
	default:
		return fmt.Sprintf("#%06x", uint32(c)&0xffffff)
	}
}

// backgroundOf is empty where the window itself shows.
func backgroundOf(c vt10x.Color) string {
	if c == vt10x.DefaultBG {
		return ""
	}
	return hex(c)
}

// styles gives every look of a text a class with a short name.
type styles struct {
	names map[string]string
	rules []string // in order of first use
}

func newStyles() *styles { return &styles{names: map[string]string{}} }

// class is empty for a plain text.
func (s *styles) class(c screen.Cell) string {
	rule := ""
	if c.FG != vt10x.DefaultFG {
		rule += "fill:" + hex(c.FG) + ";"
	}
	if c.Bold {
		rule += "font-weight:bold;"
	}
	if c.Italic {
		rule += "font-style:italic;"
	}
	if c.Underline {
		rule += "text-decoration:underline;"
	}
	if rule == "" {
		return ""
	}
	if s.names[rule] == "" {
		s.names[rule] = fmt.Sprintf("c%d", len(s.rules))
		s.rules = append(s.rules, rule)
	}
	return s.names[rule]
}

func (s *styles) write(w io.Writer) {
	for _, rule := range s.rules {
		fmt.Fprintf(w, ".%s{%s}\n", s.names[rule], rule)
	}
}
