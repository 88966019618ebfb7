package sharing

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"time"

	"heartbeat/internal/screen"
	"heartbeat/internal/words"
)

// watcher is an attached person. The server's lock guards what changes.
type watcher struct {
	conn        *net.UnixConn
	session     *Session
	key         string // the key that detaches
	onlyWatches bool   // it never types
	types       bool
	is          size
	changed     chan struct{} // there may be something to draw
	over        chan struct{} // closed once why is set
	why         string
}

// maxKey is the longest name of a key to show, in bytes.
const maxKey = 16

// end sends the watcher away. The first reason counts.
func (w *watcher) end(why string) {
	select {
	case <-w.over:
	default:
		w.why = why
		close(w.over)
	}
}

// send sends pictures until the watcher's end, and then the reason for the end. A watcher that reads
// nothing misses pictures and is dropped after drawPatience.
func (s *Server) send(w *watcher) {
	_ = w.conn.SetWriteDeadline(time.Now().Add(drawPatience)) // sockets have deadlines
	if writeJSON(w.conn, frameHello, hello{Version: version, Session: w.session.Name()}) != nil {
		return
	}
	var shown canvas
	for {
		select {
		case <-w.over:
			_ = w.conn.SetWriteDeadline(time.Now().Add(helloPatience))
			_ = writeFrame(w.conn, frameBye, []byte(w.why)) // on an error the watcher is gone
			return
		case <-w.changed:
		}
		s.mu.Lock()
		is, line := w.is, w.line()
		s.mu.Unlock()
		if is != shown.size {
			shown = canvas{size: is} // after a change of size a terminal may show anything
		}
		if b := shown.draw(w.session.Screen.Picture(), line); b != nil {
			_ = w.conn.SetWriteDeadline(time.Now().Add(drawPatience)) // likewise
			if writeFrame(w.conn, frameDraw, b) != nil {
				return
			}
		}
		select {
		case <-time.After(drawEvery):
		case <-w.over:
		}
	}
}

// line returns the status line below the session, most important part first.
func (w *watcher) line() string {
	text := " heartbeat: "
	switch {
	case w.types:
		text += "you type"
	case w.onlyWatches:
		text += "you watch"
	default:
		text += "somebody else types (--take)"
	}
	if w.key != "" {
		text += ", " + w.key + " leaves the session to itself"
	}
	return words.Line(text + " (" + words.Short(w.session.Name()) + ")")
}

// enterScreen sets up a watcher's terminal. leaveScreen restores it: the main screen, a visible cursor, no style,
// and none of the modes that a picture may set.
const (
	enterScreen = "\x1b[?1049h\x1b[0m\x1b[2J\x1b[H"
	leaveScreen = "\x1b[0m\x1b[?2004l\x1b[?1l\x1b[?25h\x1b[?1049l"
)

// canvas is what a watcher's terminal shows now.
type canvas struct {
	size
	rows  [][]screen.Cell // nil where unknown
	modes string
}

// draw returns what makes the terminal show a picture with a status line below it, nil if it shows them already.
func (c *canvas) draw(p screen.Picture, line string) []byte {
	height := c.Rows
	if c.Rows > 1 {
		height--
	}
	top := 0 // the first row shown of a taller picture, so that the cursor is visible
	if len(p.Rows) > height {
		top = min(len(p.Rows)-height, max(0, p.Y-height+1))
	}
	want := make([][]screen.Cell, c.Rows)
	for y := range want {
		switch at := top + y; {
		case y >= height:
			want[y] = statusRow(line, c.Cols)
		case at < len(p.Rows):
			want[y] = shorten(p.Rows[at], c.Cols)
		}
	}
	var out bytes.Buffer
	if c.rows == nil {
		c.rows = make([][]screen.Cell, c.Rows)
		out.WriteString("\x1b[0m\x1b[2J")
	}
	for y, row := range want {
		if !slices.Equal(row, c.rows[y]) {
			fmt.Fprintf(&out, "\x1b[%d;1H", y+1)
			writeRow(&out, row)
		}
	}
	c.rows = want
	letter, y := map[bool]byte{true: 'h', false: 'l'}, p.Y-top
	seen := p.Cursor && y >= 0 && y < height && p.X < c.Cols
	modes := fmt.Sprintf("\x1b[?1%c\x1b[?2004%c\x1b[%d;%dH\x1b[?25%c",
		letter[p.CursorKeys], letter[p.Paste], min(max(y, 0), height-1)+1, min(p.X, c.Cols-1)+1, letter[seen])
	if out.Len() == 0 && modes == c.modes {
		return nil
	}
	c.modes = modes
	return append(append([]byte("\x1b[?25l"), out.Bytes()...), modes...)
}

// shorten shortens a row to cols columns. Half of a wide character becomes a blank.
func shorten(row []screen.Cell, cols int) []screen.Cell {
	if len(row) <= cols {
		return row
	}
	if row[cols].Char != 0 {
		return row[:cols]
	}
	row = slices.Clone(row[:cols])
	row[cols-1].Char = ' '
	return row
}

func statusRow(line string, cols int) []screen.Cell {
	row := slices.Repeat([]screen.Cell{{Char: ' ', Look: screen.Reversed}}, cols)
	for x, c := range []rune(line) {
		if x < cols {
			row[x].Char = c
		}
	}
	return row
}

// writeRow draws a row from its first column on. It clears the line first: clearing behind the last
// column would delete the last character.
func writeRow(out *bytes.Buffer, row []screen.Cell) {
	blank := screen.Cell{Char: ' ', Look: screen.Plain}
	for len(row) > 0 && row[len(row)-1] == blank {
		row = row[:len(row)-1]
	}
	look := screen.Plain
	out.WriteString(look.Sequence() + "\x1b[2K")
	for _, cell := range row {
		if cell.Char == 0 {
			continue
		}
		if cell.Look != look {
			look = cell.Look
			out.WriteString(look.Sequence())
		}
		out.WriteRune(cell.Char)
	}
	out.WriteString(screen.Plain.Sequence())
}
