package terminal

import (
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

// private lists the private modes to follow. A mode that is on at rest is undone by setting it, any other by
// resetting it. Modes that a person may have set, such as the cursor's blinking, are left out.
var private = [...]struct {
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

// The settings, in the order of their undoing: the private modes, then these. The kitty keyboard has
// a stack on each screen, which is undone while that screen is shown.
const (
	alternateKeys = len(private) + iota
	alternate     // the alternate screen
	keys
	keysSet // the keyboard was set without the stack
	keypad
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
	titles // their stack
	settings
)

// Modes are the settings in which a terminal differs from one at rest.
type Modes struct {
	undo   [settings]string // what brings each to rest, "" for one that is
	depths [settings]int    // of the stacks
}

func (m *Modes) set(what int, on bool, undo string) {
	if m.undo[what] = ""; on {
		m.undo[what] = undo
	}
}

// deepest bounds the stacks, as terminals do.
const deepest = 16

// stack notes how deep a stack is. undo returns what pops all of it.
func (m *Modes) stack(what, depth int, undo func(depth int) string) {
	depth = min(max(0, depth), deepest)
	m.depths[what] = depth
	m.set(what, depth > 0, undo(depth))
}

// Follower follows a program's output. The zero value is a terminal at rest.
type Follower struct {
	Modes
	parser *ansi.Parser
}

// Follow follows the program's next output.
func (f *Follower) Follow(b []byte) {
	if f.parser == nil {
		f.parser = newParser(ansi.Handler{Execute: f.shift, HandleEsc: f.escape, HandleCsi: f.control, HandleOsc: f.osc})
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

// whole reports whether the parser is not within a sequence.
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
func (m *Modes) Alternate() bool { return m.undo[alternate] != "" }

func (f *Follower) shift(b byte) {
	if b == ansi.SO || b == ansi.SI {
		f.set(shifted, b == ansi.SO, "\x0f")
	}
}

func (f *Follower) escape(c ansi.Cmd) {
	switch final := c.Final(); {
	case c.Intermediate() == '(':
		f.set(charset, final != 'B', "\x1b(B")
	case c.Intermediate() != 0:
	case final == '=' || final == '>':
		f.set(keypad, final == '=', "\x1b>")
	case final == 'c': // resets the terminal
		f.Modes = Modes{}
	}
}

func (f *Follower) osc(what int, text []byte) {
	_, of, _ := strings.Cut(string(text), ";")
	switch {
	case what == 0 || what == 2:
		f.set(title, of != "", "\x1b]0;\x1b\\")
	case what == 8:
		f.set(link, !strings.HasSuffix(of, ";"), "\x1b]8;;\x1b\\")
	case what == 9 && strings.HasPrefix(of, "4;"):
		f.set(progress, !strings.HasPrefix(of, "4;0"), "\x1b]9;4;0\x1b\\")
	}
}

func (f *Follower) control(c ansi.Cmd, args ansi.Params) {
	is, of, final := c.Prefix(), c.Intermediate(), c.Final()
	first, _, _ := args.Param(0, 0)
	second, _, _ := args.Param(1, 0)
	any := slices.ContainsFunc(args, func(a ansi.Param) bool { return a.Param(0) != 0 })
	popTitles := func(depth int) string { return strings.Repeat("\x1b[23;0t", depth) }
	switch {
	case final == 'h' || final == 'l':
		f.switches(is, args, final == 'h')
	case final == 'u':
		f.keyboard(is, first)
	case final == 'm' && is == '>' && first == 4:
		f.set(otherKeys, second > 0, "\x1b[>4m")
	case final == 'm' && is == 0:
		f.set(colour, any, "\x1b[m")
	case final == 'r' && is == 0:
		f.set(region, any, "\x1b7\x1b[r\x1b8")
	case final == 'q' && of == ' ':
		f.set(shape, any, "\x1b[0 q")
	case final == 't' && first == 22:
		f.stack(titles, f.depths[titles]+1, popTitles)
	case final == 't' && first == 23:
		f.stack(titles, f.depths[titles]-1, popTitles)
	case final == 'p' && of == '!': // a soft reset
		for _, what := range []int{slot(1), slot(7), slot(25), keypad, insert, region, charset, shifted, title, colour} {
			f.undo[what] = ""
		}
	}
}

func (m *Modes) switches(is byte, args ansi.Params, on bool) {
	for _, a := range args {
		switch n := a.Param(0); {
		case is != '?':
			if n == 4 {
				m.set(insert, on, "\x1b[4l")
			}
		case n == 47 || n == 1047 || n == 1049:
			m.set(alternate, on, ansi.ResetMode(ansi.DECMode(n)))
		default:
			if i := slot(n); i >= 0 && private[i].rest {
				m.set(i, !on, ansi.SetMode(ansi.DECMode(n)))
			} else if i >= 0 {
				m.set(i, on, ansi.ResetMode(ansi.DECMode(n)))
			}
		}
	}
}

// slot returns the place of a private mode among the settings, -1 for one that is not followed.
func slot(number int) int {
	for i, p := range private {
		if p.number == number {
			return i
		}
	}
	return -1
}

// keyboard follows the kitty keyboard, which has a stack for each screen.
func (m *Modes) keyboard(how byte, n int) {
	shown := keys
	if m.Alternate() {
		shown = alternateKeys
	}
	pop := func(depth int) string { return fmt.Sprintf("\x1b[<%du", depth) }
	switch {
	case how == '>':
		m.stack(shown, m.depths[shown]+1, pop)
	case how == '<':
		m.stack(shown, m.depths[shown]-max(1, n), pop)
	case how == '=' && m.depths[shown] == 0:
		m.set(keysSet, n > 0, "\x1b[=0u")
	}
}

// Undo returns what to print to bring a terminal in these modes to rest, nil if it is. It moves the
// cursor only if the program drew on the alternate screen.
func (m *Modes) Undo() []byte {
	if *m == (Modes{}) {
		return nil
	}
	return []byte("\x1b\\" + strings.Join(m.undo[:], "")) // first ends what the program had begun
}

// Console is the caller's terminal, where sessions are shown. It follows the modes that they set,
// resets them after each session, and keeps this process's messages out of a session's screen.
type Console struct {
	to *os.File

	mu     sync.Mutex
	usual  *sync.Cond // signalled when the session may have left the alternate screen
	modes  Follower
	record func(undo []byte) // informs the guardian, nil for none
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

// follow has record called at each change with what undoes the modes that the sessions set.
func (c *Console) follow(record func(undo []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record = record
	record(c.modes.Undo())
}

func (c *Console) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := append(c.modes.End(), c.modes.Undo()...)
	// Only a program that keeps redrawing all or part of the screen sets one of these.
	draws := slices.ContainsFunc(c.modes.undo[:keys+1], func(undo string) bool { return undo != "" })
	if draws && !c.modes.Alternate() {
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
