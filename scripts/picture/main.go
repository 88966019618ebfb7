// Picture draws a recorded terminal session as an animated SVG. It uses CSS and no
// script, because a page that shows the SVG as an image runs none.
//
//	go run ./scripts/picture < session.cast > docs/session.svg
//
// It reads asciicast v2, as heartbeat-launch --record writes it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	title := flag.String("title", "A recorded terminal session", "what a screen reader says of the picture")
	idle := flag.Duration("idle", 2*time.Second, "cut every pause to this")
	frames := flag.Int("frames", 400, "draw at most this many frames")
	flag.Parse()
	if err := draw(*title, *idle, *frames); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func draw(title string, idle time.Duration, frames int) error {
	c, err := read(os.Stdin)
	if err != nil {
		return fmt.Errorf("read the recording on stdin: %w", err)
	}
	out := bufio.NewWriter(os.Stdout)
	c.film(idle, frames).write(out, title)
	return out.Flush()
}
