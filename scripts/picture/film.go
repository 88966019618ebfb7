package main

import (
	"time"

	"heartbeat/internal/screen"
)

// film is a recording as a sequence of different screens.
type film struct {
	rows, cols int
	frames     []frame
	length     time.Duration
}

// frame is what the screen shows from a time on.
type frame struct {
	at    time.Duration
	cells [][]screen.Cell
}

const (
	fastest = time.Second / 15 // frames come no faster
	ending  = 5 * time.Second  // how long the last one stays
)

// film draws the recording in at most that many frames: where there would be more,
// they are spaced wider. A pause longer than idle is cut to it.
func (c *cast) film(idle time.Duration, most int) *film {
	for interval := fastest; ; interval = interval * 3 / 2 {
		frames := c.frames(interval)
		if len(frames) <= max(most, 1) {
			f := &film{rows: c.rows, cols: c.cols, frames: hurry(frames, idle)}
			f.length = f.frames[len(f.frames)-1].at + ending
			return f
		}
	}
}

// frames has one screen for each interval in which something changed.
func (c *cast) frames(interval time.Duration) []frame {
	terminal := screen.New(c.rows, c.cols)
	frames := []frame{{cells: terminal.Cells()}}
	for i, e := range c.events {
		_, _ = terminal.Write([]byte(e.text)) // it has no error
		if i+1 < len(c.events) && c.events[i+1].at/interval == e.at/interval {
			continue
		}
		if cells := terminal.Cells(); !alike(cells, frames[len(frames)-1].cells) {
			frames = append(frames, frame{e.at, cells})
		}
	}
	return frames
}

func alike(a, b [][]screen.Cell) bool {
	for y := range a {
		for x := range a[y] {
			if a[y][x] != b[y][x] {
				return false
			}
		}
	}
	return true
}

// hurry cuts every pause to idle.
func hurry(frames []frame, idle time.Duration) []frame {
	var cut, before time.Duration
	for i := range frames {
		at := frames[i].at
		cut += max(0, at-before-idle)
		before = at
		frames[i].at = at - cut
	}
	return frames
}
