package settings

import (
	"fmt"
	"slices"
)

// Install returns the settings file with exactly the hooks and the variable of w for w's inbox. It adds missing hooks,
// changes different ones in place, and removes surplus ones. A nil or empty file means that there is none. A file that is
// wired already is returned unchanged.
//
// The error says what must be corrected, what a person must decide, or what is wrong with w.
func Install(file []byte, w Wiring) ([]byte, error) { return w.install(file, nil) }

// install is [Install] with the file before heartbeat's first change, nil if there was none.
func (w Wiring) install(file, before []byte) ([]byte, error) {
	return w.edit(file, before, func(e *editor) error {
		seen, surplus := map[string]bool{}, []wired{}
		for _, h := range e.hooks {
			wanted := slices.Contains(w.Events, h.Event)
			if err := e.refuse(h); err != nil && wanted {
				return err
			}
			if h.ours && (seen[h.Event] || !wanted) {
				surplus = append(surplus, h)
			}
			seen[h.Event] = seen[h.Event] || h.ours
		}
		e.dropHooks(surplus)
		for _, event := range w.Events {
			if err := e.wire(event); err != nil {
				return err
			}
		}
		if err := e.wireCap(); err != nil {
			return err
		}
		return e.allow(w.Allowed)
	})
}

// uninstall returns the settings file without the hooks of w's inbox in any event, and without the variable if no hook of
// another inbox needs it. Hooks in a form that Install does not write and a variable with another value stay. If a person
// has already deleted the hooks, the variable stays too, since nothing shows whose it is.
func (w Wiring) uninstall(file, before []byte) ([]byte, error) {
	return w.edit(file, before, func(e *editor) error {
		if err := e.allow(false); err != nil {
			return err
		}
		e.dropCap()
		e.dropHooks(slices.DeleteFunc(slices.Clone(e.hooks), func(h wired) bool { return !h.ours }))
		return nil
	})
}

// editor is a settings file during an install or uninstall.
type editor struct {
	*document
	before *document // empty if there was no file; nil if it cannot be parsed
	wiring Wiring
	hooks  []wired // as they were found
}

func (w Wiring) edit(file, before []byte, change func(*editor) error) ([]byte, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	d, hooks, err := parseHooks(file, w)
	if err != nil {
		return nil, err
	}
	was, _ := parse(before)
	e := &editor{document: d, before: was, wiring: w, hooks: hooks}
	if err := change(e); err != nil {
		return nil, err
	}
	return e.edited(file), nil
}

// dropHooks removes hooks, the last one first, and a group together with its only hook.
func (e *editor) dropHooks(surplus []wired) {
	for _, h := range slices.Backward(surplus) {
		path := h.path
		if e.at("hooks", h.Event, h.path[2], "hooks", 1) == nil {
			path = path[:3]
		}
		e.drop(e.before, path...)
	}
}

// wire adds our hook to an event, or changes those of its members that differ. Members that a person added stay, except
// those that decide whether the client waits for the hook.
func (e *editor) wire(event string) error {
	hooks, err := e.hooksOf(e.wiring)
	if err != nil {
		return err
	}
	var hook []any
	if at := slices.IndexFunc(hooks, func(h wired) bool { return h.Event == event && h.ours }); at >= 0 {
		hook = hooks[at].path
	} else {
		groups, _ := items(e.at("hooks", event))
		if err := e.put("", "hooks", event, len(groups), "matcher"); err != nil {
			return err
		}
		hook = []any{"hooks", event, len(groups), "hooks", 0}
	}
	w := e.wiring
	members := []member{{"type", "command"}, {"command", w.Command}, {"args", w.Args}, {"timeout", w.Timeout}}
	unwanted := []string{"async", "asyncRewake"}
	switch {
	case w.Line:
		members = []member{{"type", "command"}, {"command", CommandLine(w.Command, w.Args)}, {"timeout", w.Timeout}}
		unwanted = append(unwanted, "args")
	case w.Wakes && slices.Contains([]string{Stop, StopFailure, SessionStart}, event):
		members[len(members)-1].value = wakeTimeout
		members, unwanted = append(members, member{"asyncRewake", true}), unwanted[:1]
	}
	for _, name := range unwanted {
		for path := slices.Concat(hook, []any{name}); e.at(path...) != nil; { // a file may repeat a name
			e.drop(nil, path...)
		}
	}
	return e.putAll(members, hook...)
}

// wireCap sets the variable that lifts the cap on blocks. A wiring that does not need the variable removes it if
// another wiring of the inbox set it. Another value is never overwritten: a person decides.
func (e *editor) wireCap() error {
	have := e.at("env", BlockCapEnv)
	switch {
	case e.wiring.Line:
		return nil
	case e.wiring.Wakes:
		e.dropCap()
		return nil
	case have == nil:
		return e.put("0", "env", BlockCapEnv)
	case decode(have) != any("0"):
		plain := have.Clone()
		plain.BeforeExtra, plain.AfterExtra = nil, nil
		return fmt.Errorf("env.%s at line %d is %s, heartbeat needs %q: it was not overwritten; remove it or set it to %q, then try again",
			BlockCapEnv, e.line(have), clip(string(plain.Pack()), 160), "0", "0")
	}
	return nil
}

// dropCap removes the variable with the last inbox that needs it, unless the variable was there before.
func (e *editor) dropCap() {
	set := func(d *document) bool { return d.textAt("env", BlockCapEnv) == "0" }
	ours := slices.ContainsFunc(e.hooks, func(h wired) bool { return h.ours })
	if ours && set(e.document) && !set(e.before) && !slices.ContainsFunc(e.hooks, func(h wired) bool { return h.anothers }) {
		e.drop(e.before, "env", BlockCapEnv)
	}
}

// naming is an element of an array in the settings.
type naming struct {
	value string
	path  []any
}

func allowing(server string) []naming {
	return []naming{{server, []any{"enabledMcpjsonServers"}}, {"mcp__" + server, []any{"permissions", "allow"}}}
}

// Allows reports whether a settings file has anything that allows a server.
func Allows(file []byte, server string) bool {
	d, err := parse(file)
	return err == nil && slices.ContainsFunc(allowing(server), func(n naming) bool { return d.indexOf(n.value, n.path...) >= 0 })
}

// allow adds the elements that allow the server, or removes them, except those that a person had.
func (e *editor) allow(allowed bool) error {
	if e.wiring.Server == "" {
		return nil
	}
	for _, one := range allowing(e.wiring.Server) {
		i := e.indexOf(one.value, one.path...)
		switch {
		case allowed && i < 0:
			if err := e.put(one.value, append(slices.Clone(one.path), i)...); err != nil { // no index appends
				return err
			}
		case !allowed && i >= 0 && e.before.indexOf(one.value, one.path...) < 0:
			e.drop(e.before, append(slices.Clone(one.path), i)...)
		}
	}
	return nil
}

func (d *document) indexOf(text string, path ...any) int {
	all, _ := decode(d.at(path...)).([]any)
	return slices.Index(all, any(text))
}
