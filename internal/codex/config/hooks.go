package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	features = "features"
	mark     = "# heartbeat install"
	enabled  = "hooks = true " + mark
	wasOff   = mark + ": features.%s was false"
	// mostMarks is more than an install writes.
	mostMarks = 8
)

// names are the features that switch hooks on and off; the second one is the older name.
var names = []string{"hooks", "codex_hooks"}

// Hooks is what a file says of Codex's hooks.
type Hooks int

// What a file may say. Codex runs hooks where no file says anything.
const (
	Unsaid Hooks = iota
	On
	Off
)

// HooksIn returns what a file says. The error names the line that is no TOML.
func HooksIn(text []byte) (Hooks, error) {
	d, err := parse(text)
	if err != nil {
		return Unsaid, err
	}
	said := Unsaid
	for _, name := range names {
		switch d.feature(name) {
		case false:
			return Off, nil
		case true:
			said = On
		}
	}
	return said, nil
}

// feature is a feature's value, nil if the file has none.
func (d document) feature(name string) any {
	all, _ := d.values[features].(map[string]any)
	return all[name]
}

// SwitchOn returns the file with hooks switched on where it switches them off. Below is what the files say over which this
// one has precedence: where they switch hooks off, it says that they are on.
func SwitchOn(text []byte, below Hooks) ([]byte, error) {
	said, err := HooksIn(text)
	if err != nil {
		return nil, err
	}
	if said == Unsaid && below == Off {
		return add(text)
	}
	for _, name := range names {
		if text, err = flip(text, name); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// add says that hooks are on, in a file that says nothing of it.
func add(text []byte) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	if header := d.table(features); header >= 0 {
		text = d.below(header, enabled)
	} else {
		text = d.appended("[" + features + "] " + mark + "\n" + enabled)
	}
	if said, err := HooksIn(text); err != nil || said != On {
		return nil, errors.New("its features are not in a table [features], so that hooks cannot be switched on in it: add hooks = true to them, then try again")
	}
	return text, nil
}

// flip switches a feature on that the file switches off, and says so in the line before.
func flip(text []byte, name string) ([]byte, error) {
	d, err := parse(text)
	if err != nil || d.feature(name) != false {
		return text, err
	}
	for _, p := range d.parts {
		if b, ok := p.feature(name); ok {
			text = d.replaced(b.span, "true")
			start := d.lineOf(p.start).start
			return slices.Concat(text[:start], fmt.Appendf(nil, wasOff+"\n", name), text[start:]), nil
		}
	}
	return nil, fmt.Errorf("features.%s is false in a form that cannot be edited: make it true, then try again", name)
}

// feature is the boolean of a feature that is in the value of a key.
func (p part) feature(name string) (boolean, bool) {
	at := slices.IndexFunc(p.switches, func(b boolean) bool { return slices.Equal(b.path, []string{features, name}) })
	if at < 0 {
		return boolean{}, false
	}
	return p.switches[at], true
}

// SwitchBack takes back what SwitchOn did, nil if nothing is left of the file. What a person has set since stays.
func SwitchBack(text []byte) ([]byte, error) {
	for range mostMarks {
		d, err := parse(text)
		if err != nil {
			return nil, err
		}
		after, found := d.switchBack()
		if !found {
			return text, nil
		}
		if text = after; text == nil {
			return nil, nil
		}
	}
	return text, nil
}

// switchBack takes back one line, and reports whether there is one.
func (d document) switchBack() (text []byte, found bool) {
	for i, p := range d.parts {
		line := d.lines(p.span)
		switch {
		case p.kind == unstable.Comment:
			for _, name := range names {
				if p.comment == fmt.Sprintf(wasOff, name) {
					return d.unflip(i, name), true
				}
			}
		case p.kind == unstable.KeyValue && d.isMarked(p.span):
			if _, ok := p.feature(names[0]); ok {
				return d.dropped(line, false), true
			}
		case p.kind == unstable.Table && slices.Equal(p.path, []string{features}) && d.isMarked(p.span) && !d.addedBelow(i):
			if len(d.keyed(i)) == 0 {
				return d.dropped(line, true), true
			}
			return d.unmarked(p.span), true
		}
	}
	return nil, false
}

// unflip removes the note at parts[i], and switches the feature that it names off again, if that follows and is on.
func (d document) unflip(i int, name string) []byte {
	note := d.lines(d.parts[i].span)
	text := d.dropped(note, false)
	for _, p := range d.parts[i+1:] {
		if p.kind == unstable.Comment {
			continue
		}
		if b, ok := p.feature(name); ok && d.feature(name) == true {
			cut := note.end - note.start
			text = slices.Concat(text[:b.start-cut], []byte("false"), text[b.end-cut:])
		}
		break
	}
	return text
}

// isMarked reports whether the line that a header or a key is in ends with the mark.
func (d document) isMarked(s span) bool {
	line := d.lines(s)
	return strings.HasSuffix(strings.TrimRight(string(d.text[line.start:line.end]), "\r\n"), " "+mark)
}

// unmarked is the text without the mark at the end of a line.
func (d document) unmarked(s span) []byte {
	line := d.lines(s)
	at := line.start + strings.LastIndex(string(d.text[line.start:line.end]), " "+mark)
	return d.replaced(span{at, at + len(mark) + 1}, "")
}

// addedBelow reports whether the table of a header has a key that was added to it.
func (d document) addedBelow(header int) bool {
	return slices.ContainsFunc(d.keyed(header), func(p part) bool { return d.isMarked(p.span) })
}
