package settings

import (
	"fmt"
	"reflect"
	"slices"
)

// wire adds our hook to an event, or updates it.
func (e *editor) wire(event string) error {
	hooks, err := e.scan(false)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if h.event == event && e.isOurs(h) {
			return e.update(event)
		}
	}
	return e.addHook(event)
}

// update changes the members of our hook in event that differ from the wiring, one after the other.
func (e *editor) update(event string) error {
	for {
		d, err := parse(e.text)
		if err != nil {
			return err
		}
		hooks, err := e.hooks(d)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(hooks, func(h wired) bool { return h.event == event && e.isOurs(h) })
		if i < 0 {
			return fmt.Errorf("internal error: hook of %s lost while it was changed", event)
		}
		text, changed := e.updateMember(d, hooks[i])
		if !changed {
			return nil
		}
		e.text = text
	}
}

// updateMember returns the text with the first differing member of a hook changed.
func (e *editor) updateMember(d document, hook wired) ([]byte, bool) {
	b, _ := d.box(hook.value())
	for _, want := range e.entry(hook.event) {
		i := b.find(want.name)
		if i < 0 {
			return d.insert(b, want), true
		}
		have := b.items[i].value
		if !reflect.DeepEqual(decode(have), plain(want.value)) {
			spelled := d.layoutIn(b).spell(want.value)
			return splice(d.text, edit{at: have.StartOffset, cut: have.EndOffset - have.StartOffset, text: spelled}), true
		}
	}
	for _, name := range e.unwanted(hook.event) {
		if i := b.find(name); i >= 0 {
			return splice(d.text, d.cut(place{b, i})...), true
		}
	}
	return nil, false
}

// plain returns a value of the wiring as decode would return it.
func plain(value any) any {
	if n, ok := value.(int); ok {
		return float64(n)
	}
	return value
}

// entry returns the hook that is written for event.
func (e *editor) entry(event string) []member {
	var args []any
	for _, arg := range e.wiring.Args {
		args = append(args, arg)
	}
	hook := []member{{"type", "command"}, {"command", e.wiring.Command}, {"args", args}}
	if e.wiring.Line {
		hook = []member{{"type", "command"}, {"command", CommandLine(e.wiring.Command, e.wiring.Args)}}
	}
	if e.inBackground(event) {
		return append(hook, member{"timeout", e.wiring.BackgroundTimeout}, member{"asyncRewake", true})
	}
	return append(hook, member{"timeout", e.wiring.Timeout})
}

// unwanted returns the members that our hook of event must not have, because they decide whether the client waits for
// it. All others that a person adds stay.
func (e *editor) unwanted(event string) []string {
	switch {
	case e.inBackground(event):
		return []string{"async"} // asyncRewake includes it
	case e.wiring.Line:
		return []string{"async", "asyncRewake", "args"}
	}
	return []string{"async", "asyncRewake"}
}

func (e *editor) inBackground(event string) bool { return slices.Contains(e.wiring.Background, event) }

// addHook appends a group with our hook to event, and adds the members around it that are missing.
func (e *editor) addHook(event string) error {
	group := []member{{"matcher", ""}, {"hooks", []any{e.entry(event)}}}
	groups := member{event, []any{group}}
	whole := member{"hooks", []member{groups}}
	if len(e.text) == 0 {
		l := layout{eol: "\n", unit: "  ", colon: ": ", comma: ", ", lines: true}
		e.text = []byte(l.spell([]member{whole}) + l.eol)
		return nil
	}
	d, err := parse(e.text)
	if err != nil {
		return err
	}
	events, ok, err := d.object(d.top(), "hooks", "hooks")
	if err != nil {
		return err
	}
	if !ok {
		e.text = d.insert(d.top(), whole)
		return nil
	}
	list, ok, err := d.array(events, event, "hooks."+event)
	switch {
	case err != nil:
		return err
	case ok:
		e.text = d.insert(list, group)
	default:
		e.text = d.insert(events, groups)
	}
	return nil
}
