package terminal

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"heartbeat/internal/supervise/terminal/modes"
)

const (
	// quiet is how long no key must have come for nobody to be typing.
	quiet = 2 * time.Second
	// linePatience is how long a line that is begun keeps a session from being ended. Who
	// does not go on by then has left, and says nothing by it.
	linePatience = 10 * time.Minute
	// limitPatience is the same where a limit has been reached.
	limitPatience = time.Minute
	// splits is how long a sequence may take from its first byte to its last.
	splits = 500 * time.Millisecond
)

// typing is what a person does at the terminal of a session. What a terminal reports by
// itself is no key. Whether a line is begun is known of simple lines alone; where it is
// not, it counts as begun.
type typing struct {
	entered func()      // called when a line was, nil for nobody
	menu    func() bool // whether single keys are asked for, and no line; nil for never

	mu     sync.Mutex
	cutter modes.Cutter
	read   time.Time // when something came last
	at     time.Time // when the last key came, zero for none
	begun  bool
	length int  // of the line
	unsure bool // the length is not known, or the cursor is not at its end
	paste  bool // a paste goes on
	slash  bool // the last character was a backslash, after which Return begins another line
	skip   int  // that many bytes are the rest of a report
	letter bool // the next one is the rest of a key
	lines  int  // that were entered by what is being read
}

// keys notes what is typed.
func (t *typing) keys(b []byte, now time.Time) {
	t.mu.Lock()
	if !t.cutter.Whole() && now.Sub(t.read) > splits {
		t.cutter = modes.Cutter{} // it was the key ESC
	}
	t.read = now
	t.cutter.Cut(b, func(p modes.Piece) {
		if t.piece(p) {
			t.at = now
		}
	})
	if !t.cutter.Whole() {
		t.at = now // ESC alone, or half a report
	}
	lines := t.lines
	t.lines = 0
	t.mu.Unlock()
	if lines > 0 && t.entered != nil {
		t.entered()
	}
}

// piece notes a piece, and reports whether it is a key.
func (t *typing) piece(p modes.Piece) bool {
	switch p.Kind {
	case modes.Text:
		return t.text(p.Body)
	case modes.Escape:
		return t.escape(p.Final)
	case modes.Control:
		return t.control(string(p.Body), p.Final)
	}
	return false // an answer of the terminal
}

func (t *typing) text(b []byte) bool {
	n := min(t.skip, len(b))
	t.skip -= n
	if b = b[n:]; len(b) == 0 {
		return false
	}
	for _, r := range b {
		switch {
		case t.letter:
			t.letter = false
			t.move("", r)
		case utf8.RuneStart(r):
			t.key(r)
		}
	}
	return true
}

// key is a single key, or the first byte of a character.
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

// vague is a key that may have changed the line in any way, or brought an old one back.
func (t *typing) vague() {
	t.begin()
	t.unsure = true
}

// escape is ESC, or a key with Alt.
func (t *typing) escape(final byte) bool {
	switch {
	case final == 'O' || final == 'N':
		t.letter = true
	case final == '\\': // the end of an answer
		return false
	case final == ctrl('c'):
		t.key(final)
	case final > ' ' && final < 0x7f: // perhaps ESC, and then a letter
		t.vague()
	case final != 0x1b:
		t.unsure = true
	}
	return true
}

// control is a key, a paste's begin or end, or a report.
func (t *typing) control(args string, final byte) bool {
	switch {
	case final == '~' && args == "200":
		t.paste = true
	case final == '~' && args == "201":
		t.paste = false
	case final == '~' && strings.HasPrefix(args, "27;"): // XTerm's way to tell of other keys
		mods, code, _ := strings.Cut(args[len("27;"):], ";")
		t.coded(code, mods)
	case final == 'M' && args == "": // the mouse, as XTerm has always told of it
		t.skip = 3
		return false
	case strings.ContainsAny(args, "<=>?") || strings.IndexByte("IMORcnty", final) >= 0:
		return false
	case final == 'u':
		code, mods, _ := strings.Cut(args, ";")
		t.coded(code, mods)
	default:
		t.move(args, final)
	}
	return true
}

// move is a key of the keyboard that is no character. Up and down may bring an old line back.
func (t *typing) move(args string, final byte) {
	within := strings.IndexByte("CDFHZ", final) >= 0 || final == '~' && (args == "5" || args == "6")
	if t.begun || !within {
		t.vague()
	}
}

// coded is a key that is told by a number, as with the kitty keyboard: its character, and
// its modifiers in bits, plus 1.
func (t *typing) coded(code, mods string) {
	code, _, _ = strings.Cut(code, ":")
	mods, _, _ = strings.Cut(mods, ";")
	mods, event, _ := strings.Cut(mods, ":")
	key, err := strconv.Atoi(code)
	held, _ := strconv.Atoi(mods)
	held = max(0, held-1) &^ (64 | 128) // but for the locks
	const shift, control = 1, 4
	switch {
	case event == "3": // it was let go
	case err != nil || key > 0x7f:
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

// rest is for how long at most the session may not be ended yet, if nothing more is typed.
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

// open reports whether a line is begun.
func (t *typing) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun
}

// ever reports whether a key has come.
func (t *typing) ever() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.at.IsZero()
}
