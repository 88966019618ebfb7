package settings

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// wired is a hook found in a settings file.
type wired struct {
	Hook
	event  string
	member string  // its name in messages
	path   []place // from the top level to the hook's group
	entry  place   // the hook in its group's "hooks"
}

// hooks returns the hooks of all events in the order of the file. What does not have the shape of a hook is not ours and
// is skipped; only "hooks" itself must be an object.
func (d document) hooks() ([]wired, error) {
	top := d.top()
	events, ok, err := d.object(top, "hooks", "hooks")
	if err != nil || !ok {
		return nil, err
	}
	var all []wired
	for i, it := range events.items {
		groups, ok := d.box(it.value)
		if !ok || i != events.find(it.name) {
			continue
		}
		path := []place{{top, top.find("hooks")}, {events, i}}
		for j := range groups.items {
			w := wired{event: it.name, path: append(path[:2:2], place{groups, j})}
			all = append(all, d.hooksOf(w, groups.items[j].value, fmt.Sprintf("hooks.%s[%d]", it.name, j))...)
		}
	}
	return all, nil
}

// hooksOf returns copies of w for the hooks in a group.
func (d document) hooksOf(w wired, group *hujson.Value, member string) []wired {
	b, _ := d.box(group)
	i := b.find("hooks")
	if i < 0 {
		return nil
	}
	entries, ok := d.box(b.items[i].value)
	if !ok {
		return nil
	}
	var found []wired
	for i, it := range entries.items {
		w.Hook = hookOf(it.value)
		w.member = fmt.Sprintf("%s.hooks[%d]", member, i)
		w.entry = place{entries, i}
		found = append(found, w)
	}
	return found
}

// without returns the text without w, and without its group if it is the only hook in there.
func (d document) without(w wired) []byte {
	if len(w.entry.box.items) > 1 {
		return splice(d.text, d.cut(w.entry)...)
	}
	return d.remove(w.path)
}

// value returns w's JSON object.
func (w wired) value() *hujson.Value { return w.entry.box.items[w.entry.index].value }

// hookOf reads a hook. If a member has not the type that Claude Code expects, it returns a Hook without a Type, which is
// nobody's.
func hookOf(v *hujson.Value) Hook {
	object, ok := decode(v).(map[string]any)
	if !ok {
		return Hook{}
	}
	var h Hook
	h.Type, _ = object["type"].(string)
	h.Command, _ = object["command"].(string)
	args, listed := object["args"].([]any)
	if !listed {
		if object["args"] != nil {
			return Hook{}
		}
		return h
	}
	h.Args = []string{}
	for _, arg := range args {
		text, ok := arg.(string)
		if !ok {
			return Hook{}
		}
		h.Args = append(h.Args, text)
	}
	return h
}

// line returns command and arguments for a message.
func (h Hook) line() string {
	return strings.Join(append([]string{h.Command}, h.Args...), " ")
}

// decode returns the value of v as encoding/json does.
func decode(v *hujson.Value) any {
	plain := v.Clone()
	plain.Standardize()
	var value any
	if err := json.Unmarshal(plain.Pack(), &value); err != nil {
		return nil // a number beyond float64, which we never write
	}
	return value
}
