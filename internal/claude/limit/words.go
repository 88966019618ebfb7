package limit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// words reads a text piece by piece. Copy it to be able to go back.
type words struct {
	text string
	pos  int
}

// piece is a run of letters, a run of digits, or one other character.
type piece struct {
	kind kind
	text string
}

type kind int

const (
	end kind = iota
	letters
	digits
	mark
)

// value is the number that a short run of digits spells.
func (p piece) value() int64 {
	var n int64
	for _, digit := range []byte(p.text[:min(len(p.text), 18)]) {
		n = n*10 + int64(digit-'0')
	}
	return n
}

// next reads a piece and skips the spaces before it, also the narrow ones that the
// client uses.
func (w *words) next() piece {
	w.pos = len(w.text) - len(strings.TrimLeftFunc(w.text[w.pos:], unicode.IsSpace))
	rest := w.text[w.pos:]
	first, size := utf8.DecodeRuneInString(rest)
	k := kindOf(first, size)
	if k == letters || k == digits {
		size = strings.IndexFunc(rest, func(r rune) bool { return kindOf(r, 1) != k })
		if size < 0 {
			size = len(rest)
		}
	}
	w.pos += size
	return piece{k, rest[:size]}
}

// kindOf knows only ASCII letters: no word of interest has others.
func kindOf(r rune, size int) kind {
	switch {
	case size == 0:
		return end
	case r >= '0' && r <= '9':
		return digits
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return letters
	}
	return mark
}

func (w words) peek() piece { return w.next() }

// skip reads the next piece if it is this one, upper or lower case.
func (w *words) skip(text string) bool {
	ahead := *w
	if !strings.EqualFold(ahead.next().text, text) {
		return false
	}
	*w = ahead
	return true
}

// glued reports whether the text goes on without a space, so that what was read is
// only part of a longer word, a version, an address or a date.
func (w words) glued() bool {
	rest := w.text[w.pos:]
	if rest == "" {
		return false
	}
	if strings.IndexByte(".,:/-", rest[0]) >= 0 {
		rest = rest[1:]
		if rest == "" {
			return false
		}
		return kindOf(rune(rest[0]), 1) == digits
	}
	k := kindOf(rune(rest[0]), 1)
	return k == digits || k == letters || rest[0] == '_' || rest[0] == '%'
}

// number reads a number of at most that many digits.
func (w *words) number(most int) (int, bool) {
	ahead := *w
	p := ahead.next()
	if p.kind != digits || len(p.text) > most {
		return 0, false
	}
	*w = ahead
	return int(p.value()), true
}

// decimal reads a number such as 30 or 1.5, below 1e9.
func (w *words) decimal() (float64, bool) {
	whole, ok := w.number(9)
	if !ok {
		return 0, false
	}
	amount, ahead := float64(whole), *w
	if strings.HasPrefix(w.text[w.pos:], ".") && ahead.skip(".") {
		if fraction := ahead.next(); fraction.kind == digits {
			*w = ahead
			for scale, i := 0.1, 0; i < len(fraction.text); scale, i = scale/10, i+1 {
				amount += scale * float64(fraction.text[i]-'0')
			}
		}
	}
	return amount, true
}
