package settings

import (
	"bytes"
	"slices"
)

// byteOrderMark may precede the JSON, as some editors write it. The parser does not know it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Install returns the settings file with exactly the hooks, the meter and the variables of w for w's inbox. It adds
// missing ones, changes in place those that differ, and removes surplus ones. A nil or empty file means that there is
// none. A file that is already wired comes back unchanged. A status line that no meter can stand before stays as it is:
// [Look] says whether the meter is wired.
//
// The error is a *SyntaxError or *ShapeError if the file cannot be edited, a *ClashError or *EnvError if a person has to
// decide, and otherwise says what is wrong with w.
func Install(file []byte, w Wiring) ([]byte, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	e, mark := newEditor(file, w)
	if err := e.install(len(mark) > 0); err != nil {
		return nil, err
	}
	return slices.Concat(mark, e.text), nil
}

// editor holds the text between steps. Each step parses it again: that keeps the offsets right, and lets Uninstall undo
// the steps one by one in the opposite order.
type editor struct {
	wiring Wiring
	inbox  string
	text   []byte
}

// newEditor returns an editor for the file without its byte order mark, and that mark.
func newEditor(file []byte, w Wiring) (*editor, []byte) {
	text, marked := bytes.CutPrefix(file, byteOrderMark)
	e := &editor{wiring: w, inbox: w.Inbox(), text: text}
	if !marked {
		return e, nil
	}
	return e, byteOrderMark
}

func (e *editor) install(exists bool) error {
	before, err := e.scan(exists)
	if err != nil {
		return err
	}
	if err := e.refuse(before); err != nil {
		return err
	}
	if err := e.removeHooks(e.surplus); err != nil {
		return err
	}
	for _, event := range e.wiring.Events {
		if err := e.wire(event); err != nil {
			return err
		}
	}
	if err := e.wireMeter(); err != nil {
		return err
	}
	if err := e.installEnv(before); err != nil {
		return err
	}
	if err := e.installAllowed(); err != nil {
		return err
	}
	_, err = parse(e.text) // a result that cannot be parsed must not reach the disk
	return err
}

// scan returns the hooks of the text. An empty text has none; if the file exists, an empty text is a syntax error.
func (e *editor) scan(exists bool) ([]wired, error) {
	if len(e.text) == 0 && !exists {
		return nil, nil
	}
	d, err := parse(e.text)
	if err != nil {
		return nil, err
	}
	return e.hooks(d)
}

// refuse returns a ClashError for the first hook that would take entries beside ours.
func (e *editor) refuse(hooks []wired) error {
	for _, h := range hooks {
		relation := relate(h.Hook, e.inbox, e.wiring.Command)
		if relation != clash && relation != unclear || !slices.Contains(e.wiring.Events, h.event) {
			continue
		}
		return &ClashError{
			Member: h.member, Line: 1 + bytes.Count(e.text[:h.value().StartOffset], []byte("\n")),
			Command: h.line(), Inbox: e.inbox, Certain: relation == clash,
		}
	}
	return nil
}

// isOurs reports whether h is a hook of this wiring.
func (e *editor) isOurs(h wired) bool { return Ours(h.Hook, e.inbox, e.wiring.Command) }

// isHeartbeat reports whether h is a hook of this wiring or another one.
func (e *editor) isHeartbeat(h wired) bool {
	relation := relate(h.Hook, e.inbox, e.wiring.Command)
	return relation == ours || relation == neighbor
}

// isNeighbor reports whether h is a hook of another wiring, which may need the variables as well.
func (e *editor) isNeighbor(h wired) bool { return e.isHeartbeat(h) && !e.isOurs(h) }

// surplus reports whether hooks[i] is ours, but in an event that is not wanted, or a duplicate.
func (e *editor) surplus(hooks []wired, i int) bool {
	if !e.isOurs(hooks[i]) {
		return false
	}
	twice := func(h wired) bool { return h.event == hooks[i].event && e.isOurs(h) }
	return !slices.Contains(e.wiring.Events, hooks[i].event) || slices.ContainsFunc(hooks[:i], twice)
}

// removeHooks removes the hooks for which unwanted is true, the last one first.
func (e *editor) removeHooks(unwanted func(hooks []wired, i int) bool) error {
	for len(e.text) > 0 {
		d, err := parse(e.text)
		if err != nil {
			return err
		}
		hooks, err := e.hooks(d)
		if err != nil {
			return err
		}
		last := len(hooks) - 1
		for last >= 0 && !unwanted(hooks, last) {
			last--
		}
		if last < 0 {
			return nil
		}
		e.text = d.without(hooks[last])
	}
	return nil
}
