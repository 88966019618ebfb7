// Package modes follows how a program sets the terminal that it prints to, so that this can
// be undone when the program is killed: the screen that it drew on, the mouse, what keys
// send, the cursor, colours.
package modes

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// private are the private modes that are followed. Those that a terminal has at rest are
// undone by being set, the others by being reset. What a person may have set otherwise
// (whether the cursor blinks) is left out.
var private = []struct {
	number string
	rest   bool
}{
	{"2026", false},                                                                  // what is printed is held back
	{"9", false}, {"1000", false}, {"1001", false}, {"1002", false}, {"1003", false}, // the mouse,
	{"1004", false},                                                    // the focus,
	{"1005", false}, {"1006", false}, {"1015", false}, {"1016", false}, // and how they are told
	{"2004", false}, {"2031", false}, {"2048", false}, // pastes, colours and sizes are told
	{"1", false}, {"66", false}, {"5", false}, {"7", true}, {"25", true}, {"45", false}, {"69", false}, // keys, colours, cursor, margins
}

// Modes are how a program has set a terminal, compared with one at rest.
type Modes struct {
	private   uint32   // the bits are places in the list
	alternate string   // the mode by which the other screen was chosen, "" for none
	keys      [2]uint8 // how deep the stack of the kitty keyboard is, on each screen
	keysSet   bool     // ... and that it was set without the stack
	titles    uint8    // how deep the stack of titles is
	other     uint16
}

// The other settings, in the order of undo.
const (
	keypad = 1 << iota
	otherKeys
	insert
	region
	charset
	shifted
	shape
	link
	progress
	title
	colour
)

var undoOther = []string{"\x1b>", "\x1b[>4m", "\x1b[4l", "\x1b7\x1b[r\x1b8", "\x1b(B", "\x0f", "\x1b[0 q", "\x1b]8;;\x1b\\", "\x1b]9;4;0\x1b\\", "\x1b]0;\x1b\\", "\x1b[m"}

// Follower follows a program's output. The zero value is a terminal at rest.
type Follower struct {
	Modes
	cutter Cutter
}

// Follow takes what the program printed next.
func (f *Follower) Follow(b []byte) { f.cutter.Cut(b, f.obey) }

// End is what to print to end a sequence that is begun, and follows that; nil if none is.
func (f *Follower) End() []byte {
	if f.cutter.Whole() {
		return nil
	}
	end := []byte("\x1b\\")
	f.Follow(end)
	return end
}

// Alternate reports whether the program draws on the screen that is shown instead of the
// usual one.
func (m *Modes) Alternate() bool { return m.alternate != "" }

// Draws reports whether the program has set what only one does that draws the whole screen,
// or a part of it, again and again.
func (m *Modes) Draws() bool { return m.private != 0 || m.Alternate() || m.keys != [2]uint8{} }

func (f *Follower) obey(p Piece) {
	switch p.Kind {
	case Text:
		if at := bytes.LastIndexAny(p.Body, "\x0e\x0f"); at >= 0 {
			f.set(shifted, p.Body[at] == '\x0e')
		}
	case Escape:
		f.escape(string(p.Body), p.Final)
	case String:
		f.string(p)
	case Control:
		f.control(string(p.Body), p.Final)
	}
}

func (m *Modes) set(what uint16, on bool) {
	if m.other &^= what; on {
		m.other |= what
	}
}

func (m *Modes) escape(body string, final byte) {
	switch {
	case body == "(":
		m.set(charset, final != 'B')
	case body != "":
	case final == '=':
		m.set(keypad, true)
	case final == '>':
		m.set(keypad, false)
	case final == 'c': // the terminal is reset
		*m = Modes{}
	}
}

func (m *Modes) string(p Piece) {
	what, of, _ := strings.Cut(string(p.Body), ";")
	switch {
	case p.Final != ']':
	case what == "0" || what == "2":
		m.set(title, of != "")
	case what == "8":
		m.set(link, !strings.HasSuffix(of, ";"))
	case what == "9" && strings.HasPrefix(of, "4;"):
		m.set(progress, !strings.HasPrefix(of, "4;0"))
	}
}

// control obeys a control sequence.
func (m *Modes) control(args string, final byte) {
	switch {
	case final == 'h' || final == 'l':
		m.switches(args, final == 'h')
	case final == 'u':
		m.keyboard(args)
	case final == 'm' && strings.HasPrefix(args, ">4"):
		m.set(otherKeys, number(strings.TrimPrefix(args, ">4;"), 0) > 0)
	case final == 'm' && !strings.HasPrefix(args, ">") && !strings.HasPrefix(args, "?"):
		m.set(colour, strings.Trim(args, "0;") != "")
	case final == 'r' && !strings.HasPrefix(args, "?"):
		m.set(region, strings.Trim(args, "0;") != "")
	case final == 'q' && strings.HasSuffix(args, " "):
		m.set(shape, strings.Trim(args, "0 ") != "")
	case final == 't' && strings.HasPrefix(args, "22"):
		m.titles = min(m.titles+1, deepest)
	case final == 't' && strings.HasPrefix(args, "23"):
		m.titles -= min(m.titles, 1)
	case final == 'p' && args == "!": // a soft reset
		*m = Modes{private: m.private &^ (bit("1") | bit("7") | bit("25")), alternate: m.alternate, keys: m.keys, keysSet: m.keysSet, titles: m.titles, other: m.other & (otherKeys | link | progress | shape)}
	}
}

// switches sets or resets modes.
func (m *Modes) switches(args string, on bool) {
	args, is := strings.CutPrefix(args, "?")
	for n := range strings.SplitSeq(args, ";") {
		switch {
		case !is:
			if n == "4" {
				m.set(insert, on)
			}
		case n == "47" || n == "1047" || n == "1049":
			if m.alternate = ""; on {
				m.alternate = n
			}
		default:
			for i, p := range private {
				if p.number == n {
					if m.private &^= 1 << i; on != p.rest {
						m.private |= 1 << i
					}
				}
			}
		}
	}
}

func bit(number string) uint32 {
	for i, p := range private {
		if p.number == number {
			return 1 << i
		}
	}
	return 0
}

// deepest bounds the stacks, as terminals do.
const deepest = 16

// keyboard follows the stack of the kitty keyboard.
func (m *Modes) keyboard(args string) {
	depth := &m.keys[0]
	if m.Alternate() {
		depth = &m.keys[1]
	}
	switch {
	case strings.HasPrefix(args, ">"):
		*depth = min(*depth+1, deepest)
	case strings.HasPrefix(args, "<"):
		*depth -= uint8(min(int(*depth), max(1, number(args[1:], 1))))
	case strings.HasPrefix(args, "=") && *depth == 0:
		flags, _, _ := strings.Cut(args[1:], ";")
		m.keysSet = number(flags, 0) > 0
	}
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

// Undo is what to print to a terminal that is set so to have it at rest again, nil if it
// is. It moves the cursor only where the program drew on the other screen.
func (m *Modes) Undo() (undo []byte) {
	if *m == (Modes{}) {
		return nil
	}
	undo = append(undo, "\x1b\\"...) // ends what the program had begun
	undo = m.undoPrivate(undo)
	undo = pop(undo, m.keys[1])
	if m.Alternate() {
		undo = append(undo, "\x1b[?"+m.alternate+"l"...)
	}
	undo = pop(undo, m.keys[0])
	if m.keysSet {
		undo = append(undo, "\x1b[=0u"...)
	}
	for i, how := range undoOther {
		if m.other&(1<<i) != 0 {
			undo = append(undo, how...)
		}
	}
	return append(undo, bytes.Repeat([]byte("\x1b[23;0t"), int(m.titles))...)
}

// pop takes from the keyboard's stack of the screen that is shown.
func pop(undo []byte, depth uint8) []byte {
	if depth == 0 {
		return undo
	}
	return slices.Concat(undo, []byte("\x1b[<"+strconv.Itoa(int(depth))+"u"))
}

func (m *Modes) undoPrivate(undo []byte) []byte {
	for i, p := range private {
		switch {
		case m.private&(1<<i) == 0:
		case p.rest:
			undo = append(undo, "\x1b[?"+p.number+"h"...)
		default:
			undo = append(undo, "\x1b[?"+p.number+"l"...)
		}
	}
	return undo
}
