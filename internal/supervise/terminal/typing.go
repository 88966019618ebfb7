package terminal

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

const (
	// quiet is how long after the last key a person still counts as typing.
	quiet = 2 * time.Second
	// linePatience is how long a begun line keeps a session from being ended. A person who has not continued by
	// then has left.
	linePatience = 10 * time.Minute
	// limitPatience is linePatience once a limit has been reached.
	limitPatience = time.Minute
	// splits is how long a sequence may take from first byte to last.
	splits = 500 * time.Millisecond
)

// typing follows what a person types at a session's terminal. What a terminal reports by itself is no key. Whether
// a line is begun is known only for simple lines; any other counts as begun.
type typing struct {
	entered func()      // called for each line entered, nil for none
	menu    func() bool // reports whether the screen takes single keys, not lines; nil for never

	mu     sync.Mutex
	parser *ansi.Parser
	read   time.Time // when the last byte was read
	at     time.Time // when the last key was read, zero for none
	begun  bool
	length int  // length of the line
	unsure bool // the length is unknown, or the cursor is not at the line's end
	paste  bool // within a paste
	slash  bool // the last character was a backslash, after which Return begins another line
	skip   int  // how many bytes of a report are still to come
	letter bool // the next byte completes a key

	pressed bool // the bytes being read contain a key
	lines   int  // how many lines these bytes entered
}

func (t *typing) keys(b []byte, now time.Time) {
	t.mu.Lock()
	if t.parser == nil || !whole(t.parser) && now.Sub(t.read) > splits { // it was the key ESC
		t.parser = newParser(ansi.Handler{Print: t.print, Execute: t.execute, HandleEsc: t.escape, HandleCsi: t.control})
	}
	t.read, t.pressed, t.lines = now, false, 0
	for _, r := range b {
		switch {
		case t.skip > 0:
			t.skip--
		case r < utf8.RuneSelf:
			advance(t.parser, r)
		case utf8.RuneStart(r):
			advance(t.parser, '~') // any character will do
		}
	}
	if t.pressed || !whole(t.parser) { // or ESC alone, or half a report
		t.at = now
	}
	lines := t.lines
	t.mu.Unlock()
	if lines > 0 && t.entered != nil {
		t.entered()
	}
}

func (t *typing) print(r rune) {
	t.pressed = true
	if !t.letter {
		t.key(byte(r))
		return
	}
	t.letter = false
	t.move(0, byte(r))
}

func (t *typing) execute(b byte) {
	t.pressed = true
	if t.parser.State() != parser.EscapeState || b == ctrl('c') {
		t.key(b)
	} else if b != 0x1b { // with Alt
		t.unsure = true
	}
}

// key handles a single key, or a character's first byte.
func (t *typing) key(r byte) {
	slash := t.slash
	t.slash = r == '\\'
	switch {
	case t.paste:
		t.vague()
	case r == '\r' && slash:
	case r == '\r':
		t.clear()
		t.lines++
	case r == ctrl('c'), r == ctrl('u') && !t.unsure:
		t.clear()
	case r == 0x7f || r == '\b':
		if t.length--; t.length <= 0 && !t.unsure {
			t.clear()
		}
	case r == ctrl('d') || r == ctrl('l'):
	case r < ' ':
		t.vague()
	default:
		t.begin()
		t.length++
	}
}

func ctrl(letter byte) byte { return letter & 0x1f }

func (t *typing) clear() { t.begun, t.length, t.unsure = false, 0, false }

func (t *typing) begin() {
	if !t.begun {
		t.clear()
		t.begun = t.menu == nil || !t.menu()
	}
}

// vague handles a key that may have changed the line in any way or recalled an old one.
func (t *typing) vague() {
	t.begin()
	t.unsure = true
}

// escape handles a key with Alt, or ESC and then a letter.
func (t *typing) escape(c ansi.Cmd) {
	switch final := c.Final(); final {
	case '\\': // the end of an answer
		return
	case 'O', 'N':
		t.letter = true
	default:
		t.vague()
	}
	t.pressed = true
}

// control handles a key, a paste's begin or end, or a report.
func (t *typing) control(c ansi.Cmd, args ansi.Params) {
	var of [3][2]int // the parameters, each with the value after its first colon
	field, part := 0, 0
	for _, a := range args {
		if field < len(of) && part < len(of[0]) {
			of[field][part] = a.Param(0)
		}
		if part++; !a.HasMore() {
			field, part = field+1, 0
		}
	}
	first, final := of[0][0], c.Final()
	switch {
	case c.Prefix() != 0:
		return
	case final == '~' && (first == 200 || first == 201):
		t.paste = first == 200
	case final == '~' && first == 27: // XTerm's encoding of other keys
		t.coded(of[2][0], of[1][0], 0)
	case final == 'M' && len(args) == 0: // XTerm's old mouse report
		t.skip = 3
		return
	case strings.IndexByte("IMORcnty", final) >= 0:
		return
	case final == 'u':
		t.coded(first, of[1][0], of[1][1])
	default:
		t.move(first, final)
	}
	t.pressed = true
}

// move handles a key that is no character. Up and down may recall an old line.
func (t *typing) move(first int, final byte) {
	within := strings.IndexByte("CDFHZ", final) >= 0 || final == '~' && (first == 5 || first == 6)
	if t.begun || !within {
		t.vague()
	}
}

// coded handles a key encoded by numbers, as by the kitty keyboard: its character, its modifier
// bits plus 1, and the kind of event.
func (t *typing) coded(key, mods, event int) {
	held := max(0, mods-1) &^ (64 | 128) // without the locks
	const shift, control, released = 1, 4, 3
	switch {
	case event == released:
	case key == 0 || key > 0x7f:
		t.vague()
	case key == 0x1b:
	case held == control && key >= 'a' && key <= 'z':
		t.key(ctrl(byte(key)))
	case held == 0, held == shift && key >= ' ':
		t.key(byte(key))
	default:
		t.vague()
	}
}

// rest returns how long the session must not be ended yet, if nothing more is typed.
func (t *typing) rest(now time.Time, line time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	patience := quiet
	if t.begun {
		patience = line
	}
	if t.at.IsZero() {
		return 0
	}
	return t.at.Add(patience).Sub(now)
}

func (t *typing) hasOpenLine() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun
}

func (t *typing) hasTyped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.at.IsZero()
}
