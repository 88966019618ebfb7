package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
	"golang.org/x/term"
)

// private lists the private modes that are followed. Those on at rest are undone by setting them, the
// others by resetting. Modes that a person may have set, such as the cursor's blinking, are left out.
var private = []struct {
	number int
	rest   bool
}{
	{2026, false},                                                          // holds output back
	{9, false}, {1000, false}, {1001, false}, {1002, false}, {1003, false}, // the mouse,
	{1004, false},                                              // the focus,
	{1005, false}, {1006, false}, {1015, false}, {1016, false}, // how they are reported
	{2004, false}, {2031, false}, {2048, false}, // reports of pastes, colours and sizes
	{1, false}, {66, false}, {5, false}, {7, true}, {25, true}, {45, false}, {69, false}, // keys, colours, cursor, margins
}

// Modes are how a program has set a terminal, compared with one at rest.
type Modes struct {
	private   uint32   // bit i is private[i]
	alternate int      // the mode that chose the alternate screen, 0 for none
	keys      [2]uint8 // depth of the kitty keyboard's stack on each screen
	keysSet   bool     // the keyboard was set without the stack
	titles    uint8    // depth of the stack of titles
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
	parser *ansi.Parser
}

// Follow takes the program's next output.
func (f *Follower) Follow(b []byte) {
	if f.parser == nil {
		f.parser = newParser(ansi.Handler{Execute: f.shift, HandleEsc: f.escape, HandleCsi: f.control, HandleOsc: f.string})
	}
	for _, r := range b {
		advance(f.parser, min(r, unicode.MaxASCII)) // only ASCII begins a sequence
	}
}

// newParser returns a parser, byte by byte, of what goes to a terminal or comes from it.
func newParser(h ansi.Handler) *ansi.Parser {
	p := new(ansi.Parser)
	p.SetParamsSize(parser.MaxParamsSize)
	p.SetDataSize(maxBody)
	p.SetHandler(h)
	return p
}

// advance makes a parser read a byte as terminals do where the library does not: ESC ends a DCS
// string that has only begun, and a control character within a sequence leaves the sequence alone.
func advance(p *ansi.Parser, b byte) {
	switch is := p.State(); {
	case b == ansi.ESC && is >= parser.DcsEntryState && is <= parser.DcsParamState:
		p.Reset()
	case b < ' ' && b != ansi.ESC && b != ansi.CAN && b != ansi.SUB && is >= parser.CsiEntryState && is <= parser.CsiParamState:
		return
	}
	p.Advance(b)
}

// maxBody bounds how much of a string is kept, in bytes.
const maxBody = 64

// whole reports whether no sequence is begun.
func whole(p *ansi.Parser) bool { return p == nil || p.State() == parser.GroundState }

// End returns what to print to end a begun sequence, nil for none, and follows it.
func (f *Follower) End() []byte {
	if whole(f.parser) {
		return nil
	}
	end := []byte("\x1b\\")
	f.Follow(end)
	return end
}

// Alternate reports whether the program draws on the alternate screen.
func (m *Modes) Alternate() bool { return m.alternate != 0 }

// Draws reports whether the program has set anything that only a program does that keeps redrawing
// all or part of the screen.
func (m *Modes) Draws() bool { return m.private != 0 || m.Alternate() || m.keys != [2]uint8{} }

func (f *Follower) shift(b byte) {
	if b == ansi.SO || b == ansi.SI {
		f.set(shifted, b == ansi.SO)
	}
}

func (m *Modes) set(what uint16, on bool) {
	if m.other &^= what; on {
		m.other |= what
	}
}

func (f *Follower) escape(c ansi.Cmd) {
	switch final := c.Final(); {
	case c.Intermediate() == '(':
		f.set(charset, final != 'B')
	case c.Intermediate() != 0:
	case final == '=' || final == '>':
		f.set(keypad, final == '=')
	case final == 'c': // resets the terminal
		f.Modes = Modes{}
	}
}

func (f *Follower) string(what int, text []byte) {
	_, of, _ := strings.Cut(string(text), ";")
	switch {
	case what == 0 || what == 2:
		f.set(title, of != "")
	case what == 8:
		f.set(link, !strings.HasSuffix(of, ";"))
	case what == 9 && strings.HasPrefix(of, "4;"):
		f.set(progress, !strings.HasPrefix(of, "4;0"))
	}
}

// control obeys a control sequence.
func (f *Follower) control(c ansi.Cmd, args ansi.Params) {
	is, of, final := c.Prefix(), c.Intermediate(), c.Final()
	first, _, _ := args.Param(0, 0)
	second, _, _ := args.Param(1, 0)
	any := slices.ContainsFunc(args, func(a ansi.Param) bool { return a.Param(0) != 0 })
	switch {
	case final == 'h' || final == 'l':
		f.switches(is, args, final == 'h')
	case final == 'u':
		f.keyboard(is, first)
	case final == 'm' && is == '>' && first == 4:
		f.set(otherKeys, second > 0)
	case final == 'm' && is == 0:
		f.set(colour, any)
	case final == 'r' && is == 0:
		f.set(region, any)
	case final == 'q' && of == ' ':
		f.set(shape, any)
	case final == 't' && first == 22:
		f.titles = min(f.titles+1, deepest)
	case final == 't' && first == 23:
		f.titles -= min(f.titles, 1)
	case final == 'p' && of == '!': // a soft reset
		f.private &^= bit(1) | bit(7) | bit(25)
		f.other &= otherKeys | link | progress | shape
	}
}

func (m *Modes) switches(is byte, args ansi.Params, on bool) {
	for _, a := range args {
		switch n := a.Param(0); {
		case is != '?':
			if n == 4 {
				m.set(insert, on)
			}
		case n == 47 || n == 1047 || n == 1049:
			if m.alternate = 0; on {
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

func bit(number int) uint32 {
	for i, p := range private {
		if p.number == number {
			return 1 << i
		}
	}
	return 0
}

// deepest bounds the stacks, as terminals do.
const deepest = 16

// keyboard follows the kitty keyboard's stack.
func (m *Modes) keyboard(how byte, n int) {
	depth := &m.keys[0]
	if m.Alternate() {
		depth = &m.keys[1]
	}
	switch {
	case how == '>':
		*depth = min(*depth+1, deepest)
	case how == '<':
		*depth -= uint8(min(int(*depth), max(1, n)))
	case how == '=' && *depth == 0:
		m.keysSet = n > 0
	}
}

// Undo returns what to print to bring a terminal in these modes to rest, nil if it is. It moves the
// cursor only if the program drew on the alternate screen.
func (m *Modes) Undo() (undo []byte) {
	if *m == (Modes{}) {
		return nil
	}
	undo = append(undo, "\x1b\\"...) // ends what the program had begun
	for i, p := range private {
		if m.private&(1<<i) != 0 {
			undo = append(undo, turned(p.number, p.rest)...)
		}
	}
	undo = pop(undo, m.keys[1])
	if m.Alternate() {
		undo = append(undo, turned(m.alternate, false)...)
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

// pop pops the keyboard's stack of the screen that is shown.
func pop(undo []byte, depth uint8) []byte {
	if depth == 0 {
		return undo
	}
	return fmt.Appendf(undo, "\x1b[<%du", depth)
}

// turned returns what sets or resets a private mode.
func turned(number int, on bool) string {
	if on {
		return ansi.SetMode(ansi.DECMode(number))
	}
	return ansi.ResetMode(ansi.DECMode(number))
}

// Console is the caller's terminal, where sessions are shown. It follows the modes that they set,
// resets them after each session, and keeps this process's messages out of a session's screen.
type Console struct {
	to *os.File

	mu     sync.Mutex
	usual  *sync.Cond // signalled when no session may draw on the alternate screen any more
	modes  Follower
	record func(undo []byte) // tells the guardian, nil for none
}

// NewConsole returns the console on f, nil if f is no terminal.
func NewConsole(f *os.File) *Console {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	c := &Console{to: f}
	c.usual = sync.NewCond(&c.mu)
	return c
}

// Write shows what a session prints.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.modes.Modes
	c.modes.Follow(b)
	if now := c.modes.Modes; now != before && c.record != nil {
		c.record(append(before.Undo(), now.Undo()...)) // a kill may come before or after the write
		defer func() { c.record(now.Undo()) }()
	}
	n, err := c.to.Write(b)
	c.usual.Broadcast()
	return n, err
}

// Beside returns a writer to a terminal, or to anything that may be the same terminal. It waits
// while a session draws on the alternate screen, which will disappear.
func (c *Console) Beside(to io.Writer) io.Writer {
	if c == nil {
		return to
	}
	return beside{c, to}
}

type beside struct {
	console *Console
	to      io.Writer
}

func (b beside) Write(text []byte) (int, error) {
	c := b.console
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.modes.Alternate() {
		c.usual.Wait()
	}
	return b.to.Write(text)
}

// follow tells the guardian, at each change, how to undo what the sessions set.
func (c *Console) follow(record func(undo []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record = record
	record(c.modes.Undo())
}

// rest resets the terminal after a session.
func (c *Console) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := append(c.modes.End(), c.modes.Undo()...)
	if c.modes.Draws() && !c.modes.Alternate() {
		how = append(how, "\r\n\x1b[J"...) // below what was drawn, or over its last rows
	}
	if len(how) > 0 {
		_, _ = c.to.Write(how) // fails if it is gone
	}
	if c.record != nil {
		c.record(nil)
	}
	c.modes, c.record = Follower{}, nil
	c.usual.Broadcast()
}
