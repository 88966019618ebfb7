package modes

// Kind is what a piece is of what goes to a terminal, or comes from one, by the rules that
// terminals share (ECMA-48).
type Kind byte

// The kinds.
const (
	Text    Kind = iota // characters and single controls, in Body
	Escape              // ESC, Body, Final
	Control             // ESC [, Body, Final
	String              // ESC Final, Body, and its end: a title, an answer, and the like
)

// Piece is a part of a stream. Body is valid until the callback returns. That of a
// sequence is cut at 64 bytes.
type Piece struct {
	Kind  Kind
	Body  []byte
	Final byte
}

const maxBody = 64

// Cutter cuts one stream. A sequence may be split between two calls of Cut. The zero
// value is ready.
type Cutter struct {
	state func(*Cutter, byte, func(Piece)) // nil for text
	body  []byte
	final byte // of a string
}

const esc, can, sub, bell = 0x1b, 0x18, 0x1a, '\a'

// Cut calls each for each piece that is whole.
func (c *Cutter) Cut(b []byte, each func(Piece)) {
	start := 0
	for i, r := range b {
		if c.state != nil {
			c.state(c, r, each)
			start = i + 1
		} else if r == esc {
			text(b[start:i], each)
			c.begin()
		}
	}
	if c.state == nil {
		text(b[start:], each)
	}
}

// Whole reports whether no sequence is begun.
func (c *Cutter) Whole() bool { return c.state == nil }

func text(b []byte, each func(Piece)) {
	if len(b) > 0 {
		each(Piece{Body: b})
	}
}

func (c *Cutter) begin() { c.state, c.body = (*Cutter).escape, c.body[:0] }

func (c *Cutter) add(r byte) {
	if len(c.body) < maxBody {
		c.body = append(c.body, r)
	}
}

// escape reads what follows an ESC.
func (c *Cutter) escape(r byte, each func(Piece)) {
	switch {
	case r == esc:
		each(Piece{Kind: Escape, Final: esc})
		c.begin()
	case r == can || r == sub:
		c.state = nil
	case r == '[' && len(c.body) == 0:
		c.state = (*Cutter).control
	case (r == ']' || r == 'P' || r == '_' || r == '^' || r == 'X') && len(c.body) == 0:
		c.state, c.final = (*Cutter).string, r
	case r >= ' ' && r < '0':
		c.add(r)
	default:
		c.state = nil
		each(Piece{Escape, c.body, r})
	}
}

// control reads a control sequence. A control within one is obeyed, and ends nothing.
func (c *Cutter) control(r byte, each func(Piece)) {
	switch {
	case r == esc:
		c.begin()
	case r == can || r == sub:
		c.state = nil
	case r < ' ' || r > '~':
		each(Piece{Body: []byte{r}})
	case r < '@':
		c.add(r)
	default:
		c.state = nil
		each(Piece{Control, c.body, r})
	}
}

func (c *Cutter) string(r byte, each func(Piece)) {
	switch r {
	case can, sub:
		c.state = nil
	case bell, esc: // ESC \, of which the backslash is a piece that means nothing
		each(Piece{String, c.body, c.final})
		if c.state = nil; r == esc {
			c.begin()
		}
	default:
		c.add(r)
	}
}
