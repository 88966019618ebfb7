// Package screen reads the terminal of a session. A [Screen] takes the bytes that a client prints.
// A [Sight] is the meaning of the screen's text, which the screen package of each client recognises.
// A launcher with nobody at the terminal can then report why a session does not begin.
//
// Nothing here answers a dialog: dialogs ask a person for consent.
package screen

import (
	"strings"
	"sync"

	"github.com/hinshun/vt10x"
)

// Screen is a terminal without a window: it takes a program's output and returns the text on the
// screen. Its methods may be called from any goroutine.
type Screen struct {
	mu     sync.Mutex
	term   vt10x.Terminal
	stream stream
	broken bool
}

// New returns an empty screen. A size below 1 counts as 1.
func New(rows, cols int) *Screen {
	s := &Screen{term: vt10x.New(vt10x.WithSize(max(1, cols), max(1, rows)))}
	s.stream.term = s.term
	return s
}

// Write draws program output. A sequence or a character may be split between two calls. Write always takes all of p and
// returns no error. After a panic of the emulator the screen no longer changes.
func (s *Screen) Write(p []byte) (int, error) {
	s.guarded(func() { s.stream.write(p) })
	return len(p), nil
}

// Resize changes the screen's size. A size below 1 changes nothing.
func (s *Screen) Resize(rows, cols int) {
	s.guarded(func() { s.term.Resize(cols, rows) })
}

// guarded draws, and survives a panic of the emulator, whose input comes from other programs.
func (s *Screen) guarded(draw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return
	}
	defer func() { s.broken = recover() != nil }()
	draw()
}

// Text returns the rows of the screen, separated by newlines, without trailing blanks and without
// empty rows at the end.
func (s *Screen) Text() string {
	var text strings.Builder
	for _, cells := range s.Picture().Rows {
		var row strings.Builder
		for _, c := range cells {
			if c.Char != 0 {
				row.WriteRune(c.Char)
			}
		}
		text.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return strings.TrimRight(text.String(), "\n")
}

// LastLine returns the last line of a screen's text, ignoring trailing blanks and empty lines.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Kind is what a screen shows.
type Kind string

// The kinds of screens. Kinds up to Hooks keep a session from starting: the client waits for a person or gives up, and
// runs no hook before that. Dialog and Login may come before a session and during one.
const (
	Unknown        Kind = ""               // anything else, or a screen that is still being drawn
	Untrusted      Kind = "untrusted"      // asks whether the folder is trusted
	Onboarding     Kind = "onboarding"     // asks a question of the very first start
	APIKey         Kind = "apikey"         // asks whether to use the API key of the environment
	BypassRefused  Kind = "bypassrefused"  // --dangerously-skip-permissions as root: the client gave up
	NoConversation Kind = "noconversation" // no session to resume: the client gave up
	Offline        Kind = "offline"        // the first start reached no service: the client gave up
	Usage          Kind = "usage"          // the client refused its arguments and gave up
	Hooks          Kind = "hooks"          // asks which hooks to trust

	Dialog     Kind = "dialog"     // some other dialog
	Login      Kind = "login"      // asks how to log in, or a turn failed for want of a valid login
	Permission Kind = "permission" // asks whether a tool may run
	Question   Kind = "question"   // the model asks a person
	Busy       Kind = "busy"       // a turn is in progress
	Ready      Kind = "ready"      // the prompt, and no turn
)

// Matter is what a person has to fix.
type Matter int

const (
	Nothing        Matter = iota // the session runs, or nothing is known
	Setup                        // the machine or the project is not set up
	Authentication               // the client has no valid key or login
)

// Sight is what was recognised on a screen.
type Sight struct {
	Kind  Kind
	Title string // a dialog's first row, "" if it is off the screen; for Usage, what is refused
}

// Advice is what to tell a person about a sight. It is empty if the session runs, or if nothing is known.
type Advice struct {
	Matter Matter // what the fix is about
	// Cause is a clause with why the session is stuck, such as "the folder is not trusted: ...". Fix is a
	// sentence, without its full stop, with what a person can do.
	Cause, Fix string
}

// Retry is an API error that the client itself retries for minutes before it tells its hooks.
type Retry struct {
	Cause     string // such as "401 invalid x-api-key"; "API error" at first
	Try, Most string // such as 3 of 10
}
