package settings

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Allowed says that sessions start a server of the project's .mcp.json and use its tools without asking.
type Allowed struct {
	// Server is its name.
	Server string
	// Known says that .mcp.json had the server before, so that what allows it here is of an earlier install, and no
	// person's own.
	Known bool
	// Drop takes out what allows it, in place of adding it.
	Drop bool
}

// list is an array in the settings that has to name a server.
type list struct {
	path  []string
	value string
	note  string // its name in HEARTBEAT_KEEP_ENV
}

func (a Allowed) lists() []list {
	return []list{
		{[]string{"enabledMcpjsonServers"}, a.Server, "enabledMcpjsonServers"},
		{[]string{"permissions", "allow"}, "mcp__" + a.Server, "permissions.allow"},
	}
}

// installAllowed has the lists name the server, or name it no longer.
func (e *editor) installAllowed() error {
	a := e.wiring.Allowed
	if a == nil {
		return nil
	}
	if a.Drop {
		return e.disallow()
	}
	var keep []string
	for _, l := range a.lists() {
		there, err := e.addTo(l)
		if err != nil {
			return err
		}
		if there && !a.Known {
			keep = append(keep, l.note)
		}
	}
	return e.noteKept(keep)
}

// disallow takes the server out of the lists in the opposite order, except where a person had it.
func (e *editor) disallow() error {
	a := e.wiring.Allowed
	if a == nil || len(e.text) == 0 {
		return nil
	}
	_, env, _, err := e.env()
	if err != nil {
		return err
	}
	noted := strings.Fields(note(env))
	for _, l := range slices.Backward(a.lists()) {
		if slices.Contains(noted, l.note) {
			err = e.forget(l.note)
		} else {
			err = e.removeFrom(l)
		}
		if err != nil || len(e.text) == 0 {
			return err
		}
	}
	return nil
}

// forget takes a name out of the note of what Uninstall leaves.
func (e *editor) forget(name string) error {
	d, env, _, err := e.env()
	if err != nil {
		return err
	}
	noted := note(env)
	rest := slices.DeleteFunc(strings.Fields(noted), func(one string) bool { return one == name })
	if len(rest) == 0 {
		return e.unsetVariable(keepEnv, noted)
	}
	have := env.items[env.find(keepEnv)].value
	text := string(hujson.String(strings.Join(rest, " ")))
	e.text = splice(d.text, edit{at: have.StartOffset, cut: have.EndOffset - have.StartOffset, text: text})
	return nil
}

// addTo adds the value to its array, and makes what is missing on the way there. It reports whether the value was there.
func (e *editor) addTo(l list) (there bool, err error) {
	d, err := parse(e.text)
	if err != nil {
		return false, err
	}
	b := d.top()
	for i, name := range l.path {
		last := i == len(l.path)-1
		kind := d.object
		if last {
			kind = d.array
		}
		inner, ok, err := kind(b, name, l.note)
		if err != nil {
			return false, err
		}
		if !ok {
			var value any = []any{l.value}
			for _, name := range slices.Backward(l.path[i+1:]) {
				value = []member{{name, value}}
			}
			e.text = d.insert(b, member{name, value})
			return false, nil
		}
		b = inner
	}
	if b.holds(l.value) >= 0 {
		return true, nil
	}
	e.text = d.insert(b, l.value)
	return false, nil
}

// removeFrom removes the value from its array.
func (e *editor) removeFrom(l list) error {
	d, err := parse(e.text)
	if err != nil {
		return err
	}
	b := d.top()
	var path []place
	for _, name := range l.path {
		i := b.find(name)
		if i < 0 {
			return nil
		}
		path = append(path, place{b, i})
		inner, ok := d.box(b.items[i].value)
		if !ok {
			return nil
		}
		b = inner
	}
	i := b.holds(l.value)
	if i < 0 {
		return nil
	}
	e.text = d.remove(append(path, place{b, i}))
	return nil
}

// holds returns the index of a string among the elements, or -1.
func (b box) holds(text string) int {
	return slices.IndexFunc(b.items, func(it item) bool { return decode(it.value) == any(text) })
}
