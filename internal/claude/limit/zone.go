package limit

import (
	"strings"
	"time"
)

// zone reads the zone of a time: an IANA name in parentheses, as the client writes
// it, UTC or GMT, an abbreviation, or an offset where one may follow. Without a
// zone it is local. It returns false for a zone that is unknown: a guess could be
// hours off.
func (w *words) zone(local *time.Location, offset bool) (*time.Location, bool) {
	rest := w.text[w.pos:]
	if offset && signed(rest) {
		return w.offset()
	}
	tight := *w
	if w.skipUTC() || strings.HasPrefix(rest, "Z") && w.skip("Z") {
		return time.UTC, !w.glued()
	}
	if tight.glued() {
		return nil, false
	}
	ahead := *w
	switch p := ahead.next(); {
	case p.text == "(":
		return w.parenthesis(local)
	case (p.text == "UTC" || p.text == "GMT") && signed(ahead.text[ahead.pos:]):
		*w = ahead
		return w.offset()
	case p.kind == letters && len(p.text) >= 3 && len(p.text) <= 4 && p.text == strings.ToUpper(p.text):
		return locationOf(p.text)
	}
	return local, true
}

// skipUTC reads UTC or GMT, unless an offset follows.
func (w *words) skipUTC() bool {
	ahead := *w
	if !ahead.skip("UTC") && !ahead.skip("GMT") {
		return false
	}
	if signed(ahead.text[ahead.pos:]) {
		return false
	}
	*w = ahead
	return true
}

func signed(text string) bool { return text != "" && (text[0] == '+' || text[0] == '-') }

// parenthesis reads a zone's name in parentheses. A text with a space is a remark
// and no zone.
func (w *words) parenthesis(local *time.Location) (*time.Location, bool) {
	w.skip("(")
	name, _, closed := strings.Cut(w.text[w.pos:], ")")
	if !closed || name == "" || strings.ContainsAny(name, " \t\n") {
		return local, true
	}
	w.pos += len(name) + 1
	return locationOf(name)
}

// offset reads +01:00, -0800 or +2.
func (w *words) offset() (*time.Location, bool) {
	sign := 1
	if w.next().text == "-" {
		sign = -1
	}
	p := w.next()
	if p.kind != digits || len(p.text) > 4 {
		return nil, false
	}
	n := int(p.value())
	hours, minutes := n/100, n%100
	if len(p.text) <= 2 {
		hours = n
		minutes, _ = w.sixtieth()
	}
	if hours > 14 || minutes > 59 || w.glued() {
		return nil, false
	}
	return time.FixedZone("", sign*(hours*3600+minutes*60)), true
}

// locationOf looks a name up in this machine's time zone database.
func locationOf(name string) (*time.Location, bool) {
	const longest = 64
	if len(name) > longest || strings.EqualFold(name, "local") {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}
