package settings

import (
	"bytes"
	"slices"
)

// byteOrderMark may precede the JSON, as some editors write it. The parser does not know it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Install returns the settings file with exactly the hooks and variables of w for w's inbox: missing ones are added,
// ones that differ are changed where they are, surplus ones are removed. Nil or empty means that there is no file.
// What is wired already comes back as it is.
//
// The error is a *SyntaxError or *ShapeError for a file that cannot be edited, a *ClashError or *EnvError for one that
// a person has to decide about, or tells what is wrong with w.
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

// editor carries the text from step to step. Each step parses it anew, so that its offsets are right and so that
// Uninstall can undo the steps one by one in the opposite order.
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
	if err := e.installEnv(before); err != nil {
		return err
	}
	_, err = parse(e.text) // a result that cannot be read again must not reach the disk
	return err
}

// scan returns the hooks of the text. An empty text has none, unless a file is known to exist: then it is not JSON.
func (e *editor) scan(exists bool) ([]wired, error) {
	if len(e.text) == 0 && !exists {
		return nil, nil
	}
	d, err := parse(e.text)
	if err != nil {
		return nil, err
	}
	return d.hooks()
}

// refuse returns a ClashError for the first hook that would take messages beside ours.
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

// isHeartbeat reports whether h is a hook of this or of another wiring.
func (e *editor) isHeartbeat(h wired) bool {
	relation := relate(h.Hook, e.inbox, e.wiring.Command)
	return relation == ours || relation == neighbor
}

// isNeighbor reports whether h is a hook of another wiring, which may need the variables as well.
func (e *editor) isNeighbor(h wired) bool { return e.isHeartbeat(h) && !e.isOurs(h) }

// surplus reports whether hooks[i] is ours, but in an event that is not wanted, or there for the second time.
func (e *editor) surplus(hooks []wired, i int) bool {
	if !e.isOurs(hooks[i]) {
		return false
	}
	twice := func(h wired) bool { return h.event == hooks[i].event && e.isOurs(h) }
	return !slices.Contains(e.wiring.Events, hooks[i].event) || slices.ContainsFunc(hooks[:i], twice)
}

// removeHooks removes the hooks that unwanted picks, the last one first.
func (e *editor) removeHooks(unwanted func(hooks []wired, i int) bool) error {
	for len(e.text) > 0 {
		d, err := parse(e.text)
		if err != nil {
			return err
		}
		hooks, err := d.hooks()
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
